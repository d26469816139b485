#include "train_report.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

namespace fathom::app {

namespace {

constexpr std::int64_t map_cells = 80;      // of a decision or density map, along each axis
constexpr std::int64_t curve_points = 200;  // of a forecast
constexpr std::size_t shown_courses = 3;    // of a series
constexpr std::int64_t shown_columns = 4;   // of a series
constexpr std::int64_t shown_rows = 400;    // of a regression

using report::Caption;
using report::readable;

std::vector<double> numbers(const Tensor& tensor) {
  const Tensor plain = tensor.detach().to(torch::kFloat64).contiguous().flatten();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

std::optional<double> figure_named(const Figures& figures, const std::string& name) {
  for (const auto& [each, value] : figures) {
    if (each == name) return value;
  }
  return {};
}

/// The part that the model was trained on least.
struct HeldOut {
  std::string name;
  Rows rows;
  std::vector<Course> courses;
};
HeldOut held_out(const TaskData& data) {
  if (data.rows.test.inputs.defined() || !data.courses.test.empty())
    return {"test", data.rows.test, data.courses.test};
  if (data.rows.validation.inputs.defined() || !data.courses.validation.empty())
    return {"validation", data.rows.validation, data.courses.validation};
  return {"training", data.rows.train, data.courses.train};
}

report::Section course_of_training(const std::filesystem::path& log) {
  report::TrainingCurve curve{.model = "training"};
  std::map<std::string, report::Line> validations;
  std::ifstream in(log);
  for (std::string text_line; std::getline(in, text_line);) {
    const auto record = nlohmann::json::parse(text_line, nullptr, false);
    if (!record.is_object() || !record["loss"].is_number()) continue;
    const double iteration = record["iteration"].get<double>();
    curve.iterations.push_back(iteration);
    curve.loss.push_back(record["loss"].get<double>());
    curve.evaluations.push_back(record["evaluations"].get<double>());
    curve.backward_evaluations.push_back(record["backward_evaluations"].get<double>());
    for (const auto& [name, value] : record.items()) {
      if (!name.starts_with("validation ") || !value.is_number()) continue;
      validations[name].x.push_back(iteration);
      validations[name].y.push_back(value.get<double>());
    }
  }
  report::Section section{.title = "Training"};
  if (curve.loss.empty()) return section;
  section.figures.push_back(report::training_curves(
      {.title = "Loss and evaluations of the field",
       .idea = "What each iteration reached, and how many evaluations its solve took forwards and backwards.",
       .finding = text("The loss went from ", readable(curve.loss.front()), " to ",
                       readable(curve.loss.back()), " in ", curve.loss.size(), " iterations.")},
      {curve}));
  std::vector<report::LinePanel> panels;
  for (auto& [name, line] : validations) {
    line.name = name;
    panels.push_back({.title = name, .lines = {line}, .y_title = name});
  }
  if (!panels.empty())
    section.figures.push_back(report::lines(
        {.title = "Validation", .idea = "The same on rows that the model is not trained on.", .finding = {}},
        {.panels = panels, .x = {.title = "iteration"}, .y = {}}));
  return section;
}

report::Table confusion(const Tensor& answers, const Tensor& truth, const std::vector<std::string>& labels,
                        const std::string& part) {
  const auto count = std::int64_t(labels.size());
  const Tensor cells = torch::bincount(truth * count + answers, {}, count * count).view({count, count});
  report::Table table{
      .caption = {.title = "Confusion",
                  .idea = text("Rows: the class in the ", part, " data. Columns: the model's answer."),
                  .finding = text((answers == truth).sum().item<std::int64_t>(), " of ", truth.size(0),
                                  " are right.")}};
  table.columns = {"class"};
  for (std::int64_t i = 0; i < count; ++i) {
    table.columns.push_back(labels[std::size_t(i)]);
    table.rows.push_back({labels[std::size_t(i)]});
    for (std::int64_t j = 0; j < count; ++j)
      table.rows.back().push_back(text(cells[i][j].item<std::int64_t>()));
  }
  return table;
}

/// A regular grid over the data's first two columns, in the units of the data.
struct Plane {
  report::Range x, y;
  Tensor points;  // (rows * columns, 2)
};
Plane plane_around(const Tensor& inputs) {
  const auto range = [&](std::int64_t column) -> report::Range {
    const Tensor values = inputs.select(1, column);
    const double low = values.min().item<double>(), high = values.max().item<double>();
    const double margin = 0.1 * std::max(high - low, 1e-9);
    return {low - margin, high + margin};
  };
  const report::Range x = range(0), y = range(1);
  const auto grid = torch::meshgrid({torch::linspace(y.low, y.high, map_cells, torch::kFloat64),
                                     torch::linspace(x.low, x.high, map_cells, torch::kFloat64)},
                                    "ij");
  return {x, y, torch::stack({grid[1].flatten(), grid[0].flatten()}, 1)};
}

report::Grid grid_of(const Plane& plane, const Tensor& values) {
  return {.x = plane.x, .y = plane.y, .columns = map_cells, .rows = map_cells, .values = numbers(values)};
}

report::Section classification(Model& model, const HeldOut& part) {
  const ModelSpec& spec = model->spec();
  report::Section section{.title = "Answers"};
  section.tables.push_back(
      confusion(answers(model, part.rows.inputs).argmax(1), part.rows.targets, spec.labels, part.name));
  if (spec.inputs.size() != 2 || spec.labels.size() != 2) return section;
  const Tensor inputs = unstandardised(part.rows.inputs, spec.input_scale);
  const Plane plane = plane_around(inputs);
  const Tensor odds = model->predict(plane.points).log();
  report::Points points{.x = numbers(inputs.select(1, 0)), .y = numbers(inputs.select(1, 1))};
  for (const double label : numbers(part.rows.targets)) points.labels.push_back(int(label));
  section.figures.push_back(report::decision_map(
      {.title = "Decision map",
       .idea = "What the model answers all over the plane, with the boundary between its answers.",
       .finding = {}},
      {.labels = spec.labels,
       .panels = {{.title = "model",
                   .scores = grid_of(plane, odds.select(1, 1) - odds.select(1, 0)),
                   .samples = points}},
       .x_title = spec.inputs[0],
       .y_title = spec.inputs[1]}));
  return section;
}

report::Section regression(Model& model, const HeldOut& part) {
  const ModelSpec& spec = model->spec();
  const std::int64_t count = std::min(shown_rows, part.rows.inputs.size(0));
  const Tensor predicted =
      unstandardised(answers(model, part.rows.inputs.narrow(0, 0, count)), spec.target_scale);
  const Tensor observed = unstandardised(part.rows.targets.narrow(0, 0, count), spec.target_scale);
  std::vector<report::LinePanel> panels;
  for (std::int64_t i = 0; i < observed.size(1); ++i) {
    const Tensor order = observed.select(1, i).argsort();
    std::vector<double> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 1);
    const auto values = [&](const Tensor& all) { return numbers(all.select(1, i).index_select(0, order)); };
    const std::string& name = spec.targets[std::size_t(i)];
    panels.push_back({.title = name,
                      .lines = {{.name = "predicted", .x = ranks, .y = values(predicted), .points = true},
                                {.name = "observed", .x = ranks, .y = values(observed)}},
                      .y_title = name});
  }
  const double worst = (predicted - observed).abs().max().item<double>();
  return {.title = "Answers",
          .figures = {
              report::lines({.title = "Predicted and observed",
                             .idea = text("Rows of the ", part.name, " data, sorted by what was observed."),
                             .finding = text("The largest error is ", readable(worst), ".")},
                            {.panels = panels, .x = {.title = "row, sorted"}, .y = {}})}};
}

report::Section series(Model& model, const HeldOut& part) {
  const torch::NoGradGuard no_graph;
  const ModelSpec& spec = model->spec();
  std::vector<report::LinePanel> panels;
  for (std::size_t c = 0; c < std::min(shown_courses, part.courses.size()); ++c) {
    const Course& course = part.courses[c];
    const double first = course.times.front(), last = course.times.back();
    std::vector<double> depths;
    for (std::int64_t i = 0; i < curve_points; ++i)
      depths.push_back(first + (last - first) * double(i) / double(curve_points - 1));
    const Tensor start = course.states.narrow(0, 0, 1);
    const Tensor forecast =
        unstandardised(model->trajectory(start, depths).select(1, 0).to(torch::kFloat64), spec.input_scale);
    const Tensor observed = unstandardised(course.states, spec.input_scale);
    const auto times = [&](std::vector<double> all) {
      for (double& time : all) time = spec.time.origin + spec.time.unit * time;
      return all;
    };
    for (std::int64_t i = 0; i < std::min(shown_columns, observed.size(1)); ++i) {
      const std::string& column = spec.inputs[std::size_t(i)];
      panels.push_back(
          {.title = course.name.empty() ? column : course.name + ", " + column,
           .lines = {{.name = "forecast", .x = times(depths), .y = numbers(forecast.select(1, i))},
                     {.name = "observed",
                      .x = times(course.times),
                      .y = numbers(observed.select(1, i)),
                      .dashed = true,
                      .points = true}},
           .y_title = column});
    }
  }
  return {.title = "Forecasts",
          .figures = {report::lines({.title = "Forecast and observed",
                                     .idea = text("From the first observation of the ", part.name,
                                                  " data alone to its end, in one solve."),
                                     .finding = {}},
                                    {.panels = panels, .x = {.title = spec.time.column}, .y = {}})}};
}

report::Section density(Model& model, const HeldOut& part) {
  const ModelSpec& spec = model->spec();
  report::Section section{.title = "Density"};
  const Tensor inputs = unstandardised(part.rows.inputs, spec.input_scale);
  if (spec.inputs.size() == 1) {
    const double low = inputs.min().item<double>(), high = inputs.max().item<double>();
    const Tensor points = torch::linspace(low, high, curve_points, torch::kFloat64).unsqueeze(1);
    section.figures.push_back(report::lines(
        {.title = "Density", .idea = "What the model takes for likely.", .finding = {}},
        {.panels =
             {{.title = "model",
               .lines = {{.name = "p", .x = numbers(points), .y = numbers(model->predict(points).exp())}}}},
         .x = {.title = spec.inputs[0]},
         .y = {.title = "density"}}));
  }
  if (spec.inputs.size() == 2) {
    const Plane plane = plane_around(inputs);
    section.figures.push_back(report::heat_map(
        {.title = "Density", .idea = "What the model takes for likely.", .finding = {}},
        {.panels = {{.title = "model", .values = grid_of(plane, model->predict(plane.points).exp())}},
         .x_title = spec.inputs[0],
         .y_title = spec.inputs[1],
         .value_title = "density"}));
  }
  return section;
}

report::Section answers_section(Model& model, const TaskData& data) {
  const HeldOut part = held_out(data);
  try {
    switch (data.spec.task) {
      case Task::classification: return classification(model, part);
      case Task::regression: return regression(model, part);
      case Task::series: return series(model, part);
      case Task::density: return density(model, part);
    }
  } catch (const Error& failure) {
    return {.title = "Answers",
            .introduction = text("The ", part.name, " data cannot be shown: ", failure.what())};
  }
  return {};
}

struct Configuration {
  std::vector<std::pair<std::string, std::string>> entries = {};
  void group(const char*) {}
  void operator()(const char* name, const std::string& value, const char*) {
    entries.emplace_back(name, value);
  }
  void operator()(const char* name, const Words& values, const char*) {
    std::string joined;
    for (const std::string& value : values) joined += (joined.empty() ? "" : ", ") + value;
    entries.emplace_back(name, joined);
  }
  void operator()(const char* name, const bool& value, const char*) {
    entries.emplace_back(name, value ? "yes" : "no");
  }
  template <class Number> void operator()(const char* name, const Number& value, const char*) {
    entries.emplace_back(name, text(value));
  }
};

std::string claim(const TaskData& data, const Figures& figures) {
  const std::string part = held_out(data).name;
  const std::string prefix = part == "training" ? "" : part + " ";
  for (const char* name : {"accuracy", "R2", "nll", "rmse", "loss"}) {
    if (const auto value = figure_named(figures, prefix + name))
      return text("On the ", part, " data the ", name, " is ", readable(*value), ".");
  }
  return {};
}

}  // namespace

report::Page train_page(Model& model, const TaskData& data, const TrainSettings& settings,
                        const Figures& figures, const std::filesystem::path& log) {
  Configuration configuration;
  describe(settings, configuration);
  report::Table table{.caption = {.title = "Figures", .idea = {}, .finding = {}},
                      .columns = {"figure", "value"}};
  for (const auto& [name, value] : figures) table.rows.push_back({name, readable(value)});
  return {
      .title = std::filesystem::path(settings.data).filename().string(),
      .subtitle = text(name_of(data.spec.task), ", seed ", settings.seed),
      .claim = claim(data, figures),
      .configuration = configuration.entries,
      .sections = {
          answers_section(model, data), course_of_training(log), {.title = "Figures", .tables = {table}}}};
}

}  // namespace fathom::app
