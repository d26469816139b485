#include "fathom/sensitivity/pullback.hpp"

namespace fathom {

ForwardPass run_forward(const FlatField& field, const Tensor& start, const std::vector<double>& depths,
                        const Solver& solver, const Keep& keep) {
  const torch::NoGradGuard no_graph;
  ForwardPass pass{.field = field, .solver = solver, .depths = depths, .given_depths = depths.size()};
  // An interpolant outlives the solve and must not follow later changes of the caller's start in place.
  pass.start = keep.stages ? start.detach().clone() : start.detach();
  TensorEngine engine(pass.field, pass.start, solver, keep);
  ode::Plan plan{.method = solver.method, .steps = solver.steps, .break_points = field.break_points};
  if (solver.observer) {
    plan.observer = [&](const StepEvent& event) {
      return solver.observer(event, unpack(engine.state(), field.parts, 0));
    };
  }
  pass.report = std::make_shared<SolveReport>(ode::integrate(engine, plan, depths));
  pass.report->engine = "tensor";
  const std::size_t reached = finish_depths(pass, depths);
  if (reached < pass.depths.size()) engine.save_state(reached);
  pass.states = engine.saved();
  pass.records = std::move(engine.records());
  return pass;
}

std::size_t finish_depths(ForwardPass& pass, const std::vector<double>& depths) {
  if (pass.report->stopped) {
    std::erase_if(pass.depths, [&, forwards = depths.back() >= depths.front()](double depth) {
      return forwards ? depth > pass.report->reached : depth < pass.report->reached;
    });
  }
  pass.bound_depths = pass.depths.size();
  if (pass.report->stopped && pass.depths.back() != pass.report->reached)
    pass.depths.push_back(pass.report->reached);
  return pass.bound_depths;
}

Product vector_jacobian(const FlatField& field, double depth, const Tensor& y, const Tensor& a,
                        const std::vector<bool>& wanted) {
  const torch::AutoGradMode with_graph(true);
  std::vector<Tensor> inputs = {y.detach().requires_grad_()};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) inputs.push_back(field.parameters[i]);
  }
  const Tensor rate = field.rate(torch::scalar_tensor(depth, torch::kFloat64), inputs[0]);
  Product product{.rate = rate.detach(), .state = {}, .parameters = std::vector<Tensor>(wanted.size())};
  std::vector<Tensor> products(inputs.size());
  if (rate.requires_grad()) {
    // Retained, since a field may hold what was computed from its parameters outside of it.
    products = torch::autograd::grad({rate}, inputs, {a}, /*retain_graph=*/true, /*create_graph=*/false,
                                     /*allow_unused=*/true);
  }
  const auto or_zeros = [](const Tensor& value, const Tensor& like) {
    return value.defined() ? value.detach() : torch::zeros_like(like.detach());
  };
  product.state = or_zeros(products[0], inputs[0]);
  for (std::size_t i = 0, next = 1; i < wanted.size(); ++i) {
    if (wanted[i]) product.parameters[i] = or_zeros(products[next++], field.parameters[i]);
  }
  return product;
}

}  // namespace fathom
