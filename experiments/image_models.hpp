/// The classifiers of the paper's Table 1, built from the library's parts:
///   z(0) = what the kind makes of the image,   z' = f(z),   scores = Linear(pool(Conv1x1(z(1))))
///   f: instance norm, Conv3x3 C -> H, softplus, Conv3x3 H -> H, softplus, instance norm, Conv1x1 H -> C
///
///   ImageModel model = image_model(ImageKind::input_layer, {.channels = 1});
///   const Tensor scores = model.whole->forward(images);  // (batch, 10)
#pragma once

#include <string>
#include <vector>

#include "fathom/model/neural_ode.hpp"

namespace fathom::experiments {

enum class ImageKind {
  node,         ///< z(0) = x
  anode,        ///< z(0) = [x, 0]
  input_layer,  ///< z(0) = Conv3x3(x)
  second_order  ///< z = [positions, velocities], positions(0) = Conv3x3(x)
};

/// How the velocities of the second order begin.
enum class Velocity {
  zero,    ///< at rest, as in the paper's counts of parameters
  learned  ///< the input layer makes them, too
};

struct ImageModelOptions {
  std::int64_t channels = 1;  ///< of the images: 1 or 3
  Velocity velocity = Velocity::zero;
  NeuralOdeOptions ode = {};
};

struct ImageModel {
  torch::nn::Sequential front;  ///< from the image to z(0); empty: the image itself
  NeuralOde ode = nullptr;
  torch::nn::Sequential whole;  ///< front, ode and head

  /// z at the given depths, (depths, batch, channels, height, width)
  Tensor states(const Tensor& images, const std::vector<double>& depths);
};

ImageModel image_model(ImageKind kind, const ImageModelOptions& options);

/// For comparison. One linear layer on the pixels, (channels, side, side).
torch::nn::Sequential linear_classifier(std::int64_t channels, std::int64_t side);
/// The model with the input layer and as many parameters, whose field is one pass of a network: no solver.
torch::nn::Sequential plain_network(std::int64_t channels);

}  // namespace fathom::experiments
