#include "fathom/field/augmentation.hpp"

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

Tensor beside(const Tensor& x, const Tensor& added, Side side) {
  return side == Side::end ? torch::cat({x, added}, 1) : torch::cat({added, x}, 1);
}

}  // namespace

ZeroAugmentationImpl::ZeroAugmentationImpl(std::int64_t features, Side side)
    : features_(features), side_(side) {
  require(features >= 0, "an augmentation adds a number of features that is not negative, got ", features);
}

Tensor ZeroAugmentationImpl::forward(const Tensor& x) {
  require(x.dim() >= 2, "an augmentation needs a batch and a feature axis, got shape ", x.sizes());
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[1] = features_;
  return beside(x, torch::zeros(shape, x.options().requires_grad(false)), side_);
}

std::shared_ptr<torch::nn::Module> ZeroAugmentationImpl::clone(const torch::optional<torch::Device>&) const {
  return std::make_shared<ZeroAugmentationImpl>(features_, side_);
}

PartialAugmentationImpl::PartialAugmentationImpl(AnyLayer layer, Side side)
    : layer_(std::move(layer)), side_(side) {
  require(!layer_.is_empty(), "a partial augmentation needs a layer for the added features, got none");
  register_module("layer", layer_.ptr());
}

Tensor PartialAugmentationImpl::forward(const Tensor& x) { return beside(x, layer_.forward(x), side_); }

std::shared_ptr<torch::nn::Module> PartialAugmentationImpl::clone(
    const torch::optional<torch::Device>& device) const {
  return std::make_shared<PartialAugmentationImpl>(layer_.clone(device), side_);
}

}  // namespace fathom
