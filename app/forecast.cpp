/// `fathom forecast MODEL --from data.csv --until T --every dt`: where learned dynamics lead.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "commands.hpp"
#include "fathom/report/page.hpp"
#include "fathom/train/model.hpp"
#include "model_table.hpp"
#include "output.hpp"

namespace fathom::app {

namespace {

constexpr double most_times = 10'000'000;

struct Request {
  std::string model, from, series, page;
  double until = 0, every = 0, start = INFINITY;
  OutputOptions output;
};

/// One course from its start on: what was forecast, and what was observed.
struct Forecast {
  std::string name;
  std::vector<double> times;
  Tensor states;  // (times, columns)
  std::vector<double> later_times;
  Tensor later_predicted, later_observed;  // (later times, columns)
};

/// From `start` in steps of `every`, up to `until` and with it where that is a whole number of steps.
std::vector<double> times_of(double start, double until, double every) {
  constexpr double epsilon = std::numeric_limits<double>::epsilon();
  // What the numbers of the command line, their difference and the division lose, in steps.
  const double rounding = 1e-9 + 2 * epsilon * (std::abs(start) + std::abs(until)) / every;
  const auto steps = std::int64_t(std::floor((until - start) / every + rounding));
  std::vector<double> times;
  for (std::int64_t i = 0; i <= steps; ++i) times.push_back(std::min(start + double(i) * every, until));
  return times;
}

Forecast forecast_one(Model& model, const Course& course, const Request& request) {
  const auto after = std::upper_bound(course.times.begin(), course.times.end(), request.start);
  require(after != course.times.begin(), "`--start ", request.start, "` is before the first observation, at ",
          course.times.front());
  const std::int64_t row = after - course.times.begin() - 1;
  const double start = course.times[std::size_t(row)];
  require(request.until > start, "`--until ", request.until, "` must be after the observation at ", start,
          " that the forecast starts from");
  require((request.until - start) / request.every <= most_times, "`--every ", request.every,
          "` gives more than ", most_times, " times until ", request.until);
  const Tensor from = course.states.narrow(0, row, 1);
  Forecast forecast{.name = course.name, .times = times_of(start, request.until, request.every)};
  forecast.states = model->forecast(from, forecast.times).select(1, 0);

  std::vector<double> known = {start};
  for (auto time = after; time != course.times.end() && *time <= request.until; ++time)
    known.push_back(*time);
  const auto count = std::int64_t(known.size()) - 1;
  if (count > 0) {
    forecast.later_predicted = model->forecast(from, known).select(1, 0).narrow(0, 1, count);
    forecast.later_observed = course.states.narrow(0, row + 1, count);
    forecast.later_times.assign(known.begin() + 1, known.end());
  }
  return forecast;
}

Figures figures(const std::vector<Forecast>& forecasts, const ModelSpec& spec) {
  std::vector<Tensor> errors;
  for (const Forecast& forecast : forecasts) {
    if (forecast.later_predicted.defined())
      errors.push_back(forecast.later_predicted - forecast.later_observed);
  }
  if (errors.empty()) return {};
  const Tensor error = torch::cat(errors);  // (observations, columns)
  Figures all = {{"later observations", double(error.size(0))}};
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    all.emplace_back("rmse of " + spec.inputs[i],
                     std::sqrt(error.select(1, std::int64_t(i)).square().mean().item<double>()));
  return all;
}

std::vector<double> column(const Tensor& states, std::int64_t place) {
  const Tensor values = states.select(1, place).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

report::Page page(const std::vector<Forecast>& forecasts, const ModelSpec& spec, const Figures& figures) {
  std::vector<report::LinePanel> panels;
  for (const Forecast& forecast : forecasts) {
    for (std::int64_t i = 0; i < spec.input_features(); ++i) {
      const std::string& name = spec.inputs[std::size_t(i)];
      report::LinePanel panel{
          .title = forecast.name.empty() ? name : forecast.name + ", " + name,
          .lines = {{.name = "forecast", .x = forecast.times, .y = column(forecast.states, i)}},
          .y_title = name};
      if (!forecast.later_times.empty())
        panel.lines.push_back({.name = "observed",
                               .x = forecast.later_times,
                               .y = column(forecast.later_observed, i),
                               .dashed = true});
      panels.push_back(panel);
    }
  }
  std::string finding;
  for (const auto& [name, value] : figures)
    finding += text(finding.empty() ? "" : ", ", name, " ", report::readable(value));
  return {.title = "Forecast",
          .claim =
              text("From one observation, ", forecasts.front().times.back() - forecasts.front().times.front(),
                   " units of ", spec.time.column, " ahead."),
          .sections = {
              {.title = "Forecast",
               .figures = {report::lines({.title = "Forecast and observed",
                                          .idea = "Where the learned dynamics lead, in one solve.",
                                          .finding = finding},
                                         {.panels = panels, .x = {.title = spec.time.column}, .y = {}})}}}};
}

void forecast(const Request& request) {
  Model model = load(request.model).model;
  const ModelSpec& spec = model->spec();
  require(spec.task == Task::series, "`", request.model, "` is for ", name_of(spec.task),
          "; only the model of a series can forecast");
  std::vector<Forecast> forecasts;
  const Words series = request.series.empty() ? Words() : Words{request.series};
  OtherColumns others{.needed = series, .categories = series};
  others.needed.push_back(spec.time.column);
  const Table table = read_for_model(request.from, spec, others);
  for (const Course& course : courses_of(table, spec.inputs, spec.time.column, request.series))
    forecasts.push_back(forecast_one(model, course, request));

  Answer answer{.figures = figures(forecasts, spec), .report = model->report()};
  if (!request.series.empty()) answer.header.push_back(request.series);
  answer.header.push_back(spec.time.column);
  answer.header.insert(answer.header.end(), spec.inputs.begin(), spec.inputs.end());
  for (const Forecast& each : forecasts) {
    for (const auto& state :
         rows_of(torch::column_stack({torch::tensor(each.times, torch::kFloat64), each.states}))) {
      answer.rows.emplace_back();
      if (!request.series.empty()) answer.rows.back().emplace_back(each.name);
      answer.rows.back().insert(answer.rows.back().end(), state.begin(), state.end());
    }
  }
  if (!request.page.empty()) report::write_page(request.page, page(forecasts, spec, answer.figures));
  give_out(answer, request.output);
}

}  // namespace

void add_forecast(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("forecast", "Where the learned dynamics of a series lead");
  command->add_option("model", request->model, "A model.safetensors of `fathom train --time COLUMN`")
      ->required();
  command->add_option("--from", request->from, "Table with the observations to start from")
      ->required()
      ->type_name("FILE");
  command->add_option("--until", request->until, "Time at which the forecast ends")->required();
  command->add_option("--every", request->every, "Interval between rows")
      ->required()
      ->check(CLI::PositiveNumber);
  command->add_option("--start", request->start,
                      "Start at the last observation up to this time; later ones judge the forecast. "
                      "Default: the last of all");
  command->add_option("--series", request->series, "The column that tells several series apart")
      ->type_name("COLUMN");
  command->add_option("--report", request->page, "A page with the curves")->type_name("FILE");
  add_output(*command, request->output);
  command->footer(
      "Examples:\n"
      "  fathom forecast runs/lynx/model.safetensors --from lynx.csv --until 1950 --every 0.5\n"
      "  fathom forecast runs/pendulum/model.safetensors --from pendulum.csv --series run --start 10 --until "
      "30 --every 0.1 "
      "--report forecast.html");
  command->callback([request] { forecast(*request); });
}

}  // namespace fathom::app
