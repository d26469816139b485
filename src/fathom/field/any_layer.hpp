/// Any torch module as a value, a Sequential of several included, which torch::nn::AnyModule cannot hold.
///
///   NeuralOdeOptions{.input_layer = torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::Tanh(), torch::nn::Linear(8, 4))}
#pragma once

#include "fathom/depth/depth_module.hpp"

namespace fathom {

/// A Sequential as one module with one tensor in and one out; its layers keep their names.
class ChainImpl : public torch::nn::Module {
 public:
  explicit ChainImpl(torch::nn::Sequential layers);
  Tensor forward(const Tensor& x);
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(Chain);

class AnyLayer : public torch::nn::AnyModule {
 public:
  AnyLayer() = default;
  AnyLayer(torch::nn::AnyModule module)
      : AnyModule(std::move(module)) {}  // NOLINT: a layer is one whatever its type
  AnyLayer(torch::nn::Sequential layers) : AnyModule(Chain(std::move(layers))) {}  // NOLINT
  template <class Module>
  AnyLayer(torch::nn::ModuleHolder<Module> module) : AnyModule(std::move(module)) {}  // NOLINT
};

}  // namespace fathom
