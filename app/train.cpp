/// `fathom train`: a model from a table, into a run folder that says how it was made.
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "fathom/train/checkpoint.hpp"
#include "fathom/train/metrics_log.hpp"
#include "fathom/train/run_folder.hpp"
#include "flags.hpp"
#include "interrupt.hpp"
#include "names.hpp"
#include "output.hpp"
#include "spec_text.hpp"
#include "task_data.hpp"
#include "train_report.hpp"

namespace fathom::app {

namespace {

struct Request {
  std::string config, out, resume;
  bool force = false, quiet = false, json = false;
};

constexpr std::int64_t usual_windows = 32;  // an iteration, of a series

const Words changeable_on_resume = {"iterations", "time-budget", "patience", "checkpoint-every"};

TrainSettings settings_of(const CLI::App& command, const Request& request) {
  require(request.config.empty() || request.resume.empty(), "give `--config` or `--resume`, not both");
  require(request.out.empty() || request.resume.empty(),
          "`--resume` goes on in the folder it names; leave `--out` out");
  TrainSettings settings;
  if (!request.config.empty()) settings = read_settings(request.config);
  if (!request.resume.empty())
    settings = read_settings(std::filesystem::path(request.resume) / "config.toml");
  for (const std::string& name : apply_flags(command, settings)) {
    const bool allowed =
        request.resume.empty() || std::find(changeable_on_resume.begin(), changeable_on_resume.end(), name) !=
                                      changeable_on_resume.end();
    require(allowed, "a resumed run keeps its settings; `", name == "data" ? name : "--" + name,
            "` cannot change (what can: --iterations, --time-budget, --patience, --checkpoint-every)");
  }
  if (!settings.data.empty())
    settings.data = std::filesystem::absolute(settings.data).lexically_normal().string();
  return settings;
}

std::filesystem::path folder_of(const Request& request, const TrainSettings& settings) {
  if (!request.resume.empty()) return request.resume;
  if (!request.out.empty()) return request.out;
  return std::filesystem::path("runs") / std::filesystem::path(settings.data).stem();
}

/// A finished or interrupted run is not written over by accident.
void prepare(const std::filesystem::path& folder, const Request& request) {
  make_run_folder(folder);
  if (!request.resume.empty()) return;
  for (const char* name : {"checkpoint.safetensors", "model.safetensors"}) {
    if (!std::filesystem::exists(folder / name)) continue;
    if (!request.force)
      throw Error(text("`", folder.string(), "` holds a run already; go on with `--resume ", folder.string(),
                       "`, choose another --out, or give --force to replace it"));
    std::filesystem::remove(folder / name);
  }
}

Optimizer optimizer_named(const std::string& name) {
  checked_name("optimiser", name, {"adam", "adamw", "sgd", "lbfgs"});
  return name == "adam"    ? Optimizer::adam
         : name == "adamw" ? Optimizer::adamw
         : name == "sgd"   ? Optimizer::sgd
                           : Optimizer::lbfgs;
}

LearnOptions learn_options(const TrainSettings& settings, Task task) {
  const LossKind usual = task == Task::classification ? LossKind::cross_entropy
                         : task == Task::density      ? LossKind::likelihood
                                                      : LossKind::mse;
  require(settings.window >= 0, "`--window` must not be negative, got ", settings.window);
  require(settings.optimizer != "lbfgs" || settings.batch == 0,
          "lbfgs needs the same loss every iteration: leave `--batch` out or choose another `--optimizer`");
  const bool some_windows = task == Task::series && settings.batch == 0 && settings.optimizer != "lbfgs";
  return {.loss = settings.loss == "auto" ? usual : value_named<LossKind>("loss", settings.loss),
          .kinetic = settings.kinetic,
          .batch = some_windows ? usual_windows : settings.batch,
          .window = settings.window,
          .seed = settings.seed};
}

FitOptions fit_options(const TrainSettings& settings) {
  const Optimizer optimizer = optimizer_named(settings.optimizer);
  const double usual_rate = optimizer == Optimizer::lbfgs ? 1 : 0.01;
  return {.iterations = settings.iterations,
          .optimizer = optimizer,
          .learning_rate = settings.learning_rate == 0 ? usual_rate : settings.learning_rate,
          .weight_decay = settings.weight_decay,
          .momentum = settings.momentum,
          .schedule = schedule(settings.schedule, settings.warm_up),
          .largest_gradient = settings.clip,
          .time_budget = settings.time_budget,
          .validation = {.every = settings.validate_every, .patience = settings.patience}};
}

/// The data's parts by one name, whatever the task.
struct Judge {
  Model& model;
  const TaskData& data;
  const LearnOptions& options;

  LossOfIteration loss() const {
    return data.spec.task == Task::series ? learn(model, data.courses.train, options)
                                          : learn(model, data.rows.train, options);
  }
  /// None for a part that is empty.
  Figures figures(const std::string& part, const Rows& rows, const std::vector<Course>& courses) const {
    if (!rows.inputs.defined() && courses.empty()) return {};
    Figures all = courses.empty() ? judged(model, rows, options) : judged(model, courses, options);
    for (auto& figure : all) figure.first = part + figure.first;
    return all;
  }
  bool has_validation() const {
    return data.rows.validation.inputs.defined() || !data.courses.validation.empty();
  }
  Figures train() const { return figures("", data.rows.train, data.courses.train); }
  Figures validation() const { return figures("validation ", data.rows.validation, data.courses.validation); }
  Figures test() const { return figures("test ", data.rows.test, data.courses.test); }
};

/// Figures that do not depend on the clock, so that the same run writes the same file.
Facts facts_of(const TrainSettings& settings, const Figures& figures) {
  Facts facts = {{"fathom", FATHOM_VERSION},
                 {"data", std::filesystem::path(settings.data).filename().string()},
                 {"seed", text(settings.seed)}};
  for (const auto& [name, value] : figures) facts[name] = text(value);
  return facts;
}

/// A part with a row that cannot be solved is left out and said: the model is there all the same.
Figures final_figures(const Judge& judge, const FitHistory& history) {
  Figures figures;
  const auto add = [&](const char* part, const auto& judged) {
    try {
      const Figures more = judged();
      figures.insert(figures.end(), more.begin(), more.end());
    } catch (const Error& failure) {
      std::cerr << "fathom: the model is saved, but the " << part
                << " data cannot be judged: " << failure.what() << "\n";
    }
  };
  add("training", [&] { return judge.train(); });
  add("validation", [&] { return judge.validation(); });
  add("test", [&] { return judge.test(); });
  figures.emplace_back("iterations", double(history.iteration));
  if (history.best_iteration) figures.emplace_back("best iteration", double(*history.best_iteration));
  if (history.failures > 0) figures.emplace_back("failed iterations", double(history.failures));
  figures.emplace_back("NFE", double(judge.model->report().evaluations));
  figures.emplace_back("parameters", double(parameter_count(*judge.model)));
  return figures;
}

void tell(const Request& request, const RunMetrics& metrics, const ode::SolveReport& judged,
          const std::filesystem::path& folder) {
  if (request.json) {
    std::cout << metrics_json(metrics);
    return;
  }
  for (const auto& [name, value] : metrics.models.front().figures)
    std::cout << std::left << std::setw(22) << name << report::readable(value) << "\n";
  std::cout << "\n"
            << (folder / "model.safetensors").string() << "\n"
            << (folder / "report.html").string() << "\n";
  if (!request.quiet) tell_limits(judged);
}

int train(const CLI::App& command, const Request& request) {
  const TrainSettings settings = settings_of(command, request);
  const TaskData data = read_task_data(settings);
  ModelSpec spec = data.spec;
  choose_model(spec, settings);
  const LearnOptions learning = learn_options(settings, spec.task);
  FitOptions options = fit_options(settings);

  torch::manual_seed(settings.seed);
  Model model = build_model(spec, sensitivity_named(settings.gradient));
  const Judge judge{model, data, learning};
  const LossOfIteration loss = judge.loss();

  to_json(spec);  // names that no file can hold are refused now and not after the training ...
  const std::filesystem::path folder = folder_of(request, settings);
  prepare(folder, request);
  write_atomically(folder / "config.toml", settings_text(settings));
  read_settings(folder / "config.toml");  // ... and so are settings that cannot be read back
  options.checkpoint = {.file = folder / "checkpoint.safetensors",
                        .every_seconds = settings.checkpoint_every,
                        .resume = !request.resume.empty()};
  const auto done = request.resume.empty() ? std::nullopt : checkpoint_iteration(options.checkpoint.file);
  MetricsLog log(folder, {.keep_until = done});
  const Interrupt interrupt;
  if (judge.has_validation()) options.validation.figures = [&] { return judge.validation(); };
  options.report = [&] { return model->report(); };
  options.observer = [&](const FitRecord& record) {
    log.write("model", record);
    return !Interrupt::asked();
  };
  options.title = folder.filename().string();
  options.quiet = request.quiet;
  const FitHistory history = fit(*model, loss, options);

  save(folder / "model.safetensors", model, facts_of(settings, {}));  // it must not be lost to what follows
  Figures figures = final_figures(judge, history);
  const ode::SolveReport judged = model->report();
  save(folder / "model.safetensors", model, facts_of(settings, figures));
  figures.emplace_back("seconds", history.seconds);
  const RunMetrics metrics{
      .experiment = "train", .size = "default", .seed = settings.seed, .models = {{"model", figures}}};
  write_metrics(folder, metrics);
  report::write_page(folder / "report.html",
                     train_page(model, data, settings, figures, folder / "metrics.jsonl"));
  tell(request, metrics, judged, folder);
  if (history.end != FitEnd::stopped_by_observer) return success;
  std::cerr << "fathom: interrupted after iteration " << history.iteration
            << "; go on with `fathom train --resume " << folder.string() << "`\n";
  return interrupted;
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("train", "Train a model on a table");
  add_flags(*command);
  command->add_option("--config", request->config, "Settings from a file; flags override it")
      ->type_name("FILE");
  command->add_option("--out", request->out, "The run folder; default runs/ and the name of the table")
      ->type_name("DIR");
  command->add_option("--resume", request->resume, "Resume the run in this folder, bit for bit")
      ->type_name("DIR");
  command->add_flag("--force", request->force, "Replace the run that is in the folder");
  command->add_flag("--quiet", request->quiet, "No progress, only the result");
  command->add_flag("--json", request->json, "The result as JSON");
  command->footer(
      "Examples:\n"
      "  fathom train iris.csv --label species\n"
      "  fathom train diabetes.csv --target progression --field galerkin:fourier:2 --augment zero:2 --order "
      "1\n"
      "  fathom train pendulum.csv --time t --series run --model 'mlp 64' --rtol 1e-6\n"
      "  fathom train points.csv --task density --model 'mlp 64 64' --activation softplus\n"
      "  fathom train --resume runs/iris\n"
      "  fathom train --config runs/iris/config.toml --out runs/again\n\n"
      "Exit codes: 0 done, 1 failed, 2 not understood, 130 interrupted with a checkpoint.");
  command->callback([command, request, &exit_code] { exit_code = train(*command, *request); });
}

}  // namespace fathom::app
