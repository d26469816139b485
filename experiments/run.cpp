#include "experiments/run.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>

#include "fathom/support/error.hpp"
#include "fathom/support/nearest.hpp"
#include "fathom/train/model.hpp"

namespace fathom::experiments {

namespace {

std::vector<std::string> names_of(const std::vector<Setting>& settings) {
  std::vector<std::string> names;
  for (const Setting& setting : settings) names.push_back(setting.name);
  return names;
}

/// "data-controlled.safetensors": what is no letter or digit becomes a hyphen.
std::string file_name(const std::string& model) {
  std::string name;
  for (const char c : model) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name + ".safetensors";
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

void check_settings(const Experiment& experiment, const std::map<std::string, double>& set) {
  const std::vector<std::string> known = names_of(experiment.settings);
  for (const auto& [name, value] : set) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string listed;
    for (const std::string& each : std::set(known.begin(), known.end()))
      listed += (listed.empty() ? "" : ", ") + each;
    throw InvalidArgument(text("`", experiment.name, "` has no setting `", name, "`",
                               did_you_mean(name, known), " (known: ", listed, ")"));
  }
}

Run::Run(const Experiment& experiment, const RunOptions& options)
    : experiment_(experiment), options_(options) {
  check_settings(experiment, options.set);
  metrics_.experiment = experiment.name;
  metrics_.size = size_name(options.size);
  metrics_.seed = options.seed;
  if (options.folder) log_ = std::make_unique<MetricsLog>(*options.folder);
  torch::manual_seed(options.seed);
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

void Run::train(const std::string& model, torch::nn::Module& module,
                const std::function<Tensor(std::int64_t)>& loss, const How& how) {
  FitOptions options{.iterations = how.iterations > 0 ? how.iterations : count("iterations"),
                     .optimizer = how.optimizer,
                     .learning_rate = how.learning_rate > 0 ? how.learning_rate : number("learning-rate"),
                     .weight_decay = number("weight-decay"),
                     .schedule = how.schedule,
                     .report = how.report,
                     .title = experiment_.name + "  " + model,
                     .quiet = options_.quiet};
  options.observer = [&](const FitRecord& record) { return log(model, record), true; };
  fit(module, loss, options);
  note(model, "parameters", double(parameter_count(module)));
  note(model, "NFE", double(course(model).evaluations.back()));
  note(model, "seconds", course(model).seconds);
  if (!options_.folder) return;
  save_module(*options_.folder / file_name(model), module,
              {{"experiment", experiment_.name}, {"model", model}});
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

void Run::show(const std::string& section, report::Figure figure) {
  auto found = std::find_if(sections_.begin(), sections_.end(),
                            [&](const report::Section& each) { return each.title == section; });
  if (found == sections_.end()) found = sections_.insert(found, report::Section{.title = section});
  found->figures.push_back(std::move(figure));
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
  page.configuration.emplace_back("gradient", std::array{"discrete", "adjoint", "interpolated adjoint",
                                                         "unrolled"}[sensitivity().index()]);
  for (const Setting& setting : experiment_.settings) {
    page.configuration.emplace_back(setting.name,
                                    text(report::readable(number(setting.name)), ", ", setting.meaning));
  }
  page.sections.push_back(training_section());
  return page;
}

}  // namespace fathom::experiments
