/// Layers of the fused engine that need a case of their own: sizes at which tiles change, options of modules that are not the
/// defaults, and the divergence through each activation. The tensor engine is the reference.
#include "model/fused_problems.hpp"

namespace fathom::testing {
namespace {

namespace nn = torch::nn;

// Tiles and widths

/// Batches whose tiles have 256 and 512 samples with AVX-512, the last of them not full.
TEST(FusedTiles, OfManySamplesGiveTheSameInSinglePrecision) {
  for (const std::int64_t batch : {1024, 4100, 5000}) {
    torch::manual_seed(std::uint64_t(batch));
    Problem problem = problem_of(text("2-32-2, batch ", batch), autonomous(mlp({.features = {2, 32, 2}})),
                                 torch::randn({batch, 2}));
    expect_equal(problem, 1e-5);
    problem.solver = adaptive(dopri5(), 1e-3);
    expect_equal(problem, 1e-5);
  }
}

class EveryPrecision : public ::testing::TestWithParam<torch::ScalarType> {
 protected:
  double tolerance() const { return GetParam() == torch::kFloat32 ? 1e-5 : 1e-12; }
  void expect_same(const std::string& description, const Field& field, const Tensor& z0) {
    expect_equal(problem_of(description, field, z0.to(GetParam())), tolerance());
  }
};

INSTANTIATE_TEST_SUITE_P(Fused, EveryPrecision, ::testing::Values(torch::kFloat32, torch::kFloat64),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

TEST_P(EveryPrecision, HasTheSameWideLayers) {
  for (const std::vector<std::int64_t>& features :
       std::vector<std::vector<std::int64_t>>{{2, 512, 2}, {3, 512, 512, 3}, {512, 7, 512}}) {
    for (const std::int64_t batch : {1, 5, 130}) {
      torch::manual_seed(5);
      expect_same(text("features ", features, ", batch ", batch), autonomous(mlp({.features = features})),
                  torch::randn({batch, features.front()}));
    }
  }
}

// Methods

/// Their rounding is above 1e-5, so that both engines are held against double precision.
TEST(FusedInSinglePrecision, IsAsNearToDoublePrecisionAsTensorsByMethodsOfLargeWeights) {
  for (const Tableau method : methods_of_large_weights) {
    double of_fused = 0, of_tensors = 0;
    for (const std::int64_t batch : {1, 2, 5, 15, 17, 63, 65, 130, 200, 300}) {
      torch::manual_seed(std::uint64_t(batch));
      const Field field = autonomous(mlp({.features = {3, 17, 3}}));
      const Tensor z0 = torch::randn({batch, 3});
      Problem single = problem_of("single", field, z0);
      Problem exact = problem_of("double", field->clone_field(), z0.to(float64));
      single.solver = exact.solver = fixed(method(), 2);
      const std::vector<Tensor> expected = answers_by(Engine::tensor, exact).gradients;
      of_fused += distance(answers_by(Engine::fused, single).gradients, expected);
      of_tensors += distance(answers_by(Engine::tensor, single).gradients, expected);
    }
    EXPECT_LT(of_fused, 1.5 * of_tensors) << method().name;
  }
}

// Options of modules

const std::vector<std::int64_t> batches = {1, 5, 70};

TEST_P(EveryPrecision, HasTheSameLinearLayersWithoutBias) {
  for (const std::int64_t batch : batches) {
    torch::manual_seed(6);
    const auto linear = [](std::int64_t inputs, std::int64_t outputs) {
      return nn::Linear(nn::LinearOptions(inputs, outputs).bias(false));
    };
    expect_same(
        text("without bias, batch ", batch),
        autonomous(DepthSequential(linear(3, 17), nn::Tanh(), linear(17, 5), nn::Tanh(), linear(5, 3))),
        torch::randn({batch, 3}));
    expect_same(
        text("varying without bias, batch ", batch),
        depth_varying(DepthSequential(DepthLinear(3, 17, fourier({.harmonics = 1}), false), nn::Tanh(),
                                      DepthLinear(17, 3, chebyshev({.degree = 2}), false))),
        torch::randn({batch, 3}));
  }
}

TEST_P(EveryPrecision, HasTheSameEluOfAnyAlpha) {
  for (const double alpha : {0.3, 1.7}) {
    for (const std::int64_t batch : batches) {
      torch::manual_seed(7);
      const nn::ELU elu(nn::ELUOptions().alpha(alpha));
      expect_same(text("alpha ", alpha, ", batch ", batch),
                  autonomous(DepthSequential(nn::Linear(3, 17), elu, nn::Linear(17, 3), elu)),
                  2 * torch::randn({batch, 3}));
    }
  }
}

/// Arguments lie on both sides of the threshold.
TEST_P(EveryPrecision, HasTheSameSoftplusOfAnyBetaAndThreshold) {
  for (const auto& [beta, threshold] : {std::pair{2.5, 3.0}, {0.4, 0.2}, {1.0, -0.5}}) {
    for (const std::int64_t batch : batches) {
      torch::manual_seed(8);
      const nn::Softplus softplus(nn::SoftplusOptions().beta(beta).threshold(threshold));
      expect_same(text("beta ", beta, ", threshold ", threshold, ", batch ", batch),
                  autonomous(DepthSequential(nn::Linear(3, 17), softplus, nn::Linear(17, 3))),
                  3 * torch::randn({batch, 3}));
    }
  }
}

// Augmentations among the layers

TEST_P(EveryPrecision, HasTheSameAugmentationsInsideAField) {
  for (const std::int64_t batch : batches) {
    torch::manual_seed(13);
    const nn::Sequential two(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
    for (const Side side : {Side::front, Side::end}) {
      expect_same(text("augmented, batch ", batch),
                  autonomous(DepthSequential(PartialAugmentation(nn::Linear(3, 2), side), nn::Linear(5, 9),
                                             nn::Tanh(), ZeroAugmentation(2, side), nn::Linear(11, 3))),
                  torch::randn({batch, 3}));
      expect_same(text("augmented by a chain, batch ", batch),
                  autonomous(DepthSequential(PartialAugmentation(two, side), ZeroAugmentation(0),
                                             nn::Linear(5, 3), nn::SiLU())),
                  torch::randn({batch, 3}));
    }
  }
}

TEST(FusedEngine, NamesALayerInsideAnAugmentationThatIsNotLowered) {
  const DepthSequential net(PartialAugmentation(nn::Sequential(nn::Linear(3, 2), nn::GELU())),
                            nn::Linear(5, 3));
  NeuralOde ode(autonomous(net));
  ode->forward(torch::ones({4, 3}));
  EXPECT_EQ(ode->report().not_fused, "layer 1 (GELU) has no kernel");
}

// Weights that vary

/// 64 x 64 weights on a basis: about ten steps of dopri5 have room to be prepared at once.
Problem wide_varying_problem(torch::ScalarType type) {
  torch::manual_seed(7);
  Problem problem = problem_of(
      "wide, varying", depth_varying(mlp({.features = {3, 64, 64, 3}, .basis = chebyshev({.degree = 2})})),
      torch::randn({130, 3}, type));
  problem.solver = fixed(dopri5(), 25);
  return problem;
}

TEST(FusedEngine, WalksBackInGroupsOfStepsWhereManyWeightsVary) {
  Problem problem = wide_varying_problem(torch::kFloat64);
  for (const Discrete& how : {Discrete{}, Discrete{.checkpoint_every = 13}, Discrete{.memory_budget = 1}}) {
    problem.sensitivity = how;
    expect_equal(problem, 1e-12);
  }
}

TEST(FusedEngine, SumsGradientsOfVaryingWeightsOverThreads) {
  const Problem problem = wide_varying_problem(torch::kFloat32);
  const Answers one = answers_with_threads(problem, 1), three = answers_with_threads(problem, 3);
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    EXPECT_LT(distance(three.gradients[i], one.gradients[i]), 1e-6) << i;
  }
}

TEST(FusedEngine, AddsTheGradientsOfAWeightThatIsUsedTwice) {
  const nn::Linear shared(2, 2);
  expect_equal(problem_of("used twice", autonomous(DepthSequential(shared, nn::Tanh(), shared)),
                          torch::linspace(-1, 1, 6, float64).view({3, 2})),
               1e-12);
}

TEST(FusedEngine, GivesUnusedParametersZeros) {
  Problem problem = random_problem({"plain", torch::kFloat64, 7, 3, 0});
  problem.field.parameters.push_back(torch::ones({3}, float64).requires_grad_());
  EXPECT_EQ(answers_by(Engine::fused, problem).gradients.back().abs().sum().item<double>(), 0.0);
}

// A depth of each sample

TEST_P(EveryPrecision, HasTheSameRunningLossesWhereSamplesHaveDepthsOfTheirOwn) {
  for (const std::int64_t batch : batches) {
    torch::manual_seed(12);
    auto net = mlp({.features = {4, 17, 2}, .depth = DepthInput::first_layer});
    net->to(GetParam());
    const auto wanting = torch::TensorOptions(GetParam()).requires_grad(true);
    const Tensor x = torch::randn({batch, 2}, wanting), depths = 0.2 + torch::rand({batch}, wanting);
    const auto answers_by_engine = [&](Engine engine) {
      NeuralOde ode(controlled(net), NeuralOdeOptions{.solver = {.method = rk4(),
                                                                 .steps = FixedSteps{.count = 5},
                                                                 .fused = engine == Engine::fused},
                                                      .running_losses = {path_length(), kinetic_energy()}});
      const Solution solution = ode->solve_scaled(x, depths, {0.0, 0.4, 1.0});
      EXPECT_EQ(ode->report().engine, engine == Engine::fused ? "fused" : "tensor")
          << ode->report().not_fused;
      std::vector<Tensor> variables = net->parameters();
      variables.insert(variables.end(), {x, depths});
      std::vector<Tensor> answers = torch::autograd::grad(
          {solution.states.square().sum() + solution.running_loss.square().sum()}, variables, {},
          /*retain_graph=*/true);
      answers.push_back(solution.states.detach());
      answers.push_back(solution.running_loss.detach());
      return answers;
    };
    EXPECT_LT(distance(answers_by_engine(Engine::fused), answers_by_engine(Engine::tensor)), tolerance())
        << "batch " << batch;
  }
}

TEST(FusedEngine, NamesATargetThatHasNoKernelWhereSamplesHaveDepthsOfTheirOwn) {
  const DepthBasis target = own_basis("target", 2, [](double s) { return std::vector<double>{s, 1.0}; });
  NeuralOde ode(autonomous(mlp({.features = {2, 3, 2}})),
                NeuralOdeOptions{.running_losses = {tracking(target)}});
  ode->solve_scaled(torch::ones({4, 2}), torch::ones({4}), {0.0, 1.0});
  EXPECT_EQ(ode->report().not_fused, "a target over depth has no kernel for a depth of each sample");
}

// Divergence

/// A flow of three layers, which integrates the divergence of its field.
Flow flow_through(Activation activation, bool fused, torch::ScalarType type) {
  torch::manual_seed(9);
  auto net = mlp({.features = {3, 17, 6, 3}, .activation = activation, .depth = DepthInput::first_layer});
  net->to(type);
  return Flow(depth_varying(net), standard_normal(3, type),
              FlowOptions{.solver = {.method = rk4(), .steps = FixedSteps{.count = 5}, .fused = fused}});
}

std::vector<Tensor> log_densities_and_gradients(Flow& flow, std::int64_t batch, torch::ScalarType type) {
  torch::manual_seed(10);
  const Tensor x = torch::randn({batch, 3}, type).requires_grad_();
  std::vector<Tensor> variables = flow->parameters();
  variables.push_back(x);
  const Tensor log_density = flow->log_prob(x);
  std::vector<Tensor> answers = torch::autograd::grad({log_density.sum()}, variables);
  answers.push_back(log_density.detach());
  return answers;
}

TEST_P(EveryPrecision, HasTheSameDivergenceThroughEveryActivationThatIsLowered) {
  for (const Activation activation : traced_activations) {
    for (const std::int64_t batch : batches) {
      Flow fused = flow_through(activation, true, GetParam());
      Flow tensor = flow_through(activation, false, GetParam());
      const auto given = log_densities_and_gradients(fused, batch, GetParam());
      EXPECT_EQ(fused->report().engine, "fused") << fused->report().not_fused;
      EXPECT_LT(distance(given, log_densities_and_gradients(tensor, batch, GetParam())), tolerance())
          << name_of(activation) << ", batch " << batch;
    }
  }
}

TEST(FusedDivergence, NamesTheActivationThatIsNotLowered) {
  const DepthSequential net(nn::Linear(3, 5), nn::Tanh(), nn::Linear(5, 5), nn::GELU(), nn::Linear(5, 3));
  Flow flow(autonomous(net), standard_normal(3));
  flow->log_prob(torch::ones({4, 3}));
  EXPECT_EQ(flow->report().engine, "tensor");
  EXPECT_EQ(flow->report().not_fused, "layer 3 (GELU) has no kernel");
  const DepthSequential other(nn::Linear(3, 5), nn::GELU(), nn::Linear(5, 3));
  Flow after_the_first(autonomous(other), standard_normal(3));
  after_the_first->log_prob(torch::ones({4, 3}));
  EXPECT_EQ(after_the_first->report().not_fused, "layer 1 (GELU) has no kernel");
}

TEST(FusedDivergence, NamesAFirstLayerWithoutAFunction) {
  Flow flow = flow_through(Activation::identity, true, torch::kFloat64);
  log_densities_and_gradients(flow, 4, torch::kFloat64);
  EXPECT_EQ(flow->report().engine, "tensor");
  EXPECT_EQ(flow->report().not_fused, "the divergence of a first layer without a function has no kernel");
}

/// torch's softplus is the identity beyond its threshold, so that its slope is 1 there and not almost 1.
Field beyond_the_threshold(double threshold) {
  torch::manual_seed(11);
  const Field field = autonomous(
      DepthSequential(nn::Linear(3, 17), nn::Softplus(nn::SoftplusOptions().beta(2).threshold(threshold)),
                      nn::Linear(17, 3)));
  field->to(float64);
  return field;
}

TEST(SoftplusDivergence, ByTangentsIsTheExactOneBeyondTheThreshold) {
  const Field field = beyond_the_threshold(1);
  const Tensor s = torch::zeros({}, float64), z = 3 * torch::randn({50, 3}, float64);
  EXPECT_LT(distance(mlp_divergence(field, s, {}, z), exact_divergence(field, s, {}, z)), 1e-13);
}

TEST(SoftplusDivergence, IsTheSameBeyondTheThresholdInBothEngines) {
  const Field field = beyond_the_threshold(1);
  Problem problem = problem_of("softplus beyond its threshold", field, 3 * torch::randn({50, 3}, float64));
  problem.field.lowered = lower(field, problem.z0, {.divergence = true});
  problem.field.running_loss = [=](const Tensor& s, const Tensor& z, const Tensor&) {
    return mlp_divergence(field, s, {}, z);
  };
  expect_equal(problem, 1e-12);
}

}  // namespace
}  // namespace fathom::testing
