#include "fathom/field/any_layer.hpp"

#include "fathom/support/error.hpp"

namespace fathom {

ChainImpl::ChainImpl(torch::nn::Sequential layers) : layers_(std::move(layers)) {
  for (const auto& layer : layers_->named_children()) register_module(layer.key(), layer.value());
}

Tensor ChainImpl::forward(const Tensor& x) {
  // Not in the constructor: options are aggregates, and gcc 12 destroys what it never made when one of their members throws.
  require(layers_->size() > 0, "a chain of layers needs at least one, got none");
  return layers_->forward(x);
}

std::shared_ptr<torch::nn::Module> ChainImpl::clone(const torch::optional<torch::Device>& device) const {
  return std::make_shared<ChainImpl>(
      torch::nn::Sequential(std::dynamic_pointer_cast<torch::nn::SequentialImpl>(layers_->clone(device))));
}

}  // namespace fathom
