/// Figures with depth along x: trajectories over the field, theta(s), flows of densities.
#include <algorithm>
#include <cmath>

#include "fathom/report/page.hpp"
#include "fathom/report/sheet.hpp"
#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

json line_look(double width) {
  return {{"stroke", {{"scale", "colour"}, {"field", "label"}}},
          {"strokeDash", {{"scale", "dash"}, {"field", "label"}}},
          {"strokeWidth", constant(width)},
          {"fill", constant("transparent")}};
}

const std::string& label_at(const std::vector<std::string>& labels, int index) {
  require(index >= 0 && std::size_t(index) < labels.size(), "a label must be one of the figure's ",
          labels.size(), " labels, got index ", index);
  return labels[std::size_t(index)];
}

json curve_row(const std::string& label, const Curve& curve, const Window& window) {
  return {{"label", label}, {"path", path(thinned(curve.x, curve.y, 200), window)}};
}

/// Streamlines of (1, f) in the plane of depth and state.
json slope_mark(const Grid& slopes, const Window& window) {
  const VectorGrid field{.x = slopes.x,
                         .y = slopes.y,
                         .columns = slopes.columns,
                         .rows = slopes.rows,
                         .u = std::vector<double>(slopes.values.size(), 1.0),
                         .v = slopes.values};
  return path_mark(path(streamlines(field), window),
                   {{"stroke", constant("var(--faint)")}, {"strokeWidth", constant(1)}});
}

Window window_of(const DepthTrajectories& data) {
  Extent depths, states;
  for (const DepthPanel& panel : data.panels) {
    for (const auto* curves : {&panel.trajectories, &panel.references}) {
      for (const Curve& curve : *curves) {
        depths.include(curve.x);
        states.include(curve.y);
      }
    }
  }
  return {depths.range(0), states.range()};
}

}  // namespace

Figure depth_trajectories(const Caption& caption, const DepthTrajectories& data) {
  const Window window = window_of(data);
  Sheet sheet{.labels = data.labels, .symbol = "stroke"};
  std::size_t count = 0;
  for (const DepthPanel& panel : data.panels) {
    json rows = json::array();
    for (const Curve& curve : panel.trajectories)
      rows.push_back(curve_row(label_at(data.labels, curve.label), curve, window));
    count += panel.trajectories.size();
    for (const Curve& curve : panel.references)
      rows.push_back(curve_row(data.reference_title, curve, window));
    if (!panel.references.empty()) sheet.dashed_labels = {data.reference_title};
    Panel drawn{panel.title, window, data.depth_title, data.state_title};
    drawn.data = {{{"name", "curves"}, {"values", rows}}};
    if (!panel.slopes.values.empty()) drawn.marks.push_back(slope_mark(panel.slopes, window));
    drawn.marks.push_back(path_mark({{"data", "curves"}}, line_look(1.6)));
    sheet.panels.push_back(std::move(drawn));
  }
  return {caption,
          text(count, " trajectories of the state over depth for ", titles(data.panels),
               ", drawn over the vector field where it is given."),
          specification(sheet)};
}

Figure parameters_over_depth(const Caption& caption, const ParametersOverDepth& data) {
  Extent depths, values;
  std::size_t most = 0;
  for (const ParameterPanel& panel : data.panels) {
    depths.include(panel.depths);
    for (const auto& component : panel.components) values.include(component);
    most = std::max(most, panel.components.size());
  }
  const Window window{depths.range(0), values.range()};
  Sheet sheet;
  for (const ParameterPanel& panel : data.panels) {
    json rows = json::array();
    for (std::size_t i = 0; i < panel.components.size(); ++i) {
      rows.push_back({{"colour", text("var(--c", i % 8 + 1, ")")},
                      {"component", i},
                      {"path", path(thinned(panel.depths, panel.components[i]), window)}});
    }
    Panel drawn{panel.title, window, "depth s", data.value_title, true};
    drawn.data = {{{"name", "components"}, {"values", rows}}};
    drawn.marks = {
        path_mark({{"data", "components"}}, {{"stroke", {{"field", "colour"}}},
                                             {"strokeWidth", constant(most > 12 ? 0.9 : 1.5)},
                                             {"tooltip", signal("{component: datum.component}")}})};
    sheet.panels.push_back(std::move(drawn));
  }
  return {caption,
          text("Up to ", most, " components of the parameters over depth for ", titles(data.panels), "."),
          specification(sheet)};
}

namespace {

/// Prior, flow and posterior share a panel's width: a fifth each for the densities.
constexpr double strip = 0.2;

/// A density drawn sideways from a strip's base, in shares of the panel's width.
Polyline sideways(const Curve& density, double base, double direction, double highest) {
  const Polyline line = thinned(density.x, density.y, 160);
  Polyline result;
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    if (line.y[i] < 0.004 * highest) continue;  // tails would only thicken the strip's base
    result.x.push_back(base + direction * strip * std::min(0.92 * line.y[i] / highest, 1.0));
    result.y.push_back(line.x[i]);
  }
  return result;
}

struct DensityScales {
  Range depths;
  Window window;  // x in shares of the panel's width
  double highest;
};

DensityScales scales_of(const DensityFlow& data) {
  Extent depths, states, densities;
  for (const DensityPanel& panel : data.panels) {
    for (const DensityCondition& condition : panel.conditions) {
      for (const Curve* curve : {&condition.prior, &condition.posterior, &condition.target})
        states.include(curve->x);
      densities.include(condition.prior.y).include(condition.target.y);
      // A posterior that collapsed onto a point must not flatten all others; it is cut where its strip ends.
      if (condition.target.y.empty()) densities.include(condition.posterior.y);
      for (const Curve& curve : condition.trajectories) {
        depths.include(curve.x);
        states.include(curve.y);
      }
    }
  }
  return {depths.range(0), {{0, 1}, states.range(0.02)}, std::max(1e-300, densities.range(0).high)};
}

/// The flow between the strips: depth from `strip` to `1 - strip`.
Polyline between_strips(const Curve& curve, const Range& depths) {
  Polyline line = thinned(curve.x, curve.y, 120);
  for (double& s : line.x) s = strip + (1 - 2 * strip) * (s - depths.low) / (depths.high - depths.low);
  return line;
}

/// Ticks at the ends of the flow, between "prior" and "posterior".
json strip_axis(const Range& depths) {
  const std::string names =
      text("{'0.1': 'prior', '", strip, "': '", readable(depths.low), "', '0.5': 'depth s', '", 1 - strip,
           "': '", readable(depths.high), "', '0.9': 'posterior'}");
  json axis{
      {"orient", "bottom"}, {"scale", "x"}, {"ticks", false}, {"values", {0.1, strip, 0.5, 1 - strip, 0.9}}};
  axis["encode"]["labels"]["update"]["text"] = signal(names + "[format(datum.value, '.1f')]");
  return axis;
}

Panel density_panel(const DensityPanel& panel, const DensityScales& scales) {
  json paths = json::array(), areas = json::array(), targets = json::array();
  for (const DensityCondition& condition : panel.conditions) {
    const auto row = [&](const Polyline& line) {
      return json{{"label", condition.label}, {"path", path(line, scales.window)}};
    };
    for (const Curve& curve : condition.trajectories)
      paths.push_back(row(between_strips(curve, scales.depths)));
    areas.push_back(row(sideways(condition.prior, strip, -1, scales.highest)));
    areas.push_back(row(sideways(condition.posterior, 1 - strip, 1, scales.highest)));
    if (!condition.target.x.empty())
      targets.push_back(row(sideways(condition.target, 1 - strip, 1, scales.highest)));
  }
  Panel drawn{panel.title, scales.window, "", "state z"};
  drawn.x_axis = strip_axis(scales.depths);
  drawn.data = {{{"name", "paths"}, {"values", paths}},
                {{"name", "areas"}, {"values", areas}},
                {{"name", "targets"}, {"values", targets}}};
  const json colour{{"scale", "colour"}, {"field", "label"}};
  drawn.marks = {
      path_mark({{"data", "paths"}},
                {{"stroke", colour}, {"strokeWidth", constant(0.9)}, {"strokeOpacity", constant(0.55)}}),
      path_mark({{"data", "areas"}}, {{"stroke", colour},
                                      {"fill", colour},
                                      {"fillOpacity", constant(0.3)},
                                      {"strokeWidth", constant(1.2)}}),
      path_mark({{"data", "targets"}}, {{"stroke", constant("var(--ink)")},
                                        {"strokeDash", constant({4, 3})},
                                        {"strokeWidth", constant(1.2)}})};
  return drawn;
}

}  // namespace

Figure density_flow(const Caption& caption, const DensityFlow& data) {
  const DensityScales scales = scales_of(data);
  Sheet sheet{.smallest_panel = 300, .largest_panel = 520, .symbol = "stroke"};
  for (const DensityPanel& panel : data.panels) {
    for (const DensityCondition& condition : panel.conditions) {
      if (std::find(sheet.labels.begin(), sheet.labels.end(), condition.label) == sheet.labels.end())
        sheet.labels.push_back(condition.label);
      if (!condition.target.x.empty()) sheet.dashed_labels = {"target"};
    }
    sheet.panels.push_back(density_panel(panel, scales));
  }
  return {caption,
          text("Prior density, trajectories over depth and posterior density of ", listed(sheet.labels),
               " for ", titles(data.panels), "."),
          specification(sheet)};
}

}  // namespace fathom::report
