/// Flows against closed forms: densities of carried Gaussians, round trips, integrals, conditions, and the likelihood of a
/// flow that is controlled by its own sample (M10, M11).
#include <gtest/gtest.h>

#include <numbers>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

const Solver tight = adaptive(dop853(), 1e-12);

/// log N(x; mean, covariance), straight from the formula.
Tensor log_gaussian(const Tensor& x, const Tensor& mean, const Tensor& covariance) {
  const Tensor away = x - mean;
  const Tensor square = (torch::matmul(away, torch::inverse(covariance)) * away).sum(1);
  return -0.5 * (square + torch::logdet(covariance) + double(x.size(1)) * std::log(2 * std::numbers::pi));
}

DepthSequential network(std::int64_t inputs, std::int64_t outputs, double deviation = 0.5) {
  auto net = mlp({.features = {inputs, 8, outputs}, .activation = Activation::softplus});
  net->to(float64);
  randomize(*net, deviation);
  return net;
}

/// The sum of p over a grid of cells, for a density that is nothing beyond `reach`.
double integral_1d(const std::function<Tensor(const Tensor&)>& log_prob, double reach = 12) {
  const std::int64_t points = 4001;
  const Tensor x = torch::linspace(-reach, reach, points, float64).unsqueeze(1);
  const torch::NoGradGuard no_graph;
  return log_prob(x).exp().sum().item<double>() * 2 * reach / double(points - 1);
}

class Flows : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(21); }
};

TEST_F(Flows, CloneDeeply) {
  Flow flow(controlled(network(4, 2)), standard_normal(2, float64), {.last = 0.7, .solver = tight});
  const Tensor x = torch::randn({5, 2}, float64), condition = torch::randn({5, 2}, float64);
  const Tensor before = flow->log_prob(x, condition).detach();
  const auto copy = std::dynamic_pointer_cast<FlowImpl>(flow->clone());
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(torch::equal(copy->log_prob(x, condition), before));
  const torch::NoGradGuard no_graph;
  for (Tensor parameter : copy->parameters()) parameter.add_(0.1);
  EXPECT_TRUE(torch::equal(flow->log_prob(x, condition), before));
  EXPECT_FALSE(torch::equal(copy->log_prob(x, condition), before));
}

/// z' = A z + b carries x to E x + c; under z ~ N(m, D) then x ~ N(E^-1 (m - c), E^-1 D E^-T).
struct LinearFlow {
  Tensor A = torch::tensor({{0.4, -1.1}, {0.7, -0.2}}, float64), b = torch::tensor({0.3, -0.6}, float64);
  Tensor mean = torch::tensor({0.2, -0.1}, float64), deviation = torch::tensor({0.8, 1.3}, float64);

  Density base() const { return diagonal_normal(mean, deviation); }
  Field as_layer() const {
    torch::nn::Linear layer(2, 2);
    layer->to(float64);
    layer->weight.detach().copy_(A);
    layer->bias.detach().copy_(b);
    return autonomous(layer);
  }
  Field as_function() const {
    return own_field({.rate = [A = A, b = b](const Tensor&, const Tensor&, const Tensor& z) {
      return torch::matmul(z, A.t()) + b;
    }});
  }
  Tensor log_prob(const Tensor& x) const {
    const Tensor whole =
        torch::matrix_exp(torch::cat({torch::cat({A, b.unsqueeze(1)}, 1), torch::zeros({1, 3}, float64)}, 0));
    const Tensor back = torch::inverse(whole.narrow(0, 0, 2).narrow(1, 0, 2)),
                 c = whole.narrow(0, 0, 2).select(1, 2);
    return log_gaussian(x, torch::matmul(back, mean - c),
                        back.matmul(torch::diag(deviation.square())).matmul(back.t()));
  }
};

TEST_F(Flows, OfAGaussianUnderALinearFieldHaveItsClosedForm) {
  const LinearFlow linear;
  const Tensor x = 2 * torch::randn({50, 2}, float64);
  for (const Field& field : {linear.as_layer(), linear.as_function()}) {
    Flow flow(field, linear.base(), FlowOptions{.solver = tight});
    EXPECT_LT(distance(flow->log_prob(x), linear.log_prob(x)), 1e-8);
  }
}

TEST_F(Flows, WorkInFloat64AtTolerance1e8) {
  const LinearFlow linear;
  const Tensor x = 2 * torch::randn({50, 2}, float64);
  Flow flow(linear.as_layer(), linear.base(), FlowOptions{.solver = adaptive(dopri5(), 1e-8)});
  EXPECT_LT(distance(flow->log_prob(x), linear.log_prob(x)), 1e-6);
  EXPECT_LT(flow->report().evaluations, 400);
}

TEST_F(Flows, UnderADepthVaryingFieldHaveTheirClosedForm) {
  // z' = (1 - 3 s) z carries x to x exp(1 - 3/2)
  DepthLinear layer(1, 1, polynomial(1), /*with_bias=*/false);
  layer->to(float64);
  layer->weight.detach().copy_(torch::tensor({1.0, -3.0}, float64).view({2, 1, 1}));
  Flow flow(depth_varying(layer), standard_normal(1, float64), FlowOptions{.solver = tight});
  const Tensor x = torch::linspace(-3, 3, 11, float64).unsqueeze(1);
  const Tensor expected =
      log_gaussian(x, torch::zeros({1}, float64), torch::full({1, 1}, std::exp(1.0), float64));
  EXPECT_LT(distance(flow->log_prob(x), expected), 1e-8);
}

TEST_F(Flows, EndAtAnyDepth) {
  const LinearFlow linear;
  Flow flow(linear.as_layer(), linear.base(), FlowOptions{.last = 0.5, .solver = tight});
  LinearFlow half = linear;
  half.A = linear.A / 2, half.b = linear.b / 2;
  const Tensor x = torch::randn({20, 2}, float64);
  EXPECT_LT(distance(flow->log_prob(x), half.log_prob(x)), 1e-8);
}

TEST_F(Flows, ComeBackToWhereTheyStarted) {
  Flow flow(autonomous(network(2, 2)), standard_normal(2, float64),
            FlowOptions{.solver = adaptive(dopri5(), 1e-9)});
  const Tensor x = torch::randn({200, 2}, float64);
  EXPECT_LT(distance(flow->pull_back(flow->push_forward(x)), x), 1e-7);
  EXPECT_LT(distance(flow->push_forward(flow->pull_back(x)), x), 1e-7);
}

TEST_F(Flows, GiveTheirSamplesTheProbabilityOfTheNoiseTheyCameFrom) {
  const LinearFlow linear;
  Flow flow(linear.as_layer(), linear.base(), FlowOptions{.solver = adaptive(dopri5(), 1e-9)});
  torch::manual_seed(3);
  const Tensor x = flow->sample(200);
  torch::manual_seed(3);
  const Tensor noise = linear.base().sample(200, {});
  EXPECT_LT(distance(flow->push_forward(x), noise), 1e-7);
  const double trace = linear.A.trace().item<double>();
  EXPECT_LT(distance(flow->log_prob(x), linear.base().log_prob(noise, {}) + trace), 1e-7);
}

TEST_F(Flows, AreDensitiesThatIntegrateToOne) {
  Flow flow(depth_varying(DepthSequential(DepthConcat(), network(3, 2))), standard_normal(2, float64),
            FlowOptions{.solver = adaptive(dopri5(), 1e-6)});
  const std::int64_t points = 161;
  const double reach = 16, cell = 2 * reach / double(points - 1);
  const Tensor axis = torch::linspace(-reach, reach, points, float64);
  const auto grid = torch::meshgrid({axis, axis}, "ij");
  const torch::NoGradGuard no_graph;
  const Tensor p = flow->log_prob(torch::stack({grid[0].flatten(), grid[1].flatten()}, 1)).exp();
  EXPECT_NEAR(p.sum().item<double>() * cell * cell, 1.0, 1e-3);
}

TEST_F(Flows, WithAConditionHaveADensityForEach) {
  // z' = c z: x ~ N(0, exp(-2 c))
  const Field field = own_field(
      {.rate = [](const Tensor&, const Tensor& c, const Tensor& z) { return c * z; }, .controlled = true});
  Flow flow(field, standard_normal(1, float64), FlowOptions{.solver = tight});
  const Tensor x = torch::linspace(-2, 2, 9, float64).unsqueeze(1);
  for (double c : {-0.7, 0.4}) {
    const Tensor covariance = torch::full({1, 1}, std::exp(-2 * c), float64);
    EXPECT_LT(distance(flow->log_prob(x, torch::full({9, 1}, c, float64)),
                       log_gaussian(x, torch::zeros({1}, float64), covariance)),
              1e-8);
  }
  const Tensor samples = flow->sample(4000, torch::full({4000, 1}, 0.4, float64));
  EXPECT_NEAR(samples.std().item<double>(), std::exp(-0.4), 4 * std::exp(-0.4) / std::sqrt(8000.0));
}

TEST_F(Flows, PassTheConditionToTheBaseDensity) {
  const Density moved{.log_prob = [](const Tensor& z, const Tensor& c) { return -(z - c).square().sum(1); },
                      .sample = [](std::int64_t, const Tensor& c) { return c.clone(); }};
  Flow still(own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) { return 0 * z; }}), moved);
  const Tensor c = torch::randn({5, 2}, float64);
  EXPECT_TRUE(torch::equal(still->sample(5, c), c));
  EXPECT_LT(still->log_prob(c, c).abs().max().item<double>(), 1e-14);
}

// The control is the sample itself (M11).

FlowOptions controlled_by_sample(const Sensitivity& sensitivity = Discrete{}) {
  return {.solver = tight, .sensitivity = sensitivity, .controlled_by_sample = true};
}

TEST_F(Flows, ControlledByTheirSampleHaveTheTotalJacobiansDensity) {
  const double theta = 2, slope = 2 * std::exp(-theta) - 1;  // z(1) = slope x
  Flow flow(linear_reflection(theta), standard_normal(1, float64), controlled_by_sample());
  const Tensor x = torch::linspace(-3, 3, 13, float64).unsqueeze(1);
  const Tensor base = log_gaussian(slope * x, torch::zeros({1}, float64), torch::ones({1, 1}, float64));
  EXPECT_LT(distance(flow->log_prob(x), base + std::log(std::abs(slope))), 1e-8);
  EXPECT_LT(distance(flow->trace_only_log_prob(x), base - theta), 1e-8);
}

TEST_F(Flows, ControlledByTheirSampleIntegrateToOneAndTheTraceAloneDoesNot) {
  const double theta = 2;
  Flow reflection(linear_reflection(theta), standard_normal(1, float64), controlled_by_sample());
  EXPECT_NEAR(integral_1d([&](const Tensor& x) { return reflection->log_prob(x); }), 1, 1e-3);
  EXPECT_NEAR(integral_1d([&](const Tensor& x) { return reflection->trace_only_log_prob(x); }),
              std::exp(-theta) / std::abs(2 * std::exp(-theta) - 1), 1e-3);  // 0.19

  Flow learned(controlled(network(2, 1)), standard_normal(1, float64), controlled_by_sample());
  EXPECT_NEAR(integral_1d([&](const Tensor& x) { return learned->log_prob(x); }), 1, 1e-3);
  EXPECT_GT(std::abs(integral_1d([&](const Tensor& x) { return learned->trace_only_log_prob(x); }) - 1),
            0.02);
}

TEST_F(Flows, ControlledByTheirSampleAgreeWithTheJacobianOfTheirMap) {
  const Field field = controlled(network(4, 2, 0.4));
  const Tensor x = torch::randn({5, 2}, float64);
  for (const Sensitivity& sensitivity : std::vector<Sensitivity>{Discrete{}, Adjoint{}, Unrolled{}}) {
    Flow flow(field, standard_normal(2, float64), controlled_by_sample(sensitivity));
    const Tensor input = x.clone().requires_grad_();
    const Tensor end = flow->push_forward(input);
    std::vector<Tensor> rows;
    for (std::int64_t i = 0; i < 2; ++i) rows.push_back(gradient(end.select(1, i).sum(), input));
    const Tensor log_slope = std::get<1>(torch::slogdet(torch::stack(rows, 1)));
    const Tensor expected = standard_normal(2, float64).log_prob(end, {}) + log_slope;
    EXPECT_LT(distance(flow->log_prob(x), expected.detach()), 1e-8);
    // With a gradient wanted, an unrolled z itself depends on x; that must not be counted as dependence on the control.
    EXPECT_LT(distance(flow->log_prob(input), expected.detach()), 1e-8);
  }
}

TEST_F(Flows, ControlledByTheirSampleAreSampledByInvertingTheMap) {
  for (const auto& [field, d] :
       {std::pair{linear_reflection(2.0), 1}, std::pair{controlled(network(4, 2, 0.4)), 2}}) {
    Flow flow(field, standard_normal(d, float64), controlled_by_sample());
    torch::manual_seed(3);
    const Tensor x = flow->sample(20);
    torch::manual_seed(3);
    EXPECT_LT(distance(flow->push_forward(x), standard_normal(d, float64).sample(20, {})), 1e-7);
    EXPECT_EQ(flow->sample(0).size(0), 0);
  }
}

// Base densities

TEST_F(Flows, MixturesAreSumsOfNormals) {
  const Mixture two{.weights = torch::tensor({3.0, 1.0}, float64),
                    .means = torch::tensor({{-1.0, 0.0}, {2.0, 1.0}}, float64),
                    .deviations = torch::tensor({{0.5, 1.0}, {0.7, 0.2}}, float64)};
  const Density mixture = normal_mixture(two);
  const Tensor x = torch::randn({30, 2}, float64);
  const auto part = [&](std::int64_t i) {
    return log_gaussian(x, two.means[i], torch::diag(two.deviations[i].square())).exp();
  };
  EXPECT_LT(distance(mixture.log_prob(x, {}).exp(), 0.75 * part(0) + 0.25 * part(1)), 1e-12);
  const Tensor samples = mixture.sample(20000, {});
  EXPECT_LT(distance(samples.mean(0), torch::tensor({-0.25, 0.25}, float64)), 0.05);
  Flow flow(autonomous(network(2, 2)), mixture);
  EXPECT_EQ(flow->sample(7).sizes(), (std::vector<std::int64_t>{7, 2}));
}

TEST_F(Flows, WithStepsOfEachSampleGiveTheBitsOfTheSampleAlone) {
  const Density base = standard_normal(2, float64);
  const auto field = controlled(network(4, 2, 1));
  for (const bool fused : {true, false}) {
    for (const bool by_sample : {false, true}) {
      const FlowOptions alone{.solver = {.fused = fused}, .controlled_by_sample = by_sample};
      FlowOptions apart = alone;
      apart.steps_per_sample = true;
      Flow one(field, base, alone), all(field, base, apart);
      const Tensor x = torch::randn({4, 2}, float64) * 3;
      const Tensor condition = by_sample ? Tensor() : torch::randn({4, 2}, float64);
      const auto of = [](const Tensor& rows, std::int64_t i) {
        return rows.defined() ? rows.narrow(0, i, 1) : rows;
      };
      const Tensor values = all->log_prob(x, condition), carried = all->push_forward(x, condition);
      for (std::int64_t i = 0; i < 4; ++i) {
        // torch sums the rows of the base density in another order, alone and among others.
        EXPECT_LT(distance(values.narrow(0, i, 1), one->log_prob(of(x, i), of(condition, i))), 1e-12) << i;
        EXPECT_TRUE(torch::equal(carried.narrow(0, i, 1), one->push_forward(of(x, i), of(condition, i))))
            << i;
      }
    }
  }
}

TEST_F(Flows, NoticeAConditionThatIsChangedBeforeTheGradientIsTaken) {
  for (const Trace trace : {Trace::exact, Trace::hutchinson_gaussian}) {
    Flow flow(controlled(mlp({.features = {4, 4, 2}})), standard_normal(2),
              {.solver = {.fused = false}, .trace = trace});
    const Tensor x = torch::randn({5, 2});
    Tensor condition = torch::randn({5, 2});
    const Tensor loss = -flow->log_prob(x, condition).mean();
    condition.add_(1);
    EXPECT_THROW(loss.backward(), c10::Error);
  }
}

TEST_F(Flows, SayWhatIsWrongInOneSentence) {
  const Density base = standard_normal(1, float64);
  const Tensor x = torch::zeros({3, 1}, float64);
  Flow plain(autonomous(network(1, 1)), base), conditional(controlled(network(2, 1)), base);
  Flow own(controlled(network(2, 1)), base, controlled_by_sample());
  const auto says = [](auto&& work, const std::string& expected) {
    EXPECT_NE(message_of(work).find(expected), std::string::npos) << message_of(work);
  };
  says([&] { conditional->log_prob(x); },
       "this flow is conditional and needs a condition with one row a sample, got none");
  says([&] { conditional->sample(3); }, "this flow is conditional and needs a condition");
  says(
      [&] {
        conditional->log_prob(x, torch::zeros({2, 1}, float64));
      },
      "one row for each of the 3 samples, got shape [2, 1]");
  says([&] { own->log_prob(x, x); }, "a flow controlled by its sample takes no condition");
  says([&] { plain->trace_only_log_prob(x); }, "only a flow controlled by its sample has a trace-only value");
  says([&] { plain->log_prob(torch::zeros({3}, float64)); }, "shape (batch, features), got [3]");
  says([&] { plain->sample(-1); }, "must not be negative, got -1");
  says([&] { Flow(autonomous(network(1, 1)), base, controlled_by_sample()); }, "needs a controlled field");
  says([&] { Flow(Field{}, base); }, "a flow needs a field, got none");
  says([&] { Flow(autonomous(network(1, 1)), Density{}); }, "a base density with `log_prob` and `sample`");
  says([] { diagonal_normal(torch::zeros({2}), torch::zeros({2})); },
       "deviations of a normal must be positive");
  says([] { diagonal_normal(torch::zeros({2}), torch::ones({3})); }, "got [2] and [3]");
  says(
      [] {
        normal_mixture({torch::ones({2}), torch::zeros({3, 1}), torch::ones({3, 1})});
      },
      "a mixture needs weights (k)");
}

}  // namespace
}  // namespace fathom::testing
