#include "experiments/run.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>

#include "fathom/report/run_state.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/nearest.hpp"
#include "fathom/train/checkpoint.hpp"
#include "fathom/train/model.hpp"

namespace fathom::experiments {

namespace {

template <class Named> std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& each : all) names.push_back(each.name);
  return names;
}

/// "data-controlled.safetensors": what is no letter or digit becomes a hyphen.
std::string file_name(const std::string& model, const std::string& ending = ".safetensors") {
  std::string name;
  for (const char c : model) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name + ending;
}

constexpr const char* checkpoint_ending = ".checkpoint";
constexpr const char* settings_file = "settings.json";

/// Leaves in the log what the checkpoint of each model has behind it.
void drop_after_checkpoints(const std::filesystem::path& folder) {
  const std::filesystem::path log = folder / "metrics.jsonl";
  if (!std::filesystem::exists(log)) return;
  std::map<std::string, std::int64_t> done;
  std::istringstream lines(read_whole(log));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object()) break;  // cut short by a kill
    const std::string model = record.value("model", "");
    if (!done.contains(model))
      done[model] = checkpoint_iteration(folder / file_name(model, checkpoint_ending)).value_or(0);
    if (record.value("iteration", std::int64_t(0)) <= done[model]) kept += line + "\n";
  }
  write_atomically(log, kept);
}

report::Caption training_caption(const std::vector<report::TrainingCurve>& curves) {
  const auto lower = [](const auto& a, const auto& b) { return a.loss.back() < b.loss.back(); };
  const auto best = std::min_element(curves.begin(), curves.end(), lower);
  const auto cheaper = [](const auto& a, const auto& b) {
    return a.evaluations.back() < b.evaluations.back();
  };
  const auto cheapest = std::min_element(curves.begin(), curves.end(), cheaper);
  return {.title = "Loss and evaluations",
          .idea = "The loss, and how often the solver evaluates the field, over the iterations of training.",
          .finding = text("The lowest final loss is ", report::readable(best->loss.back()), " (", best->model,
                          "); the fewest evaluations at the end are ",
                          report::readable(cheapest->evaluations.back()), " (", cheapest->model, ").")};
}

report::Table figures_table(const RunMetrics& metrics) {
  report::Table table{.caption = {.title = "All figures"}, .columns = {"model"}};
  for (const ModelFigures& model : metrics.models) {
    for (const auto& [figure, value] : model.figures) {
      if (std::find(table.columns.begin(), table.columns.end(), figure) == table.columns.end())
        table.columns.push_back(figure);
    }
  }
  for (const ModelFigures& model : metrics.models) {
    std::vector<std::string> row = {model.name};
    for (std::size_t i = 1; i < table.columns.size(); ++i) {
      const auto found = std::find_if(model.figures.begin(), model.figures.end(),
                                      [&](const auto& each) { return each.first == table.columns[i]; });
      row.push_back(found == model.figures.end() ? "" : report::readable(found->second));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

namespace {

/// Throws unless `name` is one of `known`.
void check_known(const Experiment& experiment, const std::string& kind, const std::string& name,
                 const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string listed;
  for (const std::string& each : std::set(known.begin(), known.end()))
    listed += (listed.empty() ? "" : ", ") + each;
  throw InvalidArgument(text("`", experiment.name, "` has no ", kind, " `", name, "`",
                             did_you_mean(name, known), " (known: ", listed, ")"));
}

}  // namespace

void check_settings(const Experiment& experiment, const std::map<std::string, double>& set) {
  for (const auto& [name, value] : set)
    check_known(experiment, "setting", name, names_of(experiment.settings));
}

void check_choices(const Experiment& experiment, const std::map<std::string, std::string>& chosen) {
  for (const auto& [name, value] : chosen) {
    check_known(experiment, "choice", name, names_of(experiment.choices));
    for (const Choice& choice : experiment.choices) {
      if (choice.name == name && !choice.values.empty()) check_known(experiment, name, value, choice.values);
    }
  }
}

Run::Run(const Experiment& experiment, const RunOptions& options)
    : experiment_(experiment), options_(options) {
  check_settings(experiment, options.set);
  check_choices(experiment, options.choose);
  metrics_.experiment = experiment.name;
  metrics_.size = size_name(options.size);
  metrics_.seed = options.seed;
  if (options.folder) take_up();
  torch::manual_seed(options.seed);
}

void Run::take_up() {
  const std::filesystem::path folder = *options_.folder, settings = folder / settings_file;
  MetricsLogOptions logging;
  if (options_.resume && std::filesystem::exists(settings)) {
    if (read_whole(settings) != settings_text())
      throw InvalidArgument(text("`", folder.string(), "` holds a run with other settings, see its ",
                                 settings_file, "; a resumed run keeps them all but `budget`"));
    drop_after_checkpoints(folder);
    logging.keep_until = std::numeric_limits<std::int64_t>::max();
    for (const report::TrainingCurve& curve : report::course_of(folder)) {
      FitHistory& history = course_of(curve.model).history;
      history.losses = curve.loss;
      history.evaluations.assign(curve.evaluations.begin(), curve.evaluations.end());
      history.backward_evaluations.assign(curve.backward_evaluations.begin(),
                                          curve.backward_evaluations.end());
    }
  }
  write_atomically(settings, settings_text());
  log_ = std::make_unique<MetricsLog>(folder, logging);
}

/// What decides the course of a run, as JSON. How long it may take is no part of it.
std::string Run::settings_text() const {
  nlohmann::ordered_json settings{{"experiment", experiment_.name},
                                  {"size", size_name(options_.size)},
                                  {"seed", options_.seed},
                                  {"solver", options_.method.value_or(dopri5()).name},
                                  {"gradient", gradient_name()}};
  for (const Choice& each : experiment_.choices) settings[each.name] = choice(each.name);
  for (const Setting& each : experiment_.settings) {
    if (each.name != "budget") settings[each.name] = number(each.name);
  }
  return settings.dump(2) + "\n";
}

const std::string& Run::choice(const std::string& name) const {
  if (const auto given = options_.choose.find(name); given != options_.choose.end()) return given->second;
  for (const Choice& each : experiment_.choices) {
    if (each.name == name) return each.usual;
  }
  throw Error(
      text("the experiment `", experiment_.name, "` asks for a choice `", name, "` it does not declare"));
}

std::string Run::gradient_name() const {
  return std::array{"discrete", "adjoint", "interpolated adjoint", "unrolled"}[sensitivity().index()];
}

double Run::number(const std::string& name) const {
  if (const auto given = options_.set.find(name); given != options_.set.end()) return given->second;
  for (const Setting& setting : experiment_.settings) {
    if (setting.name == name) return setting.at(options_.size);
  }
  throw Error(
      text("the experiment `", experiment_.name, "` asks for a setting `", name, "` it does not declare"));
}

std::int64_t Run::count(const std::string& name) const {
  const double value = number(name);
  require(value >= 1 && value == std::floor(value) && value < 1e15, "the setting `", name,
          "` must be a whole number from 1 on, got ", value);
  return std::int64_t(value);
}

std::uint64_t Run::seed_of(std::int64_t draw) const {
  return options_.seed * 1'000'003 + std::uint64_t(draw);
}

Solver Run::solver() const {
  Solver solver;
  if (options_.method) solver.method = *options_.method;
  const double tolerance = number("tolerance");
  if (solver.method->adaptive()) {
    solver.steps = AdaptiveSteps{.relative_tolerance = tolerance, .absolute_tolerance = tolerance};
  } else {
    solver.steps = FixedSteps{.count = 20};
  }
  return solver;
}

FitHistory Run::train(const std::string& model, torch::nn::Module& module,
                      const std::function<Tensor(std::int64_t)>& loss, const How& how) {
  FitOptions options{.iterations = how.iterations > 0 ? how.iterations : count("iterations"),
                     .optimizer = how.optimizer,
                     .learning_rate = how.learning_rate > 0 ? how.learning_rate : number("learning-rate"),
                     .weight_decay = number("weight-decay"),
                     .schedule = how.schedule,
                     .time_budget = how.time_budget,
                     .report = how.report,
                     .title = experiment_.name + "  " + model,
                     .quiet = options_.quiet};
  options.observer = [&](const FitRecord& record) { return log(model, record), true; };
  if (how.has_checkpoints && options_.folder) {
    options.checkpoint = {.file = *options_.folder / file_name(model, checkpoint_ending),
                          .resume = options_.resume};
  }
  const FitHistory history = fit(module, loss, options);
  const std::vector<std::int64_t>& evaluations = course(model).evaluations;
  const std::size_t counted = std::min(evaluations.size(), std::size_t(how.counted));
  note(model, "parameters", double(parameter_count(module)));
  note(
      model, "NFE",
      std::accumulate(evaluations.end() - std::ptrdiff_t(counted), evaluations.end(), 0.0) / double(counted));
  note(model, "seconds", history.seconds);
  if (options_.folder)
    save_module(*options_.folder / file_name(model), module,
                {{"experiment", experiment_.name}, {"model", model}});
  return history;
}

Run::Course& Run::course_of(const std::string& model) {
  const auto found =
      std::find_if(courses_.begin(), courses_.end(), [&](const Course& each) { return each.model == model; });
  return found == courses_.end() ? courses_.emplace_back(Course{model, {}}) : *found;
}

void Run::log(const std::string& model, const FitRecord& record) {
  FitHistory& history = course_of(model).history;
  history.losses.push_back(record.loss);
  history.evaluations.push_back(record.evaluations);
  history.backward_evaluations.push_back(record.backward_evaluations);
  history.seconds = record.seconds;
  if (log_) log_->write(model, record);
}

const FitHistory& Run::course(const std::string& model) const {
  for (const Course& each : courses_) {
    if (each.model == model) return each.history;
  }
  throw Error(text("the experiment `", experiment_.name, "` has not trained a model `", model, "`"));
}

report::Section& Run::section_of(const std::string& title) {
  auto found = std::find_if(sections_.begin(), sections_.end(),
                            [&](const report::Section& each) { return each.title == title; });
  if (found == sections_.end()) found = sections_.insert(found, report::Section{.title = title});
  return *found;
}

void Run::show(const std::string& section, report::Figure figure) {
  section_of(section).figures.push_back(std::move(figure));
}

void Run::show(const std::string& section, report::Table table) {
  section_of(section).tables.push_back(std::move(table));
}

void Run::note(const std::string& model, const std::string& figure, double value) {
  const auto found = std::find_if(metrics_.models.begin(), metrics_.models.end(),
                                  [&](const ModelFigures& each) { return each.name == model; });
  if (found == metrics_.models.end()) {
    metrics_.models.push_back({model, {{figure, value}}});
  } else {
    found->figures.emplace_back(figure, value);
  }
}

double Run::figure(const std::string& model, const std::string& name) const {
  for (const ModelFigures& each : metrics_.models) {
    if (each.name != model) continue;
    for (const auto& [figure, value] : each.figures) {
      if (figure == name) return value;
    }
  }
  throw Error(
      text("the experiment `", experiment_.name, "` has no figure `", name, "` of a model `", model, "`"));
}

void Run::claim_below(const std::string& claim, double value, double threshold) {
  metrics_.verdicts.push_back({claim, value, threshold, value < threshold});
}

void Run::claim_above(const std::string& claim, double value, double threshold) {
  metrics_.verdicts.push_back({claim, value, threshold, value >= threshold});
}

void Run::claim_true(const std::string& claim, bool holds) {
  metrics_.verdicts.push_back({claim, holds ? 1.0 : 0.0, 1, holds});
}

std::vector<std::string> Run::deviations() const {
  std::vector<std::string> found;
  for (const Setting& setting : experiment_.settings) {
    const double value = number(setting.name);
    if (value == setting.paper) continue;
    found.push_back(text(setting.name, " ", report::readable(value), " where the paper's size has ",
                         report::readable(setting.paper), ": ", setting.meaning));
  }
  return found;
}

report::Section Run::training_section() const {
  std::vector<report::TrainingCurve> curves;
  for (const auto& [model, history] : courses_) {
    report::TrainingCurve curve{.model = model, .loss = history.losses};
    for (std::size_t i = 0; i < history.losses.size(); ++i) {
      curve.iterations.push_back(double(i + 1));
      curve.evaluations.push_back(double(history.evaluations[i]));
      curve.backward_evaluations.push_back(double(history.backward_evaluations[i]));
    }
    curves.push_back(std::move(curve));
  }
  report::Section section{.title = "Training"};
  if (!curves.empty()) section.figures.push_back(report::training_curves(training_caption(curves), curves));
  section.tables.push_back(figures_table(metrics_));
  return section;
}

report::Page Run::page() const {
  report::Page page{.title = experiment_.title,
                    .subtitle = text(experiment_.id, ", ", metrics_.size, " size, seed ", metrics_.seed),
                    .claim = experiment_.claim,
                    .deviations = deviations(),
                    .sections = sections_};
  for (const ClaimVerdict& each : metrics_.verdicts)
    page.verdicts.push_back({each.claim, each.value, each.threshold, each.holds});
  page.configuration.emplace_back("solver", solver().method->name);
  page.configuration.emplace_back("gradient", gradient_name());
  for (const Choice& each : experiment_.choices)
    page.configuration.emplace_back(each.name, text(choice(each.name), ", ", each.meaning));
  for (const Setting& setting : experiment_.settings) {
    page.configuration.emplace_back(setting.name,
                                    text(report::readable(number(setting.name)), ", ", setting.meaning));
  }
  page.sections.push_back(training_section());
  return page;
}

}  // namespace fathom::experiments
