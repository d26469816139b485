/// Gradients of anything that ends in a scalar, against differences of it along random directions of each variable.
///
///   EXPECT_EQ(wrong_gradients([&] { return model->forward(x).square().sum(); }, with_parameters(*model, {{"x", x}})), "");
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "support/gradients.hpp"

namespace fathom::testing {

struct NamedTensor {
  std::string name;
  Tensor value;
};

/// The parameters of a module after the given tensors, all leaves.
inline std::vector<NamedTensor> with_parameters(const torch::nn::Module& module,
                                                std::vector<NamedTensor> others = {}) {
  for (const auto& item : module.named_parameters()) others.push_back({item.key(), item.value()});
  return others;
}

/// Values that favour no entry: a fresh depth-varying layer has coefficients of zero, which would hide mistakes.
inline void randomize(const torch::nn::Module& module, double deviation = 0.5) {
  const torch::NoGradGuard no_graph;
  for (Tensor parameter : module.parameters()) parameter.normal_(0, deviation);
}

/// float64, normal, and wants a gradient.
inline Tensor random_variable(at::IntArrayRef shape) { return torch::randn(shape, float64).requires_grad_(); }

/// (L(+h) - L(-h)) / 2h along a direction of unit length.
inline double slope_along(const std::function<Tensor()>& loss, const Tensor& variable,
                          const Tensor& direction, double move = 2e-5) {
  const torch::NoGradGuard no_graph;
  Tensor place = variable.detach();  // shares memory
  const Tensor before = place.clone();
  const auto at = [&](double offset) {
    place.copy_(before + offset * direction);
    return loss().item<double>();
  };
  const double slope = (at(move) - at(-move)) / (2 * move);
  place.copy_(before);
  return slope;
}

/// The gradients of the variables; zeros where torch returns none.
inline std::vector<Tensor> gradients_of(const Tensor& loss, const std::vector<NamedTensor>& variables) {
  std::vector<Tensor> wanted;
  for (const NamedTensor& variable : variables) wanted.push_back(variable.value);
  auto found = torch::autograd::grad({loss}, wanted, {}, false, false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) found[i] = torch::zeros_like(wanted[i].detach());
  }
  return found;
}

/// One line for each variable whose gradient misses the difference by more than `tolerance` of the size that a directional
/// derivative has on average, |g| / sqrt(n), and for each whose gradient is zero: then the check would check nothing.
inline std::string wrong_gradients(const std::function<Tensor()>& loss,
                                   const std::vector<NamedTensor>& variables, double tolerance = 1e-6) {
  const Tensor value = loss();
  const auto gradients = gradients_of(value, variables);
  const double noise = 1e-6 * std::max(std::abs(value.item<double>()), 1e-3);
  std::string complaints;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto& [name, variable] = variables[i];
    const Tensor direction =
        torch::nn::functional::normalize(torch::randn(variable.sizes(), float64).view(-1),
                                         torch::nn::functional::NormalizeFuncOptions().dim(0));
    const double given = (gradients[i].reshape(-1) * direction).sum().item<double>();
    const double exact = slope_along(loss, variable, direction.view(variable.sizes()));
    const double norm = gradients[i].norm().item<double>();
    const double scale = std::max(norm / std::sqrt(double(variable.numel())), noise);
    if (norm == 0) complaints += text(name, ": the gradient is zero, the difference ", exact, "\n");
    if (!(std::abs(given - exact) <= tolerance * scale))
      complaints += text(name, ": gradient ", given, ", difference ", exact, ", scale ", scale, "\n");
  }
  return complaints;
}

}  // namespace fathom::testing
