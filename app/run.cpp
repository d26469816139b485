/// `fathom run NAME`: one experiment of the paper, or all of them, each into a run folder.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "experiments/run.hpp"
#include "experiments/statistics.hpp"
#include "fathom/report/export.hpp"
#include "fathom/support/error.hpp"
#include "fathom/train/progress.hpp"
#include "image_sets.hpp"
#include "names.hpp"

namespace fathom::app {

namespace {

using experiments::Experiment;
using experiments::Run;
using std::filesystem::path;

struct Request {
  std::string name;
  std::string out;
  experiments::RunOptions options;
  std::vector<std::string> set;
  std::string budget;
  std::string solver, gradient;
  std::int64_t seeds = 1;
  bool quick = false, paper = false;
  bool png = false, svg = false;
};

std::vector<Experiment> experiments_named(const std::string& name) {
  if (name == "all") return experiments::all_experiments();
  std::vector<std::string> names = {"all"};
  for (const Experiment& each : experiments::all_experiments()) names.push_back(each.name);
  checked_name("experiment", name, names);
  std::vector<Experiment> found;
  for (const Experiment& each : experiments::all_experiments()) {
    if (each.name == name) found.push_back(each);
  }
  return found;
}

std::pair<std::string, double> setting(const std::string& words) {
  const auto equals = words.find('=');
  double value = 0;
  const bool is_number =
      equals != std::string::npos && CLI::detail::lexical_cast(words.substr(equals + 1), value);
  require(is_number, "--set needs KEY=VALUE with a number, got `", words, "`");
  return {words.substr(0, equals), value};
}

/// "90", "90s", "30m" or "2h" in seconds.
double duration_named(const std::string& words) {
  const std::map<char, double> units = {{'s', 1}, {'m', 60}, {'h', 3600}};
  const auto unit = words.empty() ? units.end() : units.find(words.back());
  double count = 0;
  const bool is_number =
      CLI::detail::lexical_cast(unit == units.end() ? words : words.substr(0, words.size() - 1), count);
  require(is_number && count > 0, "--budget needs a duration such as 90s, 30m or 2h, got `", words, "`");
  return unit == units.end() ? count : count * unit->second;
}

experiments::RunOptions options_of(const Request& request) {
  experiments::RunOptions options = request.options;
  if (request.quick) options.size = experiments::Size::quick;
  if (request.paper) options.size = experiments::Size::paper;
  for (const std::string& each : request.set)
    options.set.insert_or_assign(setting(each).first, setting(each).second);
  if (!request.budget.empty()) options.set["budget"] = duration_named(request.budget);
  if (!request.solver.empty()) options.method = method_named(request.solver);
  if (!request.gradient.empty()) options.sensitivity = sensitivity_named(request.gradient);
  return options;
}

/// Of what was given by name, that which is declared.
template <class Declared, class Value>
std::map<std::string, Value> those_of(const std::vector<Declared>& all,
                                      const std::map<std::string, Value>& given) {
  std::map<std::string, Value> had;
  for (const Declared& each : all) {
    if (const auto found = given.find(each.name); found != given.end()) had.insert(*found);
  }
  return had;
}

/// Of the given settings those that the experiment has, and the images that it needs.
experiments::RunOptions options_for(const Experiment& experiment, experiments::RunOptions options) {
  options.set = those_of(experiment.settings, options.set);
  options.choose = those_of(experiment.choices, options.choose);
  for (const experiments::Choice& choice : experiment.choices) {
    if (choice.name != "data") continue;
    const auto given = options.choose.find(choice.name);
    options.images =
        image_folder(given == options.choose.end() ? choice.usual : given->second, options.quiet);
  }
  return options;
}

/// A setting must be one of the experiment's; with several experiments, of at least one.
void check_settings(const std::vector<Experiment>& chosen, const experiments::RunOptions& options) {
  Experiment any{.name = chosen.size() == 1 ? chosen.front().name : "all"};
  for (const Experiment& each : chosen) {
    any.settings.insert(any.settings.end(), each.settings.begin(), each.settings.end());
    any.choices.insert(any.choices.end(), each.choices.begin(), each.choices.end());
  }
  experiments::check_settings(any, options.set);
  experiments::check_choices(any, options.choose);
}

/// Begins anew: figures, page and checkpoints of a run that was there before would not belong to what is trained now. Whoever
/// resumes it keeps its log and checkpoints.
void prepare(const path& folder, bool resume) {
  make_run_folder(folder);
  std::error_code absent;
  if (resume) {
    for (const char* stale : {"metrics.json", "report.html"}) std::filesystem::remove(folder / stale, absent);
    return;
  }
  const bool interrupted =
      std::filesystem::exists(folder / "metrics.jsonl") && !std::filesystem::exists(folder / "metrics.json");
  if (interrupted) {
    std::cerr << "fathom: `" << folder.string()
              << "` holds a run that was interrupted; it is replaced by this one\n";
  }
  for (const char* stale : {"metrics.json", "metrics.jsonl", "report.html"})
    std::filesystem::remove(folder / stale, absent);
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".checkpoint") std::filesystem::remove(file.path(), absent);
}

struct Outcome {
  RunMetrics metrics;
  report::Page page;
};

void write(const path& folder, const Outcome& outcome, const Request& request) {
  report::write_page(folder / "report.html", outcome.page);
  if (request.svg) report::export_figures(folder, outcome.page, report::Picture::svg);
  if (request.png) report::export_figures(folder, outcome.page, report::Picture::png);
  write_metrics(folder, outcome.metrics);  // last: a folder that has it is whole
}

Outcome run_seed(const Experiment& experiment, experiments::RunOptions options, const path& folder) {
  options.folder = folder;
  Run run(experiment, options);
  experiment.run(run);
  return {run.metrics(), run.page()};
}

/// One seed into the folder itself; several into folders seed-0, seed-1, ... in it, and what they have in common beside them.
Outcome run_seeds(const Experiment& experiment, const experiments::RunOptions& options, const path& folder,
                  const Request& request) {
  prepare(folder, options.resume);
  if (request.seeds == 1) return run_seed(experiment, options, folder);
  std::vector<RunMetrics> all;
  report::Page page;
  for (std::int64_t n = 0; n < request.seeds; ++n) {
    experiments::RunOptions one = options;
    one.seed += std::uint64_t(n);
    const path below = folder / text("seed-", one.seed);
    prepare(below, options.resume);
    const Outcome outcome = run_seed(experiment, one, below);
    write(below, outcome, {});
    all.push_back(outcome.metrics);
    if (n == 0) page = outcome.page;
  }
  const RunMetrics together = experiments::across_seeds(all);
  return {together, experiments::across_seeds(page, all)};
}

void print(const RunMetrics& metrics, const path& folder, double seconds) {
  std::cout << table(metrics) << "\n";
  for (const ClaimVerdict& verdict : metrics.verdicts) {
    std::cout << (verdict.holds ? "holds          " : "does not hold  ") << verdict.claim << ": "
              << report::readable(verdict.value) << "\n";
  }
  std::cout << "\n"
            << (folder / "report.html").string() << "  (" << duration_text(seconds) << ")\n"
            << std::flush;
}

void run(const Request& request) {
  const std::vector<Experiment> chosen = experiments_named(request.name);
  const experiments::RunOptions options = options_of(request);
  check_settings(chosen, options);
  if (request.png) report::check_exporter(report::Picture::png);
  if (request.svg) report::check_exporter(report::Picture::svg);
  const path root = request.out.empty() ? path("runs") : path(request.out);
  const auto folder_of = [&](const Experiment& each) {
    return request.name == "all" || request.out.empty() ? root / each.name : root;
  };
  // Before the work, so that hours are not lost to a full or read-only disk.
  for (const Experiment& each : chosen) make_run_folder(folder_of(each));

  std::string failed;
  for (const Experiment& each : chosen) {
    const auto began = std::chrono::steady_clock::now();
    if (chosen.size() > 1) std::cout << "\n" << each.id << "  " << each.title << "\n\n" << std::flush;
    try {
      const Outcome outcome = run_seeds(each, options_for(each, options), folder_of(each), request);
      write(folder_of(each), outcome, request);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      print(outcome.metrics, folder_of(each), seconds);
    } catch (const Error& error) {
      if (chosen.size() == 1) throw;
      std::cerr << "fathom: " << each.name << ": " << error.what() << "\n";
      failed += (failed.empty() ? "" : ", ") + each.name;
    }
  }
  if (!failed.empty()) throw Error("these experiments failed: " + failed);
}

}  // namespace

void add_run(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("run", "Reproduce an experiment of the paper");
  command->add_option("name", request->name, "The experiment, or `all`; see `fathom list`")->required();
  CLI::Option* quick = command->add_flag("--quick", request->quick, "A small size: all in minutes");
  command->add_flag("--paper", request->paper, "The paper's own size, as long as it takes")->excludes(quick);
  command->add_option("--out", request->out, "The run folder; default runs/NAME")->type_name("DIR");
  command->add_option("--seed", request->options.seed, "Seed of data and initial weights")
      ->capture_default_str();
  command
      ->add_option("--seeds", request->seeds,
                   "Run this many seeds from --seed on; report means and deviations")
      ->check(CLI::Range(std::int64_t(1), std::int64_t(1000)))
      ->capture_default_str();
  command
      ->add_option("--set", request->set,
                   "Change a setting of `fathom list NAME`; with `all`, for the experiments that have it")
      ->type_name("KEY=VALUE");
  const auto changes = [&](const std::string& setting, const std::string& what) {
    command->add_option_function<double>(
        "--" + setting, [request, setting](double value) { request->options.set[setting] = value; }, what);
  };
  changes("train-images", "images: how many are trained on");
  changes("test-images", "images: how many accuracies are taken on");
  changes("epochs", "images: how often each is seen");
  changes("side", "images: pixels that larger ones are averaged down to: 14, 28 or 32");
  const auto chooses = [&](const std::string& choice, const std::string& what) {
    command->add_option_function<std::string>(
        "--" + choice,
        [request, choice](const std::string& value) { request->options.choose[choice] = value; }, what);
  };
  chooses("data", "images: mnist, fashion-mnist, cifar10, fetched to data/NAME, or a folder with such files");
  chooses("model", "images: node, anode, il, second or all");
  chooses("velocity", "images: where velocities of the second order begin, zero or learned");
  command->add_option("--budget", request->budget, "images: how long the models may be trained, such as 30m");
  command->add_flag("--resume", request->options.resume, "images: go on with the run in the folder");
  command->add_option("--solver", request->solver, "Another method; see `fathom solvers`")
      ->type_name("METHOD");
  command->add_option("--gradient", request->gradient, "discrete, adjoint, interpolated-adjoint or unrolled")
      ->type_name("NAME");
  command->add_flag("--png", request->png, "Also every figure as a PNG file");
  command->add_flag("--svg", request->svg, "Also every figure as an SVG file");
  command->add_flag("--quiet", request->options.quiet, "No progress, only the result");
  command->footer(
      "Examples:\n"
      "  fathom run annuli\n"
      "  fathom run all --quick\n"
      "  fathom run images --data mnist --model il --train-images 10000 --epochs 2 --side 28\n"
      "  fathom run crossing --seeds 5 --set iterations=500 --out /tmp/crossing");
  command->callback([request] { run(*request); });
}

}  // namespace fathom::app
