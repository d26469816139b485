/// Looking at modules: what a layer is, and the layers of a network one after the other.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <typeinfo>
#include <vector>

#include "fathom/fused/code.hpp"

namespace fathom {

/// The layer as an `Impl`, if it is just that: a class derived from it may compute something else.
template <class Impl, class Module> const Impl* exactly(const Module& layer) {
  return typeid(layer) == typeid(Impl) ? dynamic_cast<const Impl*>(&layer) : nullptr;
}

/// The function of an activation module, none for other modules.
std::optional<fused::Function> function_of(const torch::nn::Module& layer);

/// Those inside chains of layers, in the order in which they are applied.
std::vector<const torch::nn::Module*> flat_layers(const torch::nn::Module& net);

}  // namespace fathom
