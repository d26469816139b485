#include "fathom/field/known_layers.hpp"

#include "fathom/depth/depth_module.hpp"
#include "fathom/field/any_layer.hpp"

namespace fathom {

using fused::FunctionKind;

namespace {

void flatten(const torch::nn::Module& net, std::vector<const torch::nn::Module*>& layers) {
  if (const auto* sequence = exactly<DepthSequentialImpl>(net)) {
    for (const auto& layer : sequence->layers()) flatten(*layer, layers);
  } else if (exactly<ChainImpl>(net)) {
    for (const auto& layer : net.children()) flatten(*layer, layers);
  } else {
    layers.push_back(&net);
  }
}

}  // namespace

std::optional<fused::Function> function_of(const torch::nn::Module& layer) {
  if (exactly<torch::nn::TanhImpl>(layer)) return fused::Function{FunctionKind::tanh};
  if (exactly<torch::nn::ReLUImpl>(layer)) return fused::Function{FunctionKind::relu};
  if (exactly<torch::nn::SigmoidImpl>(layer)) return fused::Function{FunctionKind::sigmoid};
  if (exactly<torch::nn::SiLUImpl>(layer)) return fused::Function{FunctionKind::silu};
  if (exactly<torch::nn::IdentityImpl>(layer)) return fused::Function{FunctionKind::identity};
  if (const auto* softplus = exactly<torch::nn::SoftplusImpl>(layer);
      softplus && softplus->options.beta() > 0) {
    return fused::Function{FunctionKind::softplus, softplus->options.beta(), softplus->options.threshold()};
  }
  if (const auto* elu = exactly<torch::nn::ELUImpl>(layer); elu && elu->options.alpha() > 0) {
    return fused::Function{FunctionKind::elu, elu->options.alpha()};
  }
  return {};
}

std::vector<const torch::nn::Module*> flat_layers(const torch::nn::Module& net) {
  std::vector<const torch::nn::Module*> layers;
  layers.reserve(16);
  flatten(net, layers);
  return layers;
}

}  // namespace fathom
