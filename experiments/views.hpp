/// Data of figures, read off trained models.
///
///   run.show("Flows", report::plane_flow(caption, {.labels = {"inner", "outer"},
///                                                  .panels = {flow_panel("vanilla", *ode, samples)}}));
#pragma once

#include <functional>
#include <string>

#include "experiments/plane.hpp"
#include "fathom/data/labelled.hpp"
#include "fathom/model/neural_ode.hpp"
#include "fathom/report/figure.hpp"

namespace fathom::experiments {

/// Class numbers 0 and 1 of labels 0, 1 or -1, 1.
std::vector<int> classes(const Tensor& labels);
/// The first `most` samples, with both classes taken alike from sets that list one class after the other.
Labelled some_of(const Labelled& samples, std::int64_t most);

/// States from depth 0 to `last` over streamlines of the field; without them where the field reads its input.
report::FlowPanel flow_panel(const std::string& title, NeuralOdeImpl& ode, const Labelled& samples,
                             double last = 1);

/// Scores of every point of a window.
report::DecisionPanel decision_panel(const std::string& title,
                                     const std::function<Tensor(const Tensor&)>& score, const Plane& window,
                                     const Labelled& samples);

/// f(s, z) of a field with one state over depth and state.
report::Grid slope_grid(NeuralOdeImpl& ode, const report::Range& depths, const report::Range& states);

/// z(s) of every row of x, (batch, 1), coloured by the sign of x: label 0 below 0, 1 above.
std::vector<report::Curve> curves(const std::vector<double>& depths, const Tensor& states);

/// Some components of theta(s), taken evenly from the weights of all layers that vary with depth.
report::ParameterPanel theta_panel(const std::string& title, const Field& field);

}  // namespace fathom::experiments
