/// What solve() promises besides right gradients: shapes, types, grids, error norms, interpolants, observers, reports.
#include <gtest/gtest.h>

#include <cmath>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

const Solver precise = adaptive(dopri5(), 1e-11);

/// z' = -theta z
VectorField decay(const Tensor& theta) {
  return {.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; }, .parameters = {theta}};
}

/// x'' = stiffness (1 - x^2) x' - x, from 1024 normal starts, saved at 100 depths of [0, 1].
struct VanDerPol {
  double stiffness = 1;
  ErrorNorm norm = ErrorNorm::batch;
  Tensor z0 = (torch::manual_seed(11), torch::randn({1024, 2}, float64).requires_grad_());

  Solution solved(double tolerance, const Sensitivity& sensitivity, std::int64_t saved = 100) const {
    const VectorField field{.rate = [alpha = stiffness](const Tensor&, const Tensor& z) {
      const Tensor x = z.select(1, 0), v = z.select(1, 1);
      return torch::stack({v, alpha * (1 - x * x) * v - x}, 1);
    }};
    const Solver solver{.steps = AdaptiveSteps{
                            .relative_tolerance = tolerance, .absolute_tolerance = tolerance, .norm = norm}};
    return solve(field, z0, torch::linspace(0, 1, saved, float64), solver, sensitivity);
  }
  /// |g - g_reference|_1 of each sample, g = d sum(z(1)) / dz0
  Tensor errors(double tolerance, const Sensitivity& sensitivity) const {
    const Tensor given = gradient(solved(tolerance, sensitivity).states[-1].sum(), z0);
    const Tensor reference = gradient(solved(1e-10, Discrete{}, 2).states[-1].sum(), z0);
    return (given - reference).abs().sum(1);
  }
};

class Solves : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, Solves, ::testing::ValuesIn(all_sensitivities()), name_of);

/// How exact the gradient of one sample is, where error control decides on steps for all: a tolerance of 1e-4 bounds the error
/// of a step in the chosen norm, not the error of a gradient. The steps here are so long (two or three for the whole span with
/// the norm of the batch) that far starts pay for near ones, and that Discrete, the exact gradient of the computed
/// solution, shows how that solution's error changes with the start. The adjoints restart at each of the 100 saved depths
/// and show the error of the states alone.
struct VanDerPolCase {
  double stiffness;
  ErrorNorm norm;
  double tolerance;
  double worst_discrete, worst_adjoint;  // bounds over 1024 samples, a little above what is measured
};

const std::vector<VanDerPolCase> van_der_pol_cases = {
    {0.1, ErrorNorm::per_sample, 1e-4, 1e-3, 1e-4},  // 9.1e-4, 9.0e-5
    {0.5, ErrorNorm::per_sample, 1e-4, 1e-3, 1e-4},  // 6.8e-4, 7.9e-5
    {0.1, ErrorNorm::per_sample, 1e-5, 1e-4, 1e-5},  // 4.6e-5, 6.7e-6
    {0.5, ErrorNorm::per_sample, 1e-5, 2e-4, 2e-5},  // 1.3e-4, 1.4e-5
    {0.1, ErrorNorm::batch, 1e-4, 1.2e-2, 1e-3},     // 9.7e-3, 4.8e-4
    {0.5, ErrorNorm::batch, 1e-4, 4e-2, 9e-3},       // 3.4e-2, 7.5e-3
    {0.1, ErrorNorm::batch, 1e-5, 1e-3, 1e-4},       // 2.2e-4, 2.7e-5
    {0.5, ErrorNorm::batch, 1e-5, 3e-3, 4e-4},       // 1.4e-3, 3.2e-4
};

TEST_P(Solves, VanDerPolGradientOfEverySampleIsAsNearTheReferenceAsItsNormAllows) {
  const bool is_adjoint = std::holds_alternative<Adjoint>(sensitivity()) ||
                          std::holds_alternative<InterpolatedAdjoint>(sensitivity());
  for (const VanDerPolCase& given : van_der_pol_cases) {
    const VanDerPol problem{.stiffness = given.stiffness, .norm = given.norm};
    const Tensor errors = problem.errors(given.tolerance, sensitivity());
    EXPECT_LT(errors.max().item<double>(), is_adjoint ? given.worst_adjoint : given.worst_discrete)
        << "stiffness " << given.stiffness << ", tolerance " << given.tolerance;
    const bool every_sample_counts = given.norm == ErrorNorm::per_sample;
    EXPECT_LE((errors > 1e-3).sum().item<std::int64_t>(), every_sample_counts ? 0 : 150);
    EXPECT_LT(errors.mean().item<double>(), 1e-3);
  }
}

TEST_P(Solves, StatesOfAnyShapeKeepTheirShapeAndType) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    for (const std::vector<std::int64_t>& shape :
         std::vector<std::vector<std::int64_t>>{{}, {3}, {2, 3, 1, 2}}) {
      const Tensor theta = torch::scalar_tensor(0.7, type).requires_grad_();
      const Tensor z0 = torch::full(shape, 2.0, type).requires_grad_();
      const Solution solution = solve(decay(theta), z0, {0.0, 0.5, 1.0}, {}, sensitivity());
      ASSERT_EQ(solution.states[-1].sizes(), z0.sizes());
      EXPECT_EQ(solution.states.scalar_type(), type);
      EXPECT_EQ(solution.states.device(), z0.device());
      const Tensor slope = gradient(solution.states[-1].sum(), z0);
      EXPECT_EQ(slope.scalar_type(), type);
      EXPECT_LT(distance(slope, torch::full(shape, std::exp(-0.7), type)), 1e-3);
      EXPECT_EQ(gradient(solution.states[-1].sum(), theta).scalar_type(), type);
    }
  }
}

TEST_P(Solves, RunningLossOfAZeroDimensionalStateIsZeroDimensional) {
  VectorField field = decay(variable(1.0));
  field.running_loss = [](const Tensor&, const Tensor& z, const Tensor&) { return z.square(); };
  const Solution solution = solve(field, variable(1.0), {0.0, 1.0}, precise, sensitivity());
  EXPECT_EQ(solution.running_loss.sizes(), (std::vector<std::int64_t>{2}));
  EXPECT_NEAR(solution.running_loss[1].item<double>(), (1 - std::exp(-2)) / 2, 1e-9);
}

TEST_P(Solves, GradientInFloat32IsCloseToTheOneInFloat64) {
  torch::manual_seed(5);
  const Tensor W64 = torch::randn({3, 3}, float64), z64 = torch::randn({8, 3}, float64);
  const auto found = [&](auto type) {
    const Tensor W = W64.to(type).clone().requires_grad_(), z0 = z64.to(type).clone().requires_grad_();
    const Tensor depths = variables({0.1, 0.6, 1.4});
    const VectorField field{
        .rate = [W](const Tensor& s, const Tensor& z) { return torch::tanh(z.matmul(W)) * torch::cos(s); },
        .parameters = {W}};
    const Solution solution = solve(field, z0, depths, fixed(dopri5(), 10), sensitivity());
    const Tensor loss = solution.states.square().sum();
    return std::vector<Tensor>{gradient(loss, W).to(float64), gradient(loss, z0).to(float64),
                               gradient(loss, depths)};
  };
  EXPECT_LT(distance(found(torch::kFloat32), found(torch::kFloat64)), 1e-5);
}

TEST_P(Solves, DepthsMayGoBackwards) {
  const Tensor theta = variable(0.7), depths = variables({1.0, 0.6, -0.5}), z0 = variables({2.0});
  const Solution solution = solve(decay(theta), z0, depths, precise, sensitivity());
  const auto exact = [&](std::int64_t i) { return z0 * torch::exp(-theta * (depths[i] - depths[0])); };
  const Tensor loss = (solution.states[1] + 3 * solution.states[2]).sum();
  const Tensor expected = (exact(1) + 3 * exact(2)).sum();
  EXPECT_LT(distance(loss, expected), 1e-9);
  for (const Tensor& by : {theta, depths, z0})
    EXPECT_LT(distance(gradient(loss, by), gradient(expected, by)), 1e-7);
}

TEST_P(Solves, ZeroLengthSpanReturnsTheStartAndItsGradients) {
  const Tensor theta = variable(0.7), depths = variables({0.4, 0.4}), z0 = variables({2.0, -1.0});
  const Solution solution = solve(decay(theta), z0, depths, {}, sensitivity());
  EXPECT_TRUE(torch::equal(solution.states[1], z0));
  const Tensor loss = solution.states[1].square().sum();
  EXPECT_LT(distance(gradient(loss, z0), 2 * z0.detach()), 1e-15);
  EXPECT_EQ(gradient(loss, theta).item<double>(), 0);
  const double along = -0.7 * 2 * (4 + 1);  // dL/dz f
  EXPECT_LT(distance(gradient(loss, depths), torch::tensor({-along, along}, float64)), 1e-14);
}

TEST_P(Solves, RepeatedDepthsShareTheGradientOfTheirDepth) {
  const Tensor depths = variables({0.0, 0.0, 0.5, 0.5, 1.0, 1.0}), theta = variable(0.7),
               z0 = variables({2.0});
  const Tensor weights = torch::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, float64);
  const Solution solution = solve(decay(theta), z0, depths, precise, sensitivity());
  const Tensor exact = z0 * torch::exp(-theta * (depths - depths[0]));  // (depths), each moves alone
  const Tensor loss = (solution.states.squeeze(1) * weights).sum(), expected = (exact * weights).sum();
  EXPECT_LT(distance(loss, expected), 1e-9);
  for (const Tensor& by : {theta, depths, z0})
    EXPECT_LT(distance(gradient(loss, by), gradient(expected, by)), 1e-7);
}

TEST_P(Solves, EmptyBatchHasEmptyStatesAndZeroGradients) {
  for (const ErrorNorm norm : {ErrorNorm::batch, ErrorNorm::per_sample}) {
    const Tensor theta = variable(0.7), z0 = torch::zeros({0, 2}, float64).requires_grad_();
    const Solver solver{.steps = AdaptiveSteps{.norm = norm}};
    const Solution solution = solve(decay(theta), z0, {0.0, 0.5, 1.0}, solver, sensitivity());
    EXPECT_EQ(solution.states.sizes(), (std::vector<std::int64_t>{3, 0, 2}));
    EXPECT_EQ(gradient(solution.states.sum(), theta).item<double>(), 0);
    EXPECT_EQ(gradient(solution.states.sum(), z0).sizes(), z0.sizes());
  }
}

TEST_P(Solves, OnlyTheParametersThatWantAGradientGetOne) {
  const Tensor theta = variable(0.7), fixed_one = torch::scalar_tensor(0.2, float64);
  const VectorField field{.rate = [=](const Tensor&, const Tensor& z) { return fixed_one - theta * z; },
                          .parameters = {fixed_one, theta}};
  const Solution solution = solve(field, torch::ones({1}, float64), {0.0, 1.0}, precise, sensitivity());
  solution.states[-1].sum().backward();
  EXPECT_FALSE(fixed_one.grad().defined());
  // z = c/theta + (1 - c/theta) exp(-theta)
  const double k = 0.7, c = 0.2, e = std::exp(-k);
  EXPECT_NEAR(theta.grad().item<double>(), -c / (k * k) * (1 - e) - (1 - c / k) * e, 1e-8);
}

TEST_P(Solves, NoGradModeKeepsNoGraph) {
  const torch::NoGradGuard no_graph;
  const Solution solution = solve(decay(variable(0.7)), variables({1.0}), {0.0, 1.0}, {}, sensitivity());
  EXPECT_FALSE(solution.states.requires_grad());
}

TEST_P(Solves, BackwardTwiceGivesTheSameGradientTwice) {
  const Tensor theta = variable(0.7);
  const Solution solution = solve(decay(theta), torch::ones({2}, float64), {0.0, 1.0}, {}, sensitivity());
  const Tensor loss = solution.states[-1].sum();
  const Tensor first = gradient(loss, theta), second = gradient(loss, theta);  // retains the graph
  EXPECT_TRUE(torch::equal(first, second));
}

TEST_P(Solves, SolveInsideAFieldHasItsGradient) {
  const Tensor theta = variable(0.4), z0 = variables({1.0});
  const VectorField inner{.rate = [theta](const Tensor&, const Tensor& u) { return theta * u; },
                          .parameters = {theta}};
  const VectorField outer{
      .rate =
          [&](const Tensor&, const Tensor& z) {
            return solve(inner, z, {0.0, 0.5}, adaptive(dopri5(), 1e-9), sensitivity()).states[-1];
          },
      .parameters = {theta}};
  const Solution solution = solve(outer, z0, {0.0, 0.8}, adaptive(dopri5(), 1e-7), sensitivity());
  const Tensor expected = z0 * torch::exp(0.8 * torch::exp(0.5 * theta));
  EXPECT_LT(distance(solution.states[-1], expected), 1e-6);
  EXPECT_LT(distance(gradient(solution.states[-1].sum(), theta), gradient(expected.sum(), theta)), 1e-6);
}

TEST_P(Solves, ParameterChangedInPlaceBeforeTheGradientIsAnError) {
  const Tensor theta = variable(0.7);
  const VectorField field{.rate = [theta](const Tensor&, const Tensor& z) { return theta * z; },
                          .parameters = {theta}};
  const Solution solution = solve(field, variables({1.0}), {0.0, 1.0}, {}, sensitivity());
  {
    const torch::NoGradGuard no_graph;
    theta.mul_(2);
  }
  EXPECT_THROW(solution.states.sum().backward(), c10::Error);
}

TEST_P(Solves, ReportCountsTheWorkOfTheGradient) {
  const Tensor theta = variable(0.7);
  const Solution solution = solve(decay(theta), torch::ones({3}, float64), {0.0, 2.0}, {}, sensitivity());
  const SolveReport& report = solution.report();
  EXPECT_EQ(report.evaluations, 2 + 6 * (report.accepted + report.rejected));
  solution.states.sum().backward();
  EXPECT_GE(report.backward_evaluations, 6 * report.accepted);
  EXPECT_EQ(report.evaluations, 2 + 6 * (report.accepted + report.rejected));
}

TEST(SolveEvaluations, DoNotDependOnTheNumberOfSavedDepthsForVanDerPol) {
  const VanDerPol problem;
  const auto few = problem.solved(1e-4, Discrete{}, 2).report(),
             many = problem.solved(1e-4, Discrete{}).report();
  EXPECT_EQ(many.evaluations, few.evaluations);
  EXPECT_EQ(many.accepted, few.accepted);
}

/// x' = -30 x in the first of 1000 samples, x' = -x / 10 in the others.
struct OneHardSample {
  Tensor rates =
      torch::cat({torch::full({1, 1}, 30.0, float64), torch::full({999, 1}, 0.1, float64)}).requires_grad_();

  Solution solved(ErrorNorm norm) const {
    const Solver solver{
        .steps = AdaptiveSteps{.relative_tolerance = 1e-5, .absolute_tolerance = 1e-5, .norm = norm}};
    return solve(decay(rates), torch::ones({1000, 1}, float64), {0.0, 0.1}, solver);
  }
  static double error(const Solution& solution) {
    return std::abs(solution.states[-1][0].item<double>() - std::exp(-3.0));
  }
};

TEST(ErrorNormPerSample, KeepsTheHardSampleWithinToleranceThatTheBatchDilutes) {
  const OneHardSample problem;
  EXPECT_LT(OneHardSample::error(problem.solved(ErrorNorm::per_sample)), 1e-5);
  EXPECT_GT(OneHardSample::error(problem.solved(ErrorNorm::batch)), 2e-5);
}

TEST(ErrorNormPerSample, LeavesGradientsExact) {
  const OneHardSample problem;
  const Solution solution = problem.solved(ErrorNorm::per_sample);
  const Tensor exact = -0.1 * torch::exp(-0.1 * problem.rates.detach());
  EXPECT_LT(distance(gradient(solution.states[-1].sum(), problem.rates), exact), 1e-5);
}

}  // namespace
}  // namespace fathom::testing
