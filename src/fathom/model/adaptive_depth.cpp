#include "fathom/model/adaptive_depth.hpp"

#include "fathom/support/error.hpp"

namespace fathom {

PaperDepthImpl::PaperDepthImpl(std::int64_t inputs, std::int64_t hidden)
    : hidden_(inputs, hidden), output_(hidden, 1) {
  register_module("hidden", hidden_);
  register_module("output", output_);
}

Tensor PaperDepthImpl::forward(const Tensor& x) {
  return (1 + output_->forward(torch::relu(hidden_->forward(x)))).abs();
}

std::shared_ptr<torch::nn::Module> PaperDepthImpl::clone(const torch::optional<torch::Device>& device) const {
  auto copy =
      std::make_shared<PaperDepthImpl>(hidden_->options.in_features(), hidden_->options.out_features());
  copy->hidden_ = copy->replace_module(
      "hidden", std::dynamic_pointer_cast<torch::nn::LinearImpl>(hidden_->clone(device)));
  copy->output_ = copy->replace_module(
      "output", std::dynamic_pointer_cast<torch::nn::LinearImpl>(output_->clone(device)));
  return copy;
}

AdaptiveDepthImpl::AdaptiveDepthImpl(Field field, AnyLayer depth, NeuralOdeOptions options)
    : ode_(std::move(field), std::move(options)), depth_(std::move(depth)) {
  require(!depth_.is_empty(), "adaptive depth needs a network g(x) for the depth, got none");
  register_module("ode", ode_);
  register_module("depth", depth_.ptr());
}

Tensor AdaptiveDepthImpl::depths(const Tensor& x) {
  const Tensor depth = depth_.forward(x);
  require(depth.numel() == x.size(0), "the depth network must give one value a sample, got shape ",
          depth.sizes(), " for ", x.size(0), " samples");
  return depth.reshape({x.size(0)});
}

Solution AdaptiveDepthImpl::solve(const Tensor& x, const std::vector<double>& fractions) {
  return ode_->solve_scaled(x, depths(x), fractions);
}

Tensor AdaptiveDepthImpl::forward(const Tensor& x) { return solve(x).states[-1]; }

std::shared_ptr<torch::nn::Module> AdaptiveDepthImpl::clone(
    const torch::optional<torch::Device>& device) const {
  const auto ode = std::dynamic_pointer_cast<NeuralOdeImpl>(ode_->clone(device));
  return std::make_shared<AdaptiveDepthImpl>(ode->field(), depth_.clone(device), ode->options());
}

}  // namespace fathom
