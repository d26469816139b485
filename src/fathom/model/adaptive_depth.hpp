/// A Neural ODE whose samples run to depths of their own: output z(g(x)), gradients into g.                  (M9, G6)
/// A rescaling, not another solver: z' = g(x) f(g(x) tau, x, z) for tau in [0, 1].
///
///   AdaptiveDepth model(depth_varying(net), PaperDepth(1));
///
/// A field that jumps at break points (stacked layers) jumps at another tau for every sample, so no step can land on all of
/// them: error control finds the jumps by itself, with shorter steps there, and FixedSteps step over them. To land on them, solve
/// samples of one depth together.
#pragma once

#include "fathom/model/neural_ode.hpp"

namespace fathom {

/// The paper's depth network, |1 + w_o . relu(w_i x + b_i) + b_o|: (batch, features) -> (batch, 1).
class PaperDepthImpl : public torch::nn::Module {
 public:
  explicit PaperDepthImpl(std::int64_t inputs, std::int64_t hidden = 8);
  Tensor forward(const Tensor& x);
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

 private:
  torch::nn::Linear hidden_, output_;
};
TORCH_MODULE(PaperDepth);

class AdaptiveDepthImpl : public torch::nn::Module {
 public:
  /// `depth` maps the input to one value a sample that is not negative, shape (batch) or (batch, 1).
  AdaptiveDepthImpl(Field field, AnyLayer depth, NeuralOdeOptions options = {});

  Tensor forward(const Tensor& x);
  /// States at the given fractions of each sample's depth.
  Solution solve(const Tensor& x, const std::vector<double>& fractions = {0, 1});
  /// g(x), (batch)
  Tensor depths(const Tensor& x);

  const NeuralOde& ode() const { return ode_; }
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

 private:
  NeuralOde ode_;
  AnyLayer depth_;
};

class AdaptiveDepth : public torch::nn::ModuleHolder<AdaptiveDepthImpl> {
 public:
  using torch::nn::ModuleHolder<AdaptiveDepthImpl>::ModuleHolder;
  AdaptiveDepth(Field field, AnyLayer depth, NeuralOdeOptions options = {})
      : ModuleHolder(
            std::make_shared<AdaptiveDepthImpl>(std::move(field), std::move(depth), std::move(options))) {}
};

}  // namespace fathom
