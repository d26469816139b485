/// The networks of the paper's experiments in one line.
///
///   mlp({.features = {2, 32, 2}})                                         2 -> 32 tanh -> 2
///   mlp({.features = {2, 32, 2}, .depth = DepthInput::every_layer})       depth concatenated before each linear layer
///   mlp({.features = {2, 32, 2}, .basis = fourier({.harmonics = 5})})     every linear layer varies with depth
#pragma once

#include <optional>
#include <vector>

#include "fathom/depth/depth_layers.hpp"
#include "fathom/support/activation.hpp"

namespace fathom {

enum class DepthInput { none, first_layer, every_layer };

struct MlpOptions {
  std::vector<std::int64_t> features = {};  ///< of the input, the hidden layers and the output
  Activation activation = Activation::tanh;
  DepthInput depth = DepthInput::none;
  std::optional<DepthBasis> basis = {};
  Activation last_activation = Activation::identity;
};

DepthSequential mlp(const MlpOptions& options);

/// Appends the module of an activation; identity appends nothing.
void append(DepthSequential& net, Activation activation);

}  // namespace fathom
