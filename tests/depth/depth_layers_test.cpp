/// Layers that vary with depth: as fresh ones a constant layer, read out what they use, at one depth or one for each sample.
#include "fathom/depth/depth_layers.hpp"

#include <gtest/gtest.h>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

std::vector<DepthBasis> bases() {
  return {fourier({.harmonics = 2}),
          chebyshev(),
          legendre(),
          polynomial(3),
          gaussian_radial(),
          multiquadric_radial(),
          piecewise_constant(),
          piecewise_linear(),
          torchdyn_fourier(2),
          own_basis("own", 2, [](double s) {
            return std::vector<double>{1, std::exp(-s)};
          })};
}

/// How far a fresh layer over this basis may be from constant; radial functions do not contain the constants, and own
/// functions are fitted with a little damping.
double allowed(const DepthBasis& basis) {
  if (basis.name.find("radial") != std::string::npos) return 0.05;
  return basis.name == "own" ? 1e-6 : 1e-14;
}

Tensor scalar(double s) { return torch::full({}, s, float64); }

const std::vector<double> depths = {0, 0.2, 0.25, 0.61, 1};

template <class Layer> Layer ready(Layer layer, bool random = true) {
  layer->to(float64);
  if (random) randomize(*layer);
  return layer;
}

class DepthLayers : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(9); }
  Tensor h = torch::randn({5, 3}, float64), images = torch::randn({5, 3, 4, 4}, float64);
  Tensor own_depths = torch::tensor(depths, float64);
};

TEST_F(DepthLayers, StartAsConstantLayers) {
  for (const DepthBasis& basis : bases()) {
    auto linear = ready(DepthLinear(3, 2, basis), false);
    auto conv = ready(DepthConv2d(3, 2, basis), false);
    const Tensor line = linear->forward(scalar(0.5), h), image = conv->forward(scalar(0.5), images);
    EXPECT_GT(line.abs().max().item<double>(), 0.05) << "all zero";
    for (double s : depths) {
      EXPECT_LT(distance(linear->forward(scalar(s), h), line), allowed(basis)) << basis.name << " at " << s;
      EXPECT_LT(distance(conv->forward(scalar(s), images), image), allowed(basis))
          << basis.name << " at " << s;
    }
  }
  // A hypernetwork starts within its small last weights, which are not zero so that its first layer learns.
  auto hyper = ready(HyperLinear(3, 2), false);
  for (double s : depths)
    EXPECT_LT(distance(hyper->forward(scalar(s), h), hyper->forward(scalar(0.5), h)), 1e-2) << s;
}

TEST_F(DepthLayers, StartWithTheValuesThatTorchGivesAConstantLayer) {
  torch::manual_seed(4);
  auto varying = ready(DepthLinear(3, 2, fourier()), false);
  torch::manual_seed(4);
  auto constant = ready(torch::nn::Linear(3, 2), false);
  EXPECT_LT(distance(varying->forward(scalar(0.3), h), constant->forward(h)), 1e-7);
}

TEST_F(DepthLayers, ReadOutTheParametersThatTheyUse) {
  for (const DepthBasis& basis : bases()) {
    auto linear = ready(DepthLinear(3, 2, basis));
    auto conv = ready(DepthConv2d(3, 2, basis, DepthConv2dOptions{.kernel = 3, .stride = 2, .padding = 0}));
    for (double s : depths) {
      const Theta w = linear->theta(s), k = conv->theta(s);
      const auto with_bias = torch::nn::functional::Conv2dFuncOptions().bias(k.bias).stride(2);
      EXPECT_LT(distance(linear->forward(scalar(s), h), torch::linear(h, w.weight, w.bias)), 1e-14)
          << basis.name;
      EXPECT_LT(distance(conv->forward(scalar(s), images),
                         torch::nn::functional::conv2d(images, k.weight, with_bias)),
                1e-14)
          << basis.name;
    }
  }
  auto hyper = ready(HyperLinear(3, 2));
  for (double s : depths) {
    const Theta w = hyper->theta(s);
    EXPECT_LT(distance(hyper->forward(scalar(s), h), torch::linear(h, w.weight, w.bias)), 1e-14);
  }
}

TEST_F(DepthLayers, ReadOutTheSumOverTheirBasis) {
  auto layer = ready(DepthLinear(3, 2, legendre({.degree = 2})));
  const auto psi = layer->basis().values(0.7);
  const Tensor expected = psi[0] * layer->weight[0] + psi[1] * layer->weight[1] + psi[2] * layer->weight[2];
  EXPECT_LT(distance(layer->theta(0.7).weight, expected), 1e-14);
}

TEST_F(DepthLayers, TakeADepthForEachSample) {
  std::vector<std::pair<std::shared_ptr<DepthModule>, Tensor>> layers = {{ready(DepthConcat()).ptr(), h},
                                                                         {ready(DepthConcat()).ptr(), images},
                                                                         {ready(HyperLinear(3, 2)).ptr(), h}};
  for (const DepthBasis& basis : bases()) {
    layers.emplace_back(ready(DepthLinear(3, 2, basis)).ptr(), h);
    layers.emplace_back(ready(DepthLinear(3, 2, basis, /*with_bias=*/false)).ptr(), h);
    layers.emplace_back(ready(DepthConv2d(3, 2, basis)).ptr(), images);
  }
  for (const auto& [layer, input] : layers) {
    const Tensor together = layer->forward(own_depths, input);
    for (std::int64_t i = 0; i < 5; ++i) {
      const Tensor alone = layer->forward(own_depths[i], input.narrow(0, i, 1));
      EXPECT_LT(distance(together.narrow(0, i, 1), alone), 1e-13);
    }
  }
}

TEST_F(DepthLayers, HaveASlopeInDepth) {
  for (const DepthBasis& basis : bases()) {
    if (!basis.break_points.empty()) continue;
    auto layer = ready(DepthLinear(3, 2, basis));
    const Tensor s = own_depths.clone().requires_grad_();
    EXPECT_EQ(wrong_gradients([&] { return layer->forward(s, h).square().sum(); }, {{"s", s}}), "")
        << basis.name;
  }
}

TEST_F(DepthLayers, AppendDepthAsAFeatureOrAChannel) {
  DepthConcat concat;
  const Tensor vectors = concat->forward(scalar(0.3), h), channels = concat->forward(own_depths, images);
  EXPECT_EQ(vectors.sizes(), (std::vector<std::int64_t>{5, 4}));
  EXPECT_TRUE(torch::equal(vectors.narrow(1, 0, 3), h));
  EXPECT_TRUE(torch::equal(vectors.select(1, 3), torch::full({5}, 0.3, float64)));
  EXPECT_EQ(channels.sizes(), (std::vector<std::int64_t>{5, 4, 4, 4}));
  EXPECT_TRUE(torch::equal(channels.select(1, 3), own_depths.view({5, 1, 1}).expand({5, 4, 4})));
  EXPECT_EQ(concat->forward(scalar(0.3), h.to(torch::kFloat32)).scalar_type(), torch::kFloat32);
}

TEST_F(DepthLayers, PassTheirBreakPointsOn) {
  DepthSequential net(DepthLinear(3, 3, piecewise_constant({.pieces = 2})), torch::nn::Tanh(),
                      DepthConv2d(3, 2, piecewise_linear({.pieces = 4})), HyperLinear(2, 2));
  EXPECT_EQ(net->break_points(), (std::vector<double>{0.5, 0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(depth_varying(net)->break_points().size(), 6u);
  EXPECT_EQ(higher_order(controlled(net), 2)->break_points().size(), 6u);
}

TEST_F(DepthLayers, CloneDeeplyAndEqual) {
  DepthSequential net(DepthLinear(3, 3, piecewise_constant()), torch::nn::Tanh(), DepthConcat(),
                      HyperLinear(4, 2));
  ready(net);
  const auto copy = std::dynamic_pointer_cast<DepthSequentialImpl>(net->clone());
  const Tensor before = net->forward(scalar(0.4), h);
  EXPECT_TRUE(torch::equal(copy->forward(scalar(0.4), h), before));
  EXPECT_EQ(copy->break_points(), net->break_points());
  const torch::NoGradGuard no_graph;
  for (Tensor parameter : copy->parameters()) parameter.zero_();
  EXPECT_TRUE(torch::equal(net->forward(scalar(0.4), h), before));

  auto conv =
      ready(DepthConv2d(3, 2, fourier(), DepthConv2dOptions{.kernel = 1, .padding = 0, .bias = false}));
  const auto conv_copy = std::dynamic_pointer_cast<DepthConv2dImpl>(conv->clone());
  EXPECT_TRUE(torch::equal(conv_copy->forward(scalar(0.4), images), conv->forward(scalar(0.4), images)));
}

TEST_F(DepthLayers, MoveToAnotherType) {
  DepthSequential net(DepthConcat(), DepthLinear(4, 3, fourier()), torch::nn::Tanh(), HyperLinear(3, 2));
  ready(net);
  const Tensor exact = net->forward(scalar(0.4), h);
  net->to(torch::kFloat32);
  for (const Tensor& s : {scalar(0.4), torch::full({5}, 0.4, float64)}) {
    const Tensor single = net->forward(s, h.to(torch::kFloat32));
    EXPECT_EQ(single.scalar_type(), torch::kFloat32);
    EXPECT_LT(distance(single.to(float64), exact), 1e-5);
  }
}

std::int64_t count(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const Tensor& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

TEST_F(DepthLayers, HaveTheParameterCountsOfThePaper) {
  DepthSequential tracking(DepthLinear(2, 64, torchdyn_fourier(2)), torch::nn::Tanh(),
                           torch::nn::Linear(64, 2));
  EXPECT_EQ(count(*tracking), 898);  // E1, authors' code
  EXPECT_EQ(count(*DepthLinear(2, 32, fourier({.harmonics = 5}))), 11 * (2 * 32 + 32));
  EXPECT_EQ(count(*DepthConv2d(3, 4, piecewise_constant({.pieces = 5}))), 5 * (3 * 4 * 9 + 4));
  EXPECT_EQ(count(*HyperLinear(2, 32, 8)), 2 * 8 + (8 + 1) * (2 + 1) * 32);  // M4b beside M3: 880 to 1056
}

TEST_F(DepthLayers, AnInstanceNormInAChainIsTorchs) {
  using torch::nn::InstanceNorm2d, torch::nn::InstanceNorm2dOptions;
  torch::manual_seed(1);
  for (const bool affine : {true, false}) {
    for (const bool tracked : {true, false}) {
      InstanceNorm2d alone(InstanceNorm2dOptions(3).affine(affine).track_running_stats(tracked).eps(1e-3));
      alone->to(torch::kFloat64);
      if (affine) torch::nn::init::normal_(alone->weight);
      InstanceNorm2d copy(std::dynamic_pointer_cast<torch::nn::InstanceNorm2dImpl>(alone->clone()));
      DepthSequential chain(copy);
      for (const bool training : {true, false}) {
        alone->train(training);
        chain->train(training);
        EXPECT_LT(distance(chain->forward(scalar(0.3), images), alone->forward(images)), 1e-12)
            << affine << tracked << training;
      }
    }
  }
}

TEST_F(DepthLayers, SayWhatIsWrongInOneSentence) {
  const auto says = [](auto&& work, const std::string& expected) {
    EXPECT_NE(message_of(work).find(expected), std::string::npos) << message_of(work);
  };
  const auto wide = torch::zeros({5, 4}, float64);
  says([&] { DepthLinear(3, 2, fourier())->forward(scalar(0), wide); },
       "DepthLinear needs 3 features on axis 1 of 2 axes, got shape [5, 4]");
  says([&] { DepthConv2d(3, 2, fourier())->forward(scalar(0), wide); },
       "DepthConv2d needs 3 features on axis 1 of 4 axes, got shape [5, 4]");
  says([&] { HyperLinear(3, 2)->forward(scalar(0), wide); }, "HyperLinear needs 3 features");
  says([&] { DepthSequential(DepthConcat(), torch::nn::Linear(4, 2))->forward(scalar(0), wide); },
       "layer 1 (Linear) needs 4 features, got shape [5, 5]");
  says([&] { DepthSequential(DepthConcat(), torch::nn::Conv2d(3, 2, 1))->forward(scalar(0), images); },
       "layer 1 (Conv2d) needs 3 channels, got shape [5, 4, 4, 4]");
  says([&] { DepthConcat()->forward(scalar(0), torch::zeros({3}, float64)); },
       "a batch and a feature axis, got shape [3]");
  says([&] { DepthConcat()->forward(torch::zeros({4}, float64), wide); },
       "depth must be a scalar or one value a sample (5), got shape [4]");
  says([&] { DepthLinear(3, 2, fourier())->forward(torch::zeros({4}, float64), h); },
       "depth must be a scalar or one value a sample (5)");
  says([] { DepthLinear(2, 2, DepthBasis{}); }, "a basis with at least one function, got 0");
  says([] { DepthSequential(std::shared_ptr<DepthModule>{}); }, "must not be empty");
}

}  // namespace
}  // namespace fathom::testing
