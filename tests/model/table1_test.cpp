/// The image models of the paper's Table 1, built from the library's parts, have exactly the parameters listed there (E3).
#include <gtest/gtest.h>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;

struct ImageModel {
  std::string name;
  std::int64_t channels, size;  ///< of the images
  std::int64_t state, hidden;   ///< channels of z, and of the field's inside
  std::int64_t head, pool;      ///< channels of the head, and the side it is pooled to
  std::string kind;
  std::int64_t parameters;
};

void PrintTo(const ImageModel& model, std::ostream* out) { *out << model.name; }

Conv2d conv3x3(std::int64_t from, std::int64_t to) {
  return Conv2d(Conv2dOptions(from, to, 3).padding(1).bias(false));
}

/// One group a channel is an instance norm.
torch::nn::GroupNorm instance_norm(std::int64_t channels) { return torch::nn::GroupNorm(channels, channels); }

DepthSequential field_net(std::int64_t from, std::int64_t hidden, std::int64_t to) {
  return DepthSequential(instance_norm(from), conv3x3(from, hidden), torch::nn::Softplus(),
                         conv3x3(hidden, hidden), torch::nn::Softplus(), instance_norm(hidden),
                         Conv2d(Conv2dOptions(hidden, to, 1)));
}

torch::nn::Sequential built(const ImageModel& m) {
  torch::nn::Sequential model;
  if (m.kind == "augmented") model->push_back(ZeroAugmentation(m.state - m.channels));
  if (m.kind == "input layer") model->push_back(conv3x3(m.channels, m.state));
  if (m.kind == "second order") {
    model->push_back(conv3x3(m.channels, m.state / 2));
    model->push_back(ZeroAugmentation(m.state / 2));
    model->push_back(NeuralOde(higher_order(autonomous(field_net(m.state, m.hidden, m.state / 2)), 2)));
  } else {
    model->push_back(NeuralOde(autonomous(field_net(m.state, m.hidden, m.state))));
  }
  model->push_back(Conv2d(Conv2dOptions(m.state, m.head, 1)));
  model->push_back(torch::nn::AdaptiveAvgPool2d(m.pool));
  model->push_back(torch::nn::Flatten());
  model->push_back(torch::nn::Linear(m.head * m.pool * m.pool, 10));
  return model;
}

class Table1 : public ::testing::TestWithParam<ImageModel> {};

TEST_P(Table1, HasTheParametersOfThePaper) {
  std::int64_t count = 0;
  for (const Tensor& parameter : built(GetParam())->parameters()) count += parameter.numel();
  EXPECT_EQ(count, GetParam().parameters);
}

TEST_P(Table1, ClassifiesImagesAndHasGradientsForAllOfThem) {
  torch::manual_seed(0);
  auto model = built(GetParam());
  const Tensor images = torch::rand({2, GetParam().channels, GetParam().size / 2, GetParam().size / 2});
  const Tensor scores = model->forward(images);
  EXPECT_EQ(scores.sizes(), (std::vector<std::int64_t>{2, 10}));
  torch::nn::functional::cross_entropy(scores, torch::tensor({3, 7})).backward();
  for (const auto& item : model->named_parameters())
    EXPECT_GT(item.value().grad().abs().max().item<float>(), 0) << item.key();
}

INSTANTIATE_TEST_SUITE_P(
    Images, Table1,
    ::testing::Values(ImageModel{"cifar_vanilla", 3, 32, 3, 62, 3, 4, "vanilla", 37091},
                      ImageModel{"cifar_augmented", 3, 32, 42, 42, 6, 4, "augmented", 34954},
                      ImageModel{"cifar_input_layer", 3, 32, 42, 42, 6, 4, "input layer", 36088},
                      ImageModel{"cifar_second_order", 3, 32, 42, 42, 6, 4, "second order", 34618},
                      ImageModel{"mnist_vanilla", 1, 28, 1, 48, 1, 3, "vanilla", 21417},
                      ImageModel{"mnist_augmented", 1, 28, 32, 32, 4, 4, "augmented", 20398},
                      ImageModel{"mnist_input_layer", 1, 28, 32, 32, 4, 4, "input layer", 20686},
                      ImageModel{"mnist_second_order", 1, 28, 32, 32, 4, 4, "second order", 20014}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fathom::testing
