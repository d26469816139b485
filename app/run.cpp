/// `fathom run NAME`: one experiment of the paper, into a run folder.
#include <algorithm>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "experiments/experiment.hpp"
#include "names.hpp"

namespace fathom::app {

namespace {

struct Request {
  std::string name;
  std::string out;
  experiments::RunOptions options;
  std::int64_t iterations = 0;
};

const experiments::Experiment& experiment_named(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& experiment : experiments::all_experiments()) names.push_back(experiment.name);
  checked_name("experiment", name, names);
  return *std::find_if(experiments::all_experiments().begin(), experiments::all_experiments().end(),
                       [&](const auto& experiment) { return experiment.name == name; });
}

void run(Request request) {
  const experiments::Experiment& experiment = experiment_named(request.name);
  if (request.iterations > 0) request.options.iterations = request.iterations;
  const std::filesystem::path folder = request.out.empty() ? "runs/" + experiment.name : request.out;
  make_run_folder(folder);  // before the work, so that hours are not lost to a full or read-only disk
  const RunMetrics metrics = experiment.run(request.options);
  write_metrics(folder, metrics);
  std::cout << table(metrics) << "\n" << (folder / "metrics.json").string() << "\n";
}

}  // namespace

void add_run(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("run", "Reproduce an experiment of the paper");
  command->add_option("name", request->name, "The experiment; see `fathom list`")->required();
  command->add_option("--out", request->out, "The run folder; default runs/NAME")->type_name("DIR");
  command->add_option("--seed", request->options.seed, "Of data and initial weights")->capture_default_str();
  command->add_option("--iterations", request->iterations, "Of training; default: the paper's")
      ->check(CLI::PositiveNumber);
  command->add_flag("--quiet", request->options.quiet, "No progress, only the result");
  command->footer(
      "Examples:\n"
      "  fathom run annuli\n"
      "  fathom run annuli --iterations 200 --seed 3 --out /tmp/annuli");
  command->callback([request] { run(*request); });
}

}  // namespace fathom::app
