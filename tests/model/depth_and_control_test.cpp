/// Identities of adaptive depth, of data control and of the batch.
#include <gtest/gtest.h>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

const Solver tight = adaptive(dop853(), 1e-12);

/// g(x) = one number for all, that can be learned.
class ConstantDepthImpl : public torch::nn::Module {
 public:
  explicit ConstantDepthImpl(double start)
      : depth(register_parameter("depth", torch::full({1}, start, float64))) {}
  Tensor forward(const Tensor& x) { return depth.expand({x.size(0)}); }
  Tensor depth;
};
TORCH_MODULE(ConstantDepth);

DepthSequential network(std::int64_t inputs, std::int64_t outputs) {
  auto net = mlp({.features = {inputs, 5, outputs}, .depth = DepthInput::first_layer});
  net->to(float64);
  randomize(*net);
  return net;
}

class DepthAndControl : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(8); }
  Tensor x = torch::randn({4, 2}, float64);
};

TEST_F(DepthAndControl, ConstantAdaptiveDepthIsARescaledSpan) {
  const Field field = depth_varying(network(2, 2));
  for (double S : {0.25, 1.0, 1.7}) {
    AdaptiveDepth adaptive_depth(field, torch::nn::AnyModule(ConstantDepth(S)),
                                 NeuralOdeOptions{.solver = tight});
    NeuralOde ode(field, {.last = S, .solver = tight});
    EXPECT_LT(distance(adaptive_depth->forward(x), ode->forward(x)), 1e-11) << "S = " << S;
  }
}

TEST_F(DepthAndControl, GradientOfTheDepthIsTheRateAtItsEnd) {
  const Field field = depth_varying(network(2, 2));
  ConstantDepth depth(0.8);
  for (const auto& [name, sensitivity] : all_sensitivities()) {
    AdaptiveDepth model(field, torch::nn::AnyModule(depth),
                        NeuralOdeOptions{.solver = tight, .sensitivity = sensitivity});
    const Tensor end = model->forward(x);
    const Tensor found = gradient(end.square().sum(), depth->depth);
    const Tensor rate =
        model->ode()->field()->rate(torch::full({}, 0.8, float64), x, end);  // G6: dL/dz(S) f(S, z(S))
    EXPECT_LT(distance(found, (2 * end * rate).sum().view({1}).detach()), 1e-9) << name;
  }
}

TEST_F(DepthAndControl, StackedLayersUnderAdaptiveDepthJumpWhereEachSampleIs) {
  auto stacked = mlp({.features = {2, 5, 2}, .basis = piecewise_constant({.pieces = 3})});
  stacked->to(float64);
  randomize(*stacked);
  const Field field = depth_varying(stacked);
  const Tensor depths = torch::tensor({0.2, 0.5, 0.9, 1.0}, float64);
  NeuralOde ode(field, {.solver = adaptive(dopri5(), 1e-9)});
  const Tensor together = ode->solve_scaled(x, depths).states[-1];
  for (std::int64_t i = 0; i < 4; ++i) {
    NeuralOde alone(field, {.last = depths[i].item<double>(), .solver = tight});
    EXPECT_LT(distance(together.narrow(0, i, 1), alone->forward(x.narrow(0, i, 1))), 1e-5) << i;
  }
}

TEST_F(DepthAndControl, EverySampleRunsToItsOwnDepth) {
  const Field field = depth_varying(network(2, 2));
  const Tensor depths = torch::tensor({0.3, 1.0, 2.2, 0.0}, float64);
  NeuralOde ode(field, {.solver = tight});
  const Tensor end = ode->solve_scaled(x, depths).states[-1];
  for (std::int64_t i = 0; i < 4; ++i) {
    const double S = depths[i].item<double>();
    const Tensor alone = S == 0 ? x.narrow(0, i, 1) : ode->trajectory(x.narrow(0, i, 1), {0.0, S})[-1];
    EXPECT_LT(distance(end.narrow(0, i, 1), alone), 1e-10) << "sample " << i;
  }
}

TEST_F(DepthAndControl, ADepthOfZeroIsTheInputAndStillHasItsGradient) {
  const Field field = depth_varying(network(2, 2));
  const Tensor depths = torch::zeros({4}, float64).requires_grad_();
  NeuralOde ode(field);
  const Tensor end = ode->solve_scaled(x, depths).states[-1];
  EXPECT_TRUE(torch::equal(end, x));
  const Tensor rate = field->rate(torch::zeros({}, float64), x, x);
  EXPECT_LT(distance(gradient(end.sum(), depths), rate.sum(1).detach()), 1e-12);
}

TEST_F(DepthAndControl, ThePapersDepthNetworkIsNeverNegative) {
  PaperDepth depth(2);
  torch::nn::init::normal_(depth->parameters()[2], 0, 10);
  EXPECT_TRUE((depth->forward(torch::randn({100, 2})) >= 0).all().item<bool>());
}

TEST_F(DepthAndControl, RunningLossesAreScaledWithTheDepthOfEachSample) {
  const Tensor depths = torch::tensor({0.5, 1.0, 2.0, 0.0}, float64);
  NeuralOde ode(depth_varying(network(2, 2)),
                {.solver = tight,
                 .running_losses = {[](const Tensor& s, const Tensor&, const Tensor& z, const Tensor&) {
                   return 0 * z.sum(1) + s;
                 }}});
  EXPECT_LT(distance(ode->solve_scaled(x, depths).running_loss[-1], depths.square() / 2), 1e-10);
}

// Known mistake: torchdyn 1.0.6 detaches the data-control input.

TEST_F(DepthAndControl, TheInputGetsItsGradientThroughTheControlToo) {
  for (const auto& [name, sensitivity] : all_sensitivities()) {
    NeuralOde ode(linear_reflection(1.5), {.solver = tight, .sensitivity = sensitivity});
    const Tensor input = x.clone().requires_grad_();
    const Tensor found = gradient(ode->forward(input).sum(), input);
    // d/dx of x (2 exp(-theta) - 1); without the control's part it would be exp(-theta).
    EXPECT_LT(distance(found, torch::full_like(x, 2 * std::exp(-1.5) - 1)), 1e-7) << name;
  }
}

TEST_F(DepthAndControl, TheInputLayerGetsItsGradientThroughTheControlToo) {
  torch::nn::Linear h_x(torch::nn::LinearOptions(2, 2).bias(false));
  h_x->to(float64);
  torch::nn::Sequential model(h_x, NeuralOde(linear_reflection(1.5), NeuralOdeOptions{.solver = tight}));
  const Tensor expected = (2 * std::exp(-1.5) - 1) * x.sum(0).expand({2, 2});
  EXPECT_LT(distance(gradient(model->forward(x).sum(), h_x->weight), expected), 1e-10);
}

TEST_F(DepthAndControl, TheRawInputAsControlIsNotTheInputLayersOutput) {
  torch::nn::Linear h_x(2, 2);
  h_x->to(float64);
  NeuralOde ode(linear_reflection(1.5), {.solver = tight, .input_layer = torch::nn::AnyModule(h_x)});
  // z' = -theta (z + x) from h_x(x):  z(1) = (h_x(x) + x) exp(-theta) - x
  EXPECT_LT(distance(ode->forward(x), (h_x->forward(x) + x) * std::exp(-1.5) - x), 1e-10);
}

TEST_F(DepthAndControl, AControlledModuleUsedTwiceGivesRightGradients) {
  for (const auto& [name, sensitivity] : all_sensitivities()) {
    const Solver solver =
        std::holds_alternative<Discrete>(sensitivity) ? fixed(rk4(), 3) : adaptive(dop853(), 1e-11);
    NeuralOde ode(controlled(network(4, 2)), {.solver = solver, .sensitivity = sensitivity});
    const Tensor input = x.clone().requires_grad_();
    const auto loss = [&] {
      const Tensor first = ode->forward(input);
      return ode->forward_with(input, first).square().sum() + ode->forward(first).sum();
    };
    EXPECT_EQ(wrong_gradients(loss, with_parameters(*ode, {{"x", input}})), "") << name;
  }
}

// The batch

TEST_F(DepthAndControl, PermutingTheBatchPermutesTheResultAndItsGradient) {
  const Tensor order = torch::tensor({2, 0, 3, 1});
  const auto check = [&](const torch::nn::AnyModule& any, const Tensor& batch) {
    torch::nn::AnyModule model = any;
    const Tensor one = batch.clone().requires_grad_(), other = batch.index_select(0, order).requires_grad_();
    const Tensor straight = model.forward(one), permuted = model.forward(other);
    EXPECT_LT(distance(permuted, straight.index_select(0, order)), 1e-12);
    const Tensor gradient_straight = gradient(straight.square().sum(), one);
    EXPECT_LT(distance(gradient(permuted.square().sum(), other), gradient_straight.index_select(0, order)),
              1e-12);
    const auto parameters = model.ptr()->parameters();
    for (const Tensor& parameter : parameters) {
      EXPECT_LT(distance(gradient(permuted.square().sum(), parameter),
                         gradient(straight.square().sum(), parameter)),
                1e-11);
    }
  };
  check(torch::nn::AnyModule(NeuralOde(controlled(network(4, 2)))), x);
  check(torch::nn::AnyModule(NeuralOde(higher_order(depth_varying(network(2, 1)), 2))), x);
  AdaptiveDepth adaptive_depth(depth_varying(network(2, 2)), torch::nn::AnyModule(PaperDepth(2)));
  adaptive_depth->to(float64);
  check(torch::nn::AnyModule(adaptive_depth), x);
  DepthSequential conv(DepthConv2d(2, 2, fourier({.harmonics = 1})), torch::nn::Tanh());
  conv->to(float64);
  check(torch::nn::AnyModule(NeuralOde(depth_varying(conv))), torch::randn({4, 2, 4, 4}, float64));
}

TEST_F(DepthAndControl, GradientsAreOfTheWeightsThatWereSolvedWithWhereTheModuleIsCastMeanwhile) {
  for (bool per_sample : {false, true}) {
    auto net = mlp({.features = {2, 6, 2}, .basis = fourier({.harmonics = 2})});
    net->to(float64);
    NeuralOde ode(depth_varying(net), {.solver = tight, .steps_per_sample = per_sample});
    const Tensor start = x.clone().requires_grad_();
    const Tensor expected = gradient(ode->forward(start).square().sum(), start);
    const Tensor loss = ode->forward(start).square().sum();
    ASSERT_EQ(ode->report().engine, "fused");
    std::vector<Tensor> others;  // in the memory that the weights had, had it been let go of
    for (Tensor& weight : ode->parameters()) {
      weight.set_data(torch::zeros_like(weight));
      others.push_back(torch::full_like(weight, 1e3));
    }
    EXPECT_TRUE(torch::equal(gradient(loss, start), expected)) << "per sample: " << per_sample;
  }
}

TEST_F(DepthAndControl, AControlThatChangesInPlaceBeforeTheGradientIsAnErrorOrDoesNotMatter) {
  const auto net = network(4, 2);
  for (const auto& [name, sensitivity] : all_sensitivities()) {
    if (std::holds_alternative<Unrolled>(sensitivity)) continue;  // a graph of torch's, which looks by itself
    for (bool fused : {true, false}) {
      NeuralOde ode(controlled(net), {.solver = tight, .sensitivity = sensitivity});
      ode->options().solver.fused = fused;
      const Tensor start = x.clone().requires_grad_(), control = x.clone();
      const Tensor expected = gradient(ode->forward_with(start, control).square().sum(), start);
      const Tensor loss = ode->forward_with(start, control).square().sum();
      const bool has_copy = ode->report().engine == "fused";
      control.mul_(2);
      if (has_copy) {
        EXPECT_TRUE(torch::equal(gradient(loss, start), expected)) << name;
      } else {
        EXPECT_THROW(gradient(loss, start), c10::Error) << name;
      }
    }
  }
}

}  // namespace
}  // namespace fathom::testing
