/// The continuous adjoints: equations integrated backwards in depth, from saved depth to saved depth.
///   da/ds = -a df/dz,   a(S) = dL/dz(S),   dL/dtheta = int a df/dtheta ds,   dL/dS = a(S) f(S)          (G1, G6)
#include <algorithm>
#include <cmath>

#include "fathom/sensitivity/backward_field.hpp"
#include "fathom/sensitivity/field_rules.hpp"
#include "fathom/sensitivity/stretches.hpp"

namespace fathom {

namespace {

/// The forward solver for one stretch of the way back: a count of steps is meant for the whole span.
Solver for_stretch(const Solver& solver, double stretch, double span) {
  Solver part = solver;
  if (auto* fixed = std::get_if<FixedSteps>(&part.steps); fixed && fixed->count > 0) {
    fixed->count = std::max<std::int64_t>(
        1, std::int64_t(std::ceil(double(fixed->count) * std::abs(stretch / span) - 1e-9)));
  }
  part.observer = {};
  part.dense = false;
  return part;
}

/// a . f at a saved depth, seen from where the solve came; at the first depth, from where it goes.
double along_field(const ForwardPass& pass, std::size_t place, const Tensor& a) {
  const torch::NoGradGuard no_graph;
  const bool at_first = pass.depths[place] == pass.depths.front();
  const double depth = at_first ? inside_first(pass) : before(pass, pass.depths[place]);
  const Tensor rate = rate_at(pass, depth, pass.states[std::int64_t(place)]);
  pass.report->backward_evaluations += 1;
  return (a * rate).sum().item<double>();
}

Gradients backwards(const ForwardPass& pass, const Solver& solver, const BackwardField& field,
                    const Tensor& grad_states, const Wanted& wanted) {
  const torch::NoGradGuard no_graph;
  check_pure(pass, before(pass, pass.depths.back()), pass.states[-1]);
  Gradients result = empty_gradients(pass, wanted);
  const auto stretch = [&](std::size_t place, double from, double to, const Solver& part, const Tensor& a) {
    const ForwardPass back =
        run_forward(field.flat(), field.join(pass.states[std::int64_t(place)], a, result.parameters),
                    {from, to}, part, {});
    pass.report->backward_evaluations += back.report->evaluations;
    const std::vector<Tensor> gradients = field.parameters_of(back.states[1]);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) result.parameters[i] = gradients[i].to(result.parameters[i].scalar_type());
    }
    return field.adjoint_of(back.states[1]);
  };
  result.start = walk_back(pass, solver, grad_states, result.depths, stretch);
  return result;
}

}  // namespace

Gradients empty_gradients(const ForwardPass& pass, const Wanted& wanted) {
  Gradients result{.start = torch::zeros_like(pass.start), .depths = {}, .parameters = {}};
  if (wanted.depths) result.depths = torch::zeros({std::int64_t(pass.given_depths)}, torch::kFloat64);
  result.parameters.resize(wanted.parameters.size());
  for (std::size_t i = 0; i < wanted.parameters.size(); ++i) {
    if (!wanted.parameters[i]) continue;
    result.parameters[i] = torch::zeros_like(pass.field.parameters[i], at::MemoryFormat::Contiguous);
  }
  return result;
}

Tensor walk_back(const ForwardPass& pass, const Solver& solver, const Tensor& grad_states,
                 Tensor& depth_grads, const Stretch& stretch) {
  const double span = pass.depths.back() - pass.depths.front();
  Tensor a = torch::zeros_like(pass.start);
  for (std::size_t place = pass.depths.size() - 1; place > 0; --place) {
    const Tensor grad = grad_states[std::int64_t(place)];
    const double from = pass.depths[place], to = pass.depths[place - 1];
    if (depth_grads.defined() && place < pass.bound_depths) {
      depth_grads[std::int64_t(place)] += along_field(pass, place, grad);
    }
    a = a + grad;
    if (from != to) a = stretch(place, from, to, for_stretch(solver, to - from, span), a);
  }
  if (depth_grads.defined()) depth_grads[0] -= along_field(pass, 0, a);
  return a + grad_states[0];
}

Keep kept_for(const Adjoint&) { return {}; }
Keep kept_for(const InterpolatedAdjoint&) { return {.stages = true}; }

Gradients pull_back(const Adjoint& how, const ForwardPass& pass, const Tensor& grad_states,
                    const Wanted& wanted) {
  const BackwardField field(pass, wanted.parameters, nullptr, how.parameters_in_error_norm);
  return backwards(pass, how.solver.value_or(pass.solver), field, grad_states, wanted);
}

Gradients pull_back(const InterpolatedAdjoint& how, const ForwardPass& pass, const Tensor& grad_states,
                    const Wanted& wanted) {
  const Interpolant interpolant(pass.solver.method, pass.field.parts, pass.records, pass.start,
                                pass.depths.front());
  const BackwardField field(pass, wanted.parameters, &interpolant, how.parameters_in_error_norm);
  return backwards(pass, how.solver.value_or(pass.solver), field, grad_states, wanted);
}

}  // namespace fathom
