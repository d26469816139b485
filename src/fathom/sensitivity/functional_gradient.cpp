#include "fathom/sensitivity/functional_gradient.hpp"

#include <algorithm>

#include "fathom/sensitivity/backward_field.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// a(S): dL/dz(S), and 1 for the running loss, whose integral enters as it is.
Tensor adjoint_at_end(const ForwardPass& pass, const std::function<Tensor(const Tensor&)>& terminal_loss) {
  const torch::AutoGradMode with_graph(true);
  const Tensor end = unpack(pass.states[-1], pass.field.parts, 0).detach().requires_grad_();
  Tensor gradient = torch::zeros_like(end.detach());
  if (terminal_loss) {
    const Tensor loss = terminal_loss(end);
    require(loss.numel() == 1, "the terminal loss must be a scalar, got shape ", loss.sizes());
    if (loss.requires_grad()) {
      const Tensor found = torch::autograd::grad({loss}, {end}, {}, false, false, /*allow_unused=*/true)[0];
      if (found.defined()) gradient = found;
    }
  }
  if (pass.field.parts.size() == 1) return gradient.reshape(-1);
  return pack({gradient, torch::ones({pass.field.parts[1].size()}, gradient.options())});
}

}  // namespace

FunctionalGradient functional_gradient(const VectorField& field, const Tensor& z0,
                                       const std::vector<double>& span,
                                       const std::function<Tensor(const Tensor&)>& terminal_loss,
                                       const std::vector<double>& at, const Solver& solver) {
  require(span.size() == 2, "`span` needs a start and an end, got ", span.size(), " value(s)");
  const double first = span[0], last = span[1];
  for (double depth : at) {
    const bool inside = std::min(first, last) <= depth && depth <= std::max(first, last);
    require(inside, "depth ", depth, " is outside the span from ", first, " to ", last);
  }
  for (std::size_t i = 0; i < field.parameters.size(); ++i) {
    require(field.parameters[i].requires_grad(), "parameter ", i,
            " of the field must want a gradient for its functional gradient; call `requires_grad_()` on it");
  }
  const FlatField flat = flatten(field, z0);
  Tensor start = z0.detach().reshape(-1);
  if (field.running_loss) start = pack({start, torch::zeros({flat.parts[1].size()}, start.options())});
  const ForwardPass pass = run_forward(flat, start, span, solver, {.stages = true});

  std::vector<double> way_back = at;
  way_back.insert(way_back.end(), {first, last});
  std::sort(way_back.begin(), way_back.end());
  if (last > first) std::reverse(way_back.begin(), way_back.end());
  const Interpolant interpolant(solver.method, flat.parts, pass.records, pass.start, first);
  const BackwardField backward(pass, std::vector<bool>(flat.parameters.size(), false), &interpolant, false);
  const ForwardPass back =
      run_forward(backward.flat(), adjoint_at_end(pass, terminal_loss), way_back, solver, {});

  FunctionalGradient result{
      .depths = at, .adjoint = {}, .values = std::vector<Tensor>(flat.parameters.size())};
  std::vector<Tensor> adjoints;
  std::vector<std::vector<Tensor>> values(flat.parameters.size());
  for (double depth : at) {
    const auto row = std::find(way_back.begin(), way_back.end(), depth) - way_back.begin();
    const Tensor a = backward.adjoint_of(back.states[row]);
    adjoints.push_back(unpack(a, flat.parts, 0));
    const std::vector<bool> all(flat.parameters.size(), true);
    const Product product = vector_jacobian(flat, depth, interpolant.flat(depth), a, all);
    for (std::size_t i = 0; i < values.size(); ++i) values[i].push_back(product.parameters[i]);
  }
  if (at.empty()) return result;
  result.adjoint = torch::stack(adjoints);
  for (std::size_t i = 0; i < values.size(); ++i) result.values[i] = torch::stack(values[i]);
  return result;
}

}  // namespace fathom
