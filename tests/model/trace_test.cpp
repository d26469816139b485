/// The divergence of a field: by products, by tangents through an MLP, and estimated by random probes.
#include "fathom/model/trace.hpp"

#include <gtest/gtest.h>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

constexpr std::int64_t features = 3, samples = 4;

struct NamedField {
  std::string name;
  Field field;
};

/// Every kind of MLP that tangents can follow, with the given activation.
std::vector<NamedField> fields(Activation activation) {
  const auto net = [&](std::int64_t inputs, MlpOptions options = {}) {
    options.features = {inputs, 5, 4, features};
    options.activation = activation;
    options.last_activation = activation;
    return mlp(options);
  };
  const auto embedding = mlp({.features = {features, features}, .depth = DepthInput::first_layer}).ptr();
  std::vector<NamedField> all = {
      {"autonomous", autonomous(net(features))},
      {"concat first", depth_varying(net(features, {.depth = DepthInput::first_layer}))},
      {"concat every", depth_varying(net(features, {.depth = DepthInput::every_layer}))},
      {"galerkin", depth_varying(net(features, {.basis = fourier({.harmonics = 1})}))},
      {"stacked", depth_varying(net(features, {.basis = piecewise_constant()}))},
      {"concatenated control", controlled(net(2 * features))},
      {"added control", controlled(net(features), {.entry = ControlEntry::addition})},
      {"embedded control", controlled(net(2 * features), {.embedding = embedding})}};
  for (auto& [name, field] : all) {
    field->to(float64);
    randomize(*field);
  }
  return all;
}

struct Divergence : ::testing::Test {
  void SetUp() override { torch::manual_seed(2); }
  Tensor s = torch::full({}, 0.37, float64), x = random_variable({samples, features}),
         z = random_variable({samples, features});
};

TEST_F(Divergence, OfAnMlpByTangentsIsTheExactOneForEveryActivationAndEveryKind) {
  for (const Activation activation :
       {Activation::tanh, Activation::relu, Activation::softplus, Activation::elu, Activation::sigmoid,
        Activation::silu, Activation::identity}) {
    for (const auto& [name, field] : fields(activation)) {
      ASSERT_TRUE(is_plain_mlp(field)) << name;
      const Tensor tangents = mlp_divergence(field, s, x, z), products = exact_divergence(field, s, x, z);
      EXPECT_LT(distance(tangents, products), 1e-13) << name << ", activation " << int(activation);
      if (activation == Activation::identity) continue;  // its divergence is a constant of some variables
      const auto variables = with_parameters(*field, {{"z", z}});
      EXPECT_LT(distance(gradients_of(tangents.square().sum(), variables),
                         gradients_of(products.square().sum(), variables)),
                1e-11)
          << name << ", activation " << int(activation);
    }
  }
}

TEST_F(Divergence, OfAnMlpIsTheSameWithoutAGraph) {
  const torch::NoGradGuard no_graph;
  for (const auto& [name, field] : fields(Activation::tanh))
    EXPECT_LT(distance(mlp_divergence(field, s, x, z), exact_divergence(field, s, x, z)), 1e-13) << name;
}

TEST_F(Divergence, ByProductsEqualsDifferencesOfTheRate) {
  const torch::NoGradGuard no_graph;
  for (const auto& [name, field] : fields(Activation::tanh)) {
    Tensor sum = torch::zeros({samples}, float64);
    constexpr double move = 1e-5;
    for (std::int64_t i = 0; i < features; ++i) {
      const Tensor step = move * torch::eye(features, float64)[i];
      sum += (field->rate(s, x, z + step) - field->rate(s, x, z - step)).select(1, i) / (2 * move);
    }
    EXPECT_LT(distance(exact_divergence(field, s, x, z), sum), 1e-8) << name;
  }
}

TEST_F(Divergence, FallsBackToProductsForOtherFields) {
  EXPECT_FALSE(is_plain_mlp(higher_order(autonomous(mlp({.features = {4, 2}})), 2)));
  EXPECT_FALSE(is_plain_mlp(depth_varying(DepthSequential(HyperLinear(features, features)))));
  EXPECT_FALSE(is_plain_mlp(linear_reflection()));
  EXPECT_TRUE(is_plain_mlp(autonomous(torch::nn::Sequential(torch::nn::Linear(2, 2), torch::nn::Tanh()))));
  // z_q' = z_p adds nothing to the divergence
  auto net = mlp({.features = {4, 5, 2}});
  net->to(float64);
  const Tensor state = torch::randn({samples, 4}, float64);
  const Tensor trace = exact_divergence(higher_order(autonomous(net), 2), s, {}, state);
  const Tensor input = state.clone().requires_grad_();
  const Tensor rates = net->forward(s, input);
  const Tensor expected = gradient(rates.select(1, 0).sum(), input).select(1, 2) +
                          gradient(rates.select(1, 1).sum(), input).select(1, 3);
  EXPECT_LT(distance(trace, expected), 1e-13);
}

TEST_F(Divergence, OfAFieldThatDoesNotMoveIsZero) {
  const Field constant = own_field(
      {.rate = [](const Tensor&, const Tensor&, const Tensor& at) { return torch::ones_like(at.detach()); }});
  EXPECT_EQ(exact_divergence(constant, s, {}, z).abs().max().item<double>(), 0);
  EXPECT_EQ(estimated_divergence(constant, s, {}, z, torch::ones_like(z)).abs().max().item<double>(), 0);
}

// Hutchinson

class EveryProbe : public ::testing::TestWithParam<Trace> {};

TEST_P(EveryProbe, GivesTheLogDensityOnAverage) {
  torch::manual_seed(4);
  auto net = mlp({.features = {features, 6, features}});
  net->to(float64);
  randomize(*net);
  const Field field = autonomous(net);
  const Density base = standard_normal(features, float64);
  const torch::NoGradGuard no_graph;
  constexpr std::int64_t probes = 20000;
  const Tensor point = torch::randn({1, features}, float64);
  Flow exact(field, base, FlowOptions{.solver = fixed(rk4(), 4)});
  Flow estimated(field, base, FlowOptions{.solver = fixed(rk4(), 4), .trace = GetParam()});
  // Every row has a probe of its own.
  const Tensor values = estimated->log_prob(point.expand({probes, features}));
  const double error = (values.mean() - exact->log_prob(point)).item<double>();
  const double standard_error = values.std().item<double>() / std::sqrt(double(probes));
  EXPECT_GT(standard_error, 1e-4) << "the probes do not vary";
  EXPECT_LT(std::abs(error), 3 * standard_error);
}

TEST_P(EveryProbe, IsFixedDuringASolve) {
  torch::manual_seed(4);
  auto net = mlp({.features = {features, 6, features}});
  net->to(float64);
  const Density base = standard_normal(features, float64);
  const Solver solver = adaptive(dopri5(), 1e-8);
  Flow exact(autonomous(net), base, FlowOptions{.solver = solver});
  Flow estimated(autonomous(net), base, FlowOptions{.solver = solver, .trace = GetParam()});
  const Tensor x = torch::randn({8, features}, float64);
  exact->log_prob(x);
  estimated->log_prob(x);
  // Noise that changed between evaluations could not be integrated to 1e-8 at this price.
  EXPECT_LT(estimated->report().evaluations, 2 * exact->report().evaluations);
}

INSTANTIATE_TEST_SUITE_P(Divergence, EveryProbe,
                         ::testing::Values(Trace::hutchinson_gaussian, Trace::hutchinson_rademacher),
                         [](const auto& test) {
                           return test.param == Trace::hutchinson_gaussian ? "gaussian" : "rademacher";
                         });

TEST_F(Divergence, ByRademacherProbesIsExactWhereTheJacobianIsDiagonal) {
  const Field diagonal =
      own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& at) { return at.sin(); }});
  const Tensor probe = torch::randint(0, 2, {samples, features}, float64) * 2 - 1;
  EXPECT_LT(distance(estimated_divergence(diagonal, s, {}, z, probe), z.cos().sum(1)), 1e-14);
}

TEST_F(Divergence, TakesNoDerivedLayerForThePlainOne) {
  struct DoublingLinearImpl : torch::nn::LinearImpl {
    using LinearImpl::LinearImpl;
    Tensor forward(const Tensor& h) { return 2 * LinearImpl::forward(h); }
  };
  const auto odd = std::make_shared<DoublingLinearImpl>(5, features);
  const Field field = autonomous(DepthSequential(torch::nn::Linear(features, 5), torch::nn::Tanh(),
                                                 torch::nn::ModuleHolder<DoublingLinearImpl>(odd)));
  EXPECT_FALSE(is_plain_mlp(field));
}

}  // namespace
}  // namespace fathom::testing
