#include "fathom/model/products.hpp"

#include <torch/csrc/autograd/functions/utils.h>

#include "fathom/tensor/torch_version.hpp"

namespace fathom {

namespace {

/// Where a graph begins that ends in no parameter.
struct Beginning : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
};

/// A place in the graph for a derivative with respect to one argument alone. Forwards a solve runs without graph and gives
/// plain tensors; then the product needs a graph of its own, for itself only. With a graph the arguments may depend on
/// each other (an unrolled z on its control x), and a derivative with respect to x itself would count that way too.
Tensor argument(const Tensor& value) {
  if (!value.defined()) return value;
  if (value.requires_grad()) return value.view_as(value);
  Tensor fresh = value.detach();
  torch::autograd::set_history(fresh, make_node<Beginning>());
  return fresh;
}

}  // namespace

Tensor vector_jacobian_product(const std::function<Tensor(const Tensor&)>& rate, const Tensor& z,
                               const Tensor& v) {
  const bool outer_graph = torch::GradMode::is_enabled();
  const torch::AutoGradMode with_graph(true);
  const Tensor at = argument(z);
  const Tensor value = rate(at);
  if (!value.requires_grad()) return torch::zeros_like(z);
  const Tensor product = torch::autograd::grad({value}, {at}, {v}, /*retain_graph=*/outer_graph,
                                               /*create_graph=*/outer_graph, /*allow_unused=*/true)[0];
  if (!product.defined()) return torch::zeros_like(z);
  return outer_graph ? product : product.detach();
}

Jacobians jacobians(const std::function<Tensor(const Tensor&, const Tensor&)>& rate, const Tensor& z,
                    const Tensor& u) {
  const bool outer_graph = torch::GradMode::is_enabled();
  const torch::AutoGradMode with_graph(true);
  std::vector<Tensor> inputs = {argument(z)};
  const Tensor control = argument(u);
  if (u.defined()) inputs.push_back(control);
  const Tensor value = rate(inputs[0], control);
  std::vector<std::vector<Tensor>> rows(inputs.size());
  for (std::int64_t i = 0; i < value.size(1); ++i) {
    std::vector<Tensor> products(inputs.size());
    if (value.requires_grad()) {
      products =
          torch::autograd::grad({value.select(1, i).sum()}, inputs, {}, /*retain_graph=*/true, outer_graph,
                                /*allow_unused=*/true);
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      rows[k].push_back(products[k].defined() ? products[k] : torch::zeros_like(inputs[k]));
    }
  }
  const auto finished = [&](const Tensor& t) { return outer_graph ? t : t.detach(); };
  return {.rate = finished(value),
          .state = finished(torch::stack(rows[0], 1)),
          .control = u.defined() ? finished(torch::stack(rows[1], 1)) : Tensor{}};
}

}  // namespace fathom
