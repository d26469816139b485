#include "experiments/image_models.hpp"

#include "fathom/field/augmentation.hpp"
#include "fathom/support/error.hpp"

namespace fathom::experiments {

namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Sequential;

constexpr std::int64_t classes = 10;

/// Channels of the state and of the field's inside; channels of the head and the side it is pooled to. They give the
/// numbers of parameters of Table 1: 21,417, 20,398, 20,686, 20,014 for one channel, 37,091, 34,954, 36,088, 34,618 for three.
struct Sizes {
  std::int64_t state, hidden, head, pool;
};

Sizes sizes_of(ImageKind kind, std::int64_t channels) {
  require(channels == 1 || channels == 3, "images must have 1 or 3 channels, got ", channels);
  if (channels == 1) return kind == ImageKind::node ? Sizes{1, 48, 1, 3} : Sizes{32, 32, 4, 4};
  return kind == ImageKind::node ? Sizes{3, 62, 3, 4} : Sizes{42, 42, 6, 4};
}

Conv2d conv3x3(std::int64_t from, std::int64_t to) {
  return Conv2d(Conv2dOptions(from, to, 3).padding(1).bias(false));
}

torch::nn::InstanceNorm2d instance_norm(std::int64_t channels) {
  return torch::nn::InstanceNorm2d(torch::nn::InstanceNorm2dOptions(channels).affine(true));
}

Sequential field_layers(std::int64_t from, std::int64_t hidden, std::int64_t to) {
  return Sequential(instance_norm(from), conv3x3(from, hidden), torch::nn::Softplus(),
                    conv3x3(hidden, hidden), torch::nn::Softplus(), instance_norm(hidden),
                    Conv2d(Conv2dOptions(hidden, to, 1)));
}

void append(Sequential& whole, const Sequential& part) {
  for (const torch::nn::AnyModule& layer : *part) whole->push_back(layer);
}

Sequential head(const Sizes& sizes) {
  return Sequential(Conv2d(Conv2dOptions(sizes.state, sizes.head, 1)),
                    torch::nn::AdaptiveAvgPool2d(sizes.pool), torch::nn::Flatten(),
                    torch::nn::Linear(sizes.head * sizes.pool * sizes.pool, classes));
}

Sequential front_of(ImageKind kind, const Sizes& sizes, const ImageModelOptions& options) {
  Sequential front;
  const bool at_rest = kind == ImageKind::second_order && options.velocity == Velocity::zero;
  if (kind == ImageKind::anode) front->push_back(ZeroAugmentation(sizes.state - options.channels));
  if (kind == ImageKind::input_layer || kind == ImageKind::second_order)
    front->push_back(conv3x3(options.channels, at_rest ? sizes.state / 2 : sizes.state));
  if (at_rest) front->push_back(ZeroAugmentation(sizes.state / 2));
  return front;
}

Field field_of(ImageKind kind, const Sizes& sizes) {
  if (kind != ImageKind::second_order)
    return autonomous(DepthSequential(field_layers(sizes.state, sizes.hidden, sizes.state)));
  return higher_order(autonomous(DepthSequential(field_layers(sizes.state, sizes.hidden, sizes.state / 2))),
                      2);
}

}  // namespace

Tensor ImageModel::states(const Tensor& images, const std::vector<double>& depths) {
  return ode->trajectory(front->is_empty() ? images : front->forward(images), depths);
}

ImageModel image_model(ImageKind kind, const ImageModelOptions& options) {
  const Sizes sizes = sizes_of(kind, options.channels);
  ImageModel model{.front = front_of(kind, sizes, options),
                   .ode = NeuralOde(field_of(kind, sizes), options.ode),
                   .whole = {}};
  append(model.whole, model.front);
  model.whole->push_back(model.ode);
  append(model.whole, head(sizes));
  return model;
}

Sequential linear_classifier(std::int64_t channels, std::int64_t side) {
  return Sequential(torch::nn::Flatten(), torch::nn::Linear(channels * side * side, classes));
}

Sequential plain_network(std::int64_t channels) {
  const Sizes sizes = sizes_of(ImageKind::input_layer, channels);
  Sequential whole = front_of(ImageKind::input_layer, sizes, {.channels = channels});
  append(whole, field_layers(sizes.state, sizes.hidden, sizes.state));
  append(whole, head(sizes));
  return whole;
}

}  // namespace fathom::experiments
