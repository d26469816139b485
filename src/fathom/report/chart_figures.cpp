/// Charts: lines, training curves, heat maps, comparisons.
#include <algorithm>
#include <cmath>

#include "fathom/report/sheet.hpp"
#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

json position(const char* axis, const char* field) { return {{"scale", axis}, {"field", field}}; }

/// Where a panel's lines go, bands included.
Window window_of(const std::vector<const LinePanel*>& panels, const Lines& data) {
  Extent x, y;
  for (const LinePanel* panel : panels) {
    for (const Line& line : panel->lines) {
      x.include(line.x);
      y.include(line.y);
      for (std::size_t i = 0; i < line.deviation.size(); ++i) {
        y.include(line.y.at(i) - line.deviation[i]).include(line.y.at(i) + line.deviation[i]);
      }
    }
  }
  const auto range = [](const Extent& extent, const Axis& axis, double margin) {
    return axis.range.value_or(axis.logarithmic ? extent.logarithmic_range() : extent.range(margin));
  };
  return {range(x, data.x, 0.02), range(y, data.y, 0.06), data.x.logarithmic, data.y.logarithmic};
}

Polyline band(const Line& line) {
  Polyline outline;
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    outline.x.push_back(line.x[i]);
    outline.y.push_back(line.y[i] + line.deviation.at(i));
  }
  for (std::size_t i = line.x.size(); i-- > 0;) {
    outline.x.push_back(line.x[i]);
    outline.y.push_back(line.y[i] - line.deviation[i]);
  }
  return outline;
}

Panel line_panel(const LinePanel& panel, const Lines& data, const Window& window) {
  json curves = json::array(), bands = json::array(), points = json::array();
  for (const Line& line : panel.lines) {
    curves.push_back({{"label", line.name},
                      {"dash", line.dashed ? json({5, 4}) : json({1, 0})},
                      {"path", path(thinned(line.x, line.y), window)}});
    if (!line.deviation.empty()) bands.push_back({{"label", line.name}, {"path", path(band(line), window)}});
    if (!line.points) continue;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      if (std::isfinite(line.y[i]))
        points.push_back({{"label", line.name}, {"x", line.x[i]}, {"y", line.y[i]}});
    }
  }
  const json colour{{"scale", "colour"}, {"field", "label"}};
  Panel drawn{panel.title, window, data.x.title, panel.y_title.empty() ? data.y.title : panel.y_title, true};
  drawn.data = {{{"name", "curves"}, {"values", curves}},
                {{"name", "bands"}, {"values", bands}},
                {{"name", "points"}, {"values", points}}};
  json dots{{"type", "symbol"}, {"from", {{"data", "points"}}}};
  dots["encode"]["update"] = {
      {"x", position("x", "x")},
      {"y", position("y", "y")},
      {"size", constant(36)},
      {"fill", colour},
      {"tooltip", signal("{line: datum.label, x: format(datum.x, '.4~g'), y: format(datum.y, '.4~g')}")}};
  drawn.marks = {path_mark({{"data", "bands"}}, {{"fill", colour}, {"fillOpacity", constant(0.2)}}),
                 path_mark({{"data", "curves"}}, {{"stroke", colour},
                                                  {"strokeDash", {{"field", "dash"}}},
                                                  {"strokeWidth", constant(1.8)},
                                                  {"tooltip", signal("{line: datum.label}")}}),
                 std::move(dots)};
  return drawn;
}

std::vector<std::string> names_of(const std::vector<LinePanel>& panels) {
  std::vector<std::string> names;
  for (const LinePanel& panel : panels) {
    for (const Line& line : panel.lines) {
      if (std::find(names.begin(), names.end(), line.name) == names.end()) names.push_back(line.name);
    }
  }
  return names;
}

}  // namespace

Figure lines(const Caption& caption, const Lines& data) {
  require(!data.panels.empty(), "a figure of lines needs at least one panel, got none");
  std::vector<const LinePanel*> shared;
  for (const LinePanel& panel : data.panels) {
    if (panel.y_title.empty()) shared.push_back(&panel);
  }
  const Window common = window_of(shared, data);
  Sheet sheet{.largest_panel = data.panels.size() == 1 ? 760 : 520,
              .labels = names_of(data.panels),
              .symbol = "stroke"};
  for (const LinePanel& panel : data.panels)
    sheet.panels.push_back(
        line_panel(panel, data, panel.y_title.empty() ? common : window_of({&panel}, data)));
  return {caption, text(data.y.title, " over ", data.x.title, " for ", listed(sheet.labels), "."),
          specification(sheet)};
}

Figure learned_depth(const Caption& caption, const LearnedDepth& data) {
  return lines(caption,
               {.panels = {{.title = "", .lines = data.lines}}, .x = {data.x_title}, .y = {"depth g(x)"}});
}

Figure training_curves(const Caption& caption, const std::vector<TrainingCurve>& models) {
  LinePanel loss{.title = "Loss", .lines = {}}, evaluations{.title = "NFE", .lines = {}};
  bool logarithmic = true, backward = false;
  for (const TrainingCurve& model : models) {
    loss.lines.push_back({.name = model.model, .x = model.iterations, .y = model.loss});
    for (const double value : model.loss) logarithmic = logarithmic && !(value < 0);
    const auto add = [&](const std::vector<double>& counts, bool dashed) {
      if (counts.size() == model.iterations.size() && !counts.empty())
        evaluations.lines.push_back(
            {.name = model.model, .x = model.iterations, .y = counts, .dashed = dashed});
    };
    add(model.evaluations, false);
    add(model.backward_evaluations, true);
    backward = backward || !model.backward_evaluations.empty();
  }
  if (backward) evaluations.title += " (dashed: backwards)";
  Lines data{.panels = {loss}, .x = {"iteration"}, .y = {"loss", logarithmic}};
  const Window loss_window = window_of({&loss}, data);
  Sheet sheet{.largest_panel = 520, .labels = names_of({loss}), .symbol = "stroke"};
  sheet.panels.push_back(line_panel(loss, data, loss_window));
  if (!evaluations.lines.empty()) {
    data.y = {"function evaluations"};
    sheet.panels.push_back(line_panel(evaluations, data, window_of({&evaluations}, data)));
  }
  return {caption, text("Loss and function evaluations over iterations of ", listed(sheet.labels), "."),
          specification(sheet)};
}

namespace {

/// At most `most` rows and columns, by taking every n-th.
Grid thinned(const Grid& grid, std::size_t most) {
  const std::size_t column_step = (grid.columns + most - 1) / most, row_step = (grid.rows + most - 1) / most;
  Grid result{.x = grid.x, .y = grid.y};
  for (std::size_t row = 0; row < grid.rows; row += row_step) {
    for (std::size_t column = 0; column < grid.columns; column += column_step)
      result.values.push_back(grid.values.at(row * grid.columns + column));
    ++result.rows;
  }
  result.columns = result.values.size() / std::max<std::size_t>(1, result.rows);
  return result;
}

/// Four significant digits, which serve a logarithmic scale too.
double significant(double value) {
  if (value == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 3);
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit) : std::round(value / unit) * unit;
}

Panel heat_panel(const HeatPanel& panel, const HeatMap& data) {
  const Grid grid = thinned(panel.values, 72);
  json cells = json::array();
  for (const double value : grid.values)
    cells.push_back(std::isfinite(value) ? json(significant(value)) : json());
  Panel drawn{panel.title, {grid.x, grid.y}, data.x_title, data.y_title};
  const std::string columns = text(grid.columns), rows = text(grid.rows);
  // Data are bare numbers: the place of each follows from its index.
  drawn.data = {
      {{"name", "cells"},
       {"values", cells},
       {"transform",
        {{{"type", "window"}, {"ops", {"row_number"}}, {"as", {"number"}}},
         {{"type", "formula"}, {"as", "column"}, {"expr", "(datum.number - 1) % " + columns}},
         {{"type", "formula"}, {"as", "row"}, {"expr", "floor((datum.number - 1) / " + columns + ")"}}}}}};
  json mark{{"type", "rect"}, {"from", {{"data", "cells"}}}};
  mark["encode"]["update"] = {{"x", signal("datum.column * panel_width / " + columns)},
                              {"width", signal("panel_width / " + columns + " + 0.4")},
                              {"y", signal("panel_height - (datum.row + 1) * panel_height / " + rows)},
                              {"height", signal("panel_height / " + rows + " + 0.4")},
                              {"fill", {{"scale", "heat"}, {"field", "data"}}},
                              {"tooltip", signal("{value: format(datum.data, '.3~g')}")}};
  drawn.marks = {std::move(mark)};
  return drawn;
}

/// Whether most values would have one colour on a linear scale.
bool spans_decades(const std::vector<HeatPanel>& panels, double highest) {
  std::vector<double> all;
  for (const HeatPanel& panel : panels)
    all.insert(all.end(), panel.values.values.begin(), panel.values.values.end());
  const auto middle = all.begin() + long(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return highest > 30 * *middle;
}

}  // namespace

Figure heat_map(const Caption& caption, const HeatMap& data) {
  Extent extent;
  for (const HeatPanel& panel : data.panels) extent.include(panel.values.values);
  Range values = extent.range(0);
  const bool both_signs = values.low < 0 && values.high > 0;
  if (both_signs) {
    const double largest = std::max(-values.low, values.high);
    values = {-largest, largest};
  }
  const bool logarithmic = values.low > 0 && spans_decades(data.panels, values.high);
  Sheet sheet{.smallest_panel = 260, .largest_panel = data.panels.size() == 1 ? 700 : 520};
  for (const HeatPanel& panel : data.panels) sheet.panels.push_back(heat_panel(panel, data));
  sheet.scales = {{{"name", "heat"},
                   {"type", logarithmic ? "log" : "linear"},
                   {"domain", {values.low, values.high}},
                   {"range", {{"scheme", both_signs ? "blueorange" : "viridis"}}},
                   {"zero", false}}};
  sheet.legends = {{{"fill", "heat"},
                    {"orient", "top"},
                    {"direction", "horizontal"},
                    {"title", in_lines(data.value_title, 24)},
                    {"titleLimit", 0},
                    {"gradientLength", signal("min(260, panel_width)")},
                    {"gradientThickness", 10},
                    {"offset", 22}}};
  return {caption,
          text(data.value_title, " over ", data.x_title, " and ", data.y_title, " for ", titles(data.panels),
               "; from ", values.low, " to ", values.high, "."),
          specification(sheet)};
}

namespace {

Panel measure_panel(const Measure& measure, const Comparison& data) {
  require(measure.values.size() == data.models.size(), "`", measure.title, "` needs one value a model, got ",
          measure.values.size(), " for ", data.models.size(), " models");
  Extent extent;
  extent.include(measure.values);
  json rows = json::array();
  for (std::size_t i = 0; i < measure.values.size(); ++i) {
    const double deviation = i < measure.deviations.size() ? measure.deviations[i] : 0;
    extent.include(measure.values[i] - deviation).include(measure.values[i] + deviation);
    if (!std::isfinite(measure.values[i])) continue;
    rows.push_back(
        {{"label", data.models[i]}, {"row", i}, {"value", measure.values[i]}, {"deviation", deviation}});
  }
  if (measure.threshold) extent.include(*measure.threshold);
  Panel drawn{measure.title,
              {measure.logarithmic ? extent.logarithmic_range() : extent.range(0.08),
               {-0.5, double(data.models.size()) - 0.5},
               measure.logarithmic},
              "",
              "",
              true};
  drawn.data = {{{"name", "measures"}, {"values", rows}}};
  const json middle = signal("(datum.row + 0.5) * panel_height / " + text(data.models.size()));
  json whisker{{"type", "rule"}, {"from", {{"data", "measures"}}}},
      dot{{"type", "symbol"}, {"from", {{"data", "measures"}}}};
  const char* least = measure.logarithmic ? "max(domain('x')[0], datum.value - datum.deviation)"
                                          : "datum.value - datum.deviation";
  whisker["encode"]["update"] = {{"x", signal(text("scale('x', ", least, ")"))},
                                 {"x2", signal("scale('x', datum.value + datum.deviation)")},
                                 {"y", middle},
                                 {"stroke", {{"scale", "colour"}, {"field", "label"}}},
                                 {"strokeWidth", constant(2)}};
  dot["encode"]["update"] = {
      {"x", position("x", "value")},
      {"y", middle},
      {"size", constant(90)},
      {"fill", {{"scale", "colour"}, {"field", "label"}}},
      {"tooltip", signal("{model: datum.label, value: format(datum.value, '.4~g'), deviation: "
                         "format(datum.deviation, '.2~g')}")}};
  drawn.marks = {std::move(whisker), std::move(dot)};
  if (measure.threshold) {
    json limit{{"type", "rule"}};
    limit["encode"]["update"] = {{"x", {{"scale", "x"}, {"value", *measure.threshold}}},
                                 {"y", constant(0)},
                                 {"y2", signal("panel_height")},
                                 {"stroke", constant("var(--ink)")},
                                 {"strokeDash", constant({4, 3})}};
    drawn.marks.push_back(std::move(limit));
  }
  return drawn;
}

}  // namespace

Figure comparison(const Caption& caption, const Comparison& data) {
  Sheet sheet{.height = text(24 * data.models.size() + 8), .smallest_panel = 180, .labels = data.models};
  std::string measured;
  for (const Measure& measure : data.measures) {
    sheet.panels.push_back(measure_panel(measure, data));
    sheet.panels.back().hide_y_labels = true;
    measured += (measured.empty() ? "" : ", ") + measure.title;
  }
  return {caption, text("Dots that compare ", listed(data.models), " by ", measured, "."),
          specification(sheet)};
}

}  // namespace fathom::report
