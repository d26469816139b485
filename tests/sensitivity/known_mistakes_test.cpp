/// One test for each mistake of torchdyn 1.0.6 and torchdiffeq 0.2.5 in solvers and gradients. Those of the methods' orders
/// and of break points are in tests/ode.
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

/// z' = -z sqrt(z), z(0) = 1: z(s) = (1 + s / 2)^-2, and NaN wherever a long step throws z below 0.
VectorField fragile() {
  return {.rate = [](const Tensor&, const Tensor& z) { return -z * z.sqrt(); }};
}

class KnownMistakes : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, KnownMistakes, ::testing::ValuesIn(all_sensitivities()), name_of);

TEST_P(KnownMistakes, LossesAtIntermediateDepthsHaveTheRightGradient) {
  const Tensor theta = variable(0.8), z0 = variables({1.5, -0.5});
  const Solution solution = solve(decay(theta), z0, {0.0, 0.3, 0.7, 1.0}, precise, sensitivity());
  const Tensor loss = solution.states[1].sum() + 2 * solution.states[2].sum();
  // z0 sums to 1
  EXPECT_NEAR(gradient(loss, theta).item<double>(), -0.3 * std::exp(-0.24) - 1.4 * std::exp(-0.56), 1e-8);
  EXPECT_NEAR(gradient(loss, z0)[0].item<double>(), std::exp(-0.24) + 2 * std::exp(-0.56), 1e-8);
}

TEST_P(KnownMistakes, FirstDepthHasTheRightSignAndValue) {
  const VectorField field{.rate = [](const Tensor& s, const Tensor& z) { return s - z; }};
  const Tensor depths = variables({0.5, 2.0});
  const Solution solution = solve(field, torch::full({1}, 3.0, float64), depths, precise, sensitivity());
  const double by_start = std::exp(-1.5), rate_at_start = 0.5 - 3.0;
  EXPECT_NEAR(gradient(solution.states[-1].sum(), depths)[0].item<double>(), -by_start * rate_at_start, 1e-8);
}

TEST_P(KnownMistakes, RunningLossKeepsItsOwnDependenceOnParameters) {
  const double k = 0.8, span = 1.3;
  const Tensor theta = variable(k);
  VectorField field = decay(theta);
  field.running_loss = [](const Tensor&, const Tensor&, const Tensor& rate) {
    return rate.square().sum(1);  // theta^2 z^2, integral theta (1 - exp(-2 theta S)) / 2
  };
  const Solution solution = solve(field, torch::ones({1, 1}, float64), {0.0, span}, precise, sensitivity());
  const double left = std::exp(-2 * k * span);
  EXPECT_NEAR(gradient(solution.running_loss[-1].sum(), theta).item<double>(),
              (1 - left) / 2 + k * span * left, 1e-8);
}

TEST_P(KnownMistakes, RunningLossFollowsTheUpstreamScale) {
  GradientProblem problem = full_problem(LossKind::theta_dependent, precise, sensitivity());
  const auto whole = gradients(problem);
  problem.loss = [loss = problem.loss](const Solution& solution) { return 0.1 * loss(solution); };
  const auto tenth = gradients(problem);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_LT(distance(tenth[i], 0.1 * whole[i]), 1e-8);
}

TEST_P(KnownMistakes, RunningLossReturnsItsValue) {
  const Tensor theta = variable(0.5);
  VectorField field = decay(theta);
  field.running_loss = [](const Tensor&, const Tensor& z, const Tensor&) { return z.square().sum(1); };
  const Solution solution = solve(field, torch::full({2, 1}, 2.0, float64), {0, 1}, precise, sensitivity());
  const Tensor expected = torch::full({2}, 4 * (1 - std::exp(-1)), float64);  // int 4 exp(-s)
  EXPECT_LT(distance(solution.running_loss[-1], expected), 1e-9);
}

TEST_P(KnownMistakes, UnusedParametersGetZeros) {
  const Tensor theta = variable(0.5), unused = variables({1.0, 2.0});
  VectorField field = decay(theta);
  field.parameters = {unused, theta};
  const Solution solution = solve(field, torch::ones({1}, float64), {0.0, 1.0}, precise, sensitivity());
  EXPECT_TRUE(torch::equal(gradient(solution.states.sum(), unused), torch::zeros({2}, float64)));
  EXPECT_NEAR(gradient(solution.states[-1].sum(), theta).item<double>(), -std::exp(-0.5), 1e-8);
}

TEST_P(KnownMistakes, ControlInputGetsItsGradient) {
  const Tensor x = variables({1.0, -2.0});
  const VectorField field{.rate = [x](const Tensor&, const Tensor& z) { return x * x - z; },
                          .parameters = {x}};
  const Solution solution = solve(field, torch::zeros({2}, float64), {0.0, 1.5}, precise, sensitivity());
  const Tensor expected = 2 * x.detach() * (1 - std::exp(-1.5));
  EXPECT_LT(distance(gradient(solution.states[-1].sum(), x), expected), 1e-8);
}

TEST(KnownMistakesOfSolvers, EvaluationsDoNotGrowWithTheNumberOfSavedDepths) {
  const VectorField field{.rate = [](const Tensor& s, const Tensor& z) { return torch::cos(7 * s) * z; }};
  const auto evaluations = [&](std::int64_t saved) {
    const Tensor depths = torch::linspace(0, 3, saved, float64);
    return solve(field, torch::ones({4}, float64), depths).report().evaluations;
  };
  EXPECT_GT(evaluations(2), 20);
  EXPECT_EQ(evaluations(10), evaluations(2));
  EXPECT_EQ(evaluations(100), evaluations(2));
}

TEST(KnownMistakesOfSolvers, ReversedDepthTakesTheStepsOfTheMirroredProblem) {
  const auto steps = [](double direction) {
    const VectorField field{.rate = [=](const Tensor& s, const Tensor& z) {
      return direction * torch::sin(3 * z + direction * s);
    }};
    std::vector<double> sizes;
    Solver solver = adaptive(dopri5(), 1e-6);
    solver.observer = [&](const StepEvent& event, const Tensor&) {
      sizes.push_back(direction * event.step.size());
      return Next::proceed;
    };
    solve(field, torch::full({2}, 0.3, float64), {0.0, direction * 2.0}, solver);
    return sizes;
  };
  const auto forwards = steps(1), backwards = steps(-1);
  ASSERT_FALSE(forwards.empty());
  EXPECT_EQ(backwards, forwards);
}

TEST(KnownMistakesOfSolvers, StatisticsAreReported) {
  const SolveReport report = solve(fragile(), torch::ones({1}, float64), {0.0, 10.0}).report();
  EXPECT_GT(report.accepted, 1);
  EXPECT_EQ(report.evaluations, 2 + 6 * (report.accepted + report.rejected));
  EXPECT_GT(report.smallest_step, 0);
  EXPECT_GE(report.largest_step, report.last_step);
  EXPECT_GE(report.last_step, report.smallest_step);
  EXPECT_EQ(report.reached, 10);
  EXPECT_GT(report.seconds, 0);
}

TEST(KnownMistakesOfSolvers, NanInATrialStepIsSurvivedByShrinkingIt) {
  const Solver solver{
      .steps = AdaptiveSteps{.relative_tolerance = 1e-8, .absolute_tolerance = 1e-8, .first_step = 8.0}};
  const Solution solution = solve(fragile(), torch::ones({1}, float64), {0.0, 10.0}, solver);
  EXPECT_NEAR(solution.states[-1].item<double>(), 1.0 / 36, 1e-7);
  const SolveReport report = solution.report();
  EXPECT_GE(report.rejected, 1);
  EXPECT_LE(report.evaluations, 300);  // 230 from a first step that is not too long
  EXPECT_GT(report.smallest_step, 1e-2);
}

TEST(KnownMistakesOfSolvers, FixedStepsFailRatherThanReturnNan) {
  for (const auto& method : ode::all_methods()) {
    const auto failure = failure_of([&] {
      solve(fragile(), torch::ones({1}, float64), {0.0, 10.0}, fixed(method, 2));
    });
    ASSERT_TRUE(failure) << method.name;
    EXPECT_EQ(failure->reason, FailureReason::non_finite) << method.name;
  }
}

TEST(KnownMistakesOfSolvers, StepsAreLimited) {
  const VectorField stiff{.rate = [](const Tensor&, const Tensor& z) { return -1e6 * z; }};
  const Solver solver{.steps = AdaptiveSteps{.step_limit = 50}};
  const auto failure = failure_of([&] { solve(stiff, torch::ones({1}, float64), {0.0, 10.0}, solver); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->reason, FailureReason::too_many_steps);
  EXPECT_LE(failure->site.evaluations, 2 + 6 * 50);
}

/// y' = a (y - cos s), y(0) = 1, L = y(3): the state on the way back grows like exp(60).
double gradient_of_contraction(double tolerance, const Sensitivity& sensitivity) {
  const Tensor a = variable(-20.0);
  const VectorField field{.rate = [a](const Tensor& s, const Tensor& y) { return a * (y - torch::cos(s)); },
                          .parameters = {a}};
  const Solution solution =
      solve(field, torch::ones({1}, float64), {0.0, 3.0}, adaptive(dopri5(), tolerance), sensitivity);
  return gradient(solution.states[-1].sum(), a).item<double>();
}

/// y(s) = (a^2 cos s - a sin s) / (1 + a^2) once exp(a s) has died out.
const double contraction = (-40 * std::cos(3.0) + 399 * std::sin(3.0)) / (401.0 * 401.0);

TEST(KnownMistakesOfBacksolve, ContractionHasTheGradientThatTheComparisonQuotes) {
  EXPECT_NEAR(contraction, 5.96e-4, 1e-6);
}

TEST(KnownMistakesOfBacksolve, ContractionIsWrongByOrdersOfMagnitude) {
  EXPECT_GT(std::abs(gradient_of_contraction(1e-3, Adjoint{}) - contraction), 10 * contraction);
}

TEST(KnownMistakesOfBacksolve, DefaultIsRightOnAContraction) {
  EXPECT_NEAR(gradient_of_contraction(1e-3, Sensitivity{}), contraction, 1e-3);
  EXPECT_NEAR(gradient_of_contraction(1e-7, Sensitivity{}), contraction, 1e-6);
}

TEST(KnownMistakesOfBacksolve, InterpolatedAdjointIsRightOnAContraction) {
  EXPECT_NEAR(gradient_of_contraction(1e-3, InterpolatedAdjoint{}), contraction, 1e-3);
  EXPECT_NEAR(gradient_of_contraction(1e-7, InterpolatedAdjoint{}), contraction, 1e-6);
}

}  // namespace
}  // namespace fathom::testing
