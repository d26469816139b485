/// Between a forward solve and its gradients: what was computed, and how an adjoint is pulled back through it.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "fathom/ode/with_site.hpp"
#include "fathom/sensitivity/sensitivity.hpp"
#include "fathom/tensor/engine.hpp"
#include "fathom/tensor/flat_field.hpp"

namespace fathom {

/// A forward solve, as the sensitivities need it. No tensor in it carries a graph.
struct ForwardPass {
  FlatField field;
  Solver solver;
  std::vector<double> depths;    ///< of the saved states
  std::size_t bound_depths = 0;  ///< how many of them are the caller's; fewer than all after an early stop
  std::size_t given_depths = 0;  ///< how many the caller gave
  Tensor start;                  ///< (size)
  Tensor states;                 ///< (depths, size)
  std::vector<StepRecord> records;
  std::shared_ptr<SolveReport> report;
};

/// Where a field that jumps at the first depth, or at another one, is seen from the side of the solve.
inline double inside_first(const ForwardPass& pass) {
  return std::nextafter(pass.depths.front(), pass.depths.back());
}
inline double before(const ForwardPass& pass, double depth) {
  return std::nextafter(depth, pass.depths.front());
}

/// Where a way back stands, for what the field throws there.
inline auto site_on_way_back(const ForwardPass& pass, double depth, double step = 0) {
  return [&pass, depth, step] {
    return ode::FailureSite{.depth = depth, .step = step, .evaluations = pass.report->backward_evaluations};
  };
}

/// f(depth, y) of the flat field, outside of a step.
inline Tensor rate_at(const ForwardPass& pass, double depth, const Tensor& y) {
  return ode::with_site([&] { return pass.field.rate(torch::scalar_tensor(depth, torch::kFloat64), y); },
                        site_on_way_back(pass, depth));
}

struct Wanted {
  bool depths = false;
  std::vector<bool> parameters = {};
};

struct Gradients {
  Tensor start;
  Tensor depths;                   ///< (given depths), undefined unless wanted
  std::vector<Tensor> parameters;  ///< undefined where not wanted; zeros where the field does not use it
};

ForwardPass run_forward(const FlatField& field, const Tensor& start, const std::vector<double>& depths,
                        const Solver& solver, const Keep& keep);

/// After the solve: which of the depths were reached, and after an early stop the one where it ended. Gives the number of
/// those that the caller gave; the state at the last depth is still to be saved when there is one more.
std::size_t finish_depths(ForwardPass& pass, const std::vector<double>& depths);

Gradients pull_back(const Discrete& how, const ForwardPass& pass, const Tensor& grad_states,
                    const Wanted& wanted);
Gradients pull_back(const Adjoint& how, const ForwardPass& pass, const Tensor& grad_states,
                    const Wanted& wanted);
Gradients pull_back(const InterpolatedAdjoint& how, const ForwardPass& pass, const Tensor& grad_states,
                    const Wanted& wanted);

/// What the forward pass must keep for each of them.
Keep kept_for(const Discrete& how);
Keep kept_for(const Adjoint& how);
Keep kept_for(const InterpolatedAdjoint& how);
Keep kept_for(const Unrolled& how);

/// The saved states with the graph of all accepted steps.
Tensor unroll(const ForwardPass& pass, const Tensor& start, const Tensor& depths);

/// a df/d(y, theta) for one evaluation at (s, y); zeros where the field does not depend on something.
struct Product {
  Tensor rate;
  Tensor state;                    ///< a df/dy
  std::vector<Tensor> parameters;  ///< a df/dtheta, undefined where not wanted
};
Product vector_jacobian(const FlatField& field, double depth, const Tensor& y, const Tensor& a,
                        const std::vector<bool>& wanted);

}  // namespace fathom
