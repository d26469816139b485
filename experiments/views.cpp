#include "experiments/views.hpp"

#include <algorithm>
#include <memory>

#include "experiments/statistics.hpp"
#include "fathom/field/fields.hpp"

namespace fathom::experiments {

namespace {

constexpr std::size_t frames = 41, field_frames = 9, field_points = 25, theta_points = 201;

torch::ScalarType type_of(const torch::nn::Module& module) {
  return module.parameters().front().scalar_type();
}

report::VectorGrid vector_grid(NeuralOdeImpl& ode, double s, const Plane& window) {
  const Tensor rate = ode.rate(s, {}, window.grid(type_of(ode)));
  const report::Range axis{-window.half_width, window.half_width};
  return {axis, axis, window.points, window.points, values(rate.select(1, 0)), values(rate.select(1, 1))};
}

/// One grid where the field is the same at all depths, several otherwise.
std::vector<report::VectorGrid> vector_grids(NeuralOdeImpl& ode, double last, const Plane& window) {
  const Tensor z = window.grid(type_of(ode));
  const bool varies = !torch::equal(ode.rate(0.13 * last, {}, z), ode.rate(0.71 * last, {}, z));
  std::vector<report::VectorGrid> grids;
  for (double s : varies ? spaced(0, last, field_frames) : std::vector{0.0})
    grids.push_back(vector_grid(ode, s, window));
  return grids;
}

}  // namespace

std::vector<int> classes(const Tensor& labels) {
  std::vector<int> numbers;
  for (double label : values(labels)) numbers.push_back(label > 0 ? 1 : 0);
  return numbers;
}

Labelled some_of(const Labelled& samples, std::int64_t most) {
  const std::int64_t count = samples.inputs.size(0);
  const Tensor rows = torch::linspace(0, double(count - 1), std::min(count, most)).round().to(torch::kInt64);
  return {samples.inputs.index_select(0, rows), samples.labels.index_select(0, rows)};
}

report::FlowPanel flow_panel(const std::string& title, NeuralOdeImpl& ode, const Labelled& samples,
                             double last) {
  const torch::NoGradGuard no_graph;
  const Tensor states = ode.trajectory(samples.inputs, spaced(0, last, frames));
  report::FlowPanel panel{.title = title, .states = values(states), .labels = classes(samples.labels)};
  panel.inputs = values(samples.inputs);
  if (!ode.field()->is_controlled()) {
    const Plane window{.half_width = 1.05 * number(states.abs().max()), .points = field_points};
    panel.fields = vector_grids(ode, last, window);
  }
  return panel;
}

report::DecisionPanel decision_panel(const std::string& title,
                                     const std::function<Tensor(const Tensor&)>& score, const Plane& window,
                                     const Labelled& samples) {
  const torch::NoGradGuard no_graph;
  const report::Range axis{-window.half_width, window.half_width};
  report::DecisionPanel panel{.title = title};
  panel.scores = {axis, axis, window.points, window.points, values(score(window.grid()))};
  panel.samples = {values(samples.inputs.select(1, 0)), values(samples.inputs.select(1, 1)),
                   classes(samples.labels)};
  return panel;
}

report::Grid slope_grid(NeuralOdeImpl& ode, const report::Range& depths, const report::Range& states) {
  const torch::NoGradGuard no_graph;
  report::Grid grid{.x = depths, .y = states, .columns = field_points, .rows = field_points};
  const Tensor z =
      torch::linspace(states.low, states.high, std::int64_t(field_points), type_of(ode)).unsqueeze(1);
  std::vector<Tensor> columns;
  for (double s : spaced(depths.low, depths.high, field_points)) columns.push_back(ode.rate(s, {}, z));
  grid.values = values(torch::cat(columns, 1));
  return grid;
}

std::vector<report::Curve> curves(const std::vector<double>& depths, const Tensor& states) {
  std::vector<report::Curve> all;
  for (std::int64_t i = 0; i < states.size(1); ++i) {
    const std::vector<double> z = values(states.select(1, i));
    all.push_back({depths, z, z.front() > 0 ? 1 : 0});
  }
  return all;
}

report::ParameterPanel theta_panel(const std::string& title, const Field& field) {
  constexpr std::int64_t most =
      8;  // components of a layer: enough to see their shapes, few enough to tell them apart
  const torch::NoGradGuard no_graph;
  report::ParameterPanel panel{.title = title, .depths = spaced(0, 1, theta_points)};
  for (const auto& module : field->modules()) {
    const auto* layer = dynamic_cast<const GalerkinLayer*>(module.get());
    if (!layer) continue;
    std::vector<Tensor> rows;
    for (double s : panel.depths) rows.push_back(layer->theta(s).weight.flatten());
    const Tensor all = torch::stack(rows, 1);  // (components, depths)
    const std::int64_t stride = std::max<std::int64_t>(1, all.size(0) / most);
    for (std::int64_t i = 0; i < all.size(0) && i < most * stride; i += stride)
      panel.components.push_back(values(all[i]));
  }
  return panel;
}

}  // namespace fathom::experiments
