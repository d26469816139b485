/// The choices around a solve: interpolants, observers, break points, checkpoints, the adjoint's own solver, second derivatives.
#include <gtest/gtest.h>

#include <cmath>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

const Solver precise = adaptive(dopri5(), 1e-11);

VectorField decay(const Tensor& theta) {
  return {.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; }, .parameters = {theta}};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class SolveOptions : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, SolveOptions, ::testing::ValuesIn(all_sensitivities()), name_of);

// ---- dense output

TEST_P(SolveOptions, InterpolantMeetsTheSavedStates) {
  for (const auto& method : ode::all_methods()) {
    GradientProblem problem = full_problem(LossKind::mixed, fixed(method, 5), sensitivity());
    problem.z0.requires_grad_();
    problem.solver.dense = true;
    const Solution solution = solve(problem.field, problem.z0, problem.depths, problem.solver, sensitivity());
    for (std::size_t i = 0; i < solution.depths.size(); ++i) {
      const Tensor read = solution.interpolant(solution.depths[i]);
      EXPECT_LT(distance(read, solution.states[std::int64_t(i)]), 1e-14) << method.name << ", depth " << i;
    }
  }
}

TEST(InterpolantOfASolve, IsAsExactBetweenTheSavedDepthsAsItsTolerance) {
  Solver solver = adaptive(dopri5(), 1e-8);
  solver.dense = true;
  for (const auto& span : {std::vector{0.0, 2.0}, std::vector{2.0, 0.0}}) {
    const Solution solution = solve(decay(variable(1.3)), torch::ones({1}, float64), span, solver);
    for (double s = 0; s <= 2; s += 0.0625) {
      const double exact = std::exp(-1.3 * (s - span[0]));
      EXPECT_NEAR(solution.interpolant(s).item<double>() / exact, 1, 1e-6) << "depth " << s;
    }
  }
}

TEST(InterpolantOfASolve, RefusesDepthsOutsideTheSpan) {
  const Solution solution =
      solve(decay(variable(1.0)), torch::ones({1}, float64), {0.5, 2.0}, {.dense = true});
  EXPECT_EQ(message_of([&] { solution.interpolant(0.25); }),
            "depth 0.25 is outside the solved span from 0.5 to 2");
  EXPECT_TRUE(contains(message_of([&] { solution.interpolant(NAN); }), "outside the solved span"));
}

TEST(InterpolantOfASolve, SaysHowToAskForItWhenItWasNotKept) {
  const Solution solution = solve(decay(variable(1.0)), torch::ones({1}, float64), {0.0, 1.0});
  EXPECT_FALSE(solution.interpolant.defined());
  EXPECT_EQ(message_of([&] { solution.interpolant(0.5); }),
            "this solution has no interpolant; solve with `Solver{.dense = true}`");
}

TEST(InterpolantOfASolve, DoesNotFollowLaterChangesOfTheStart) {
  const Tensor z0 = torch::ones({2}, float64);
  const Solution solution = solve(decay(variable(1.0)), z0, {0.0, 1.0}, {.dense = true});
  const Tensor before = solution.interpolant(0.01).clone();
  z0.zero_();
  EXPECT_TRUE(torch::equal(solution.interpolant(0.01), before));
}

TEST(InterpolantOfASolve, OfAZeroLengthSpanIsTheStart) {
  const Tensor z0 = torch::ones({2, 2}, float64);
  const Solution solution = solve(decay(variable(1.0)), z0, {0.3, 0.3}, {.dense = true});
  EXPECT_TRUE(torch::equal(solution.interpolant(0.3), z0));
}

// ---- observers

Solver stopping_after(double depth, Solver solver) {
  solver.observer = [depth](const StepEvent& event, const Tensor&) {
    return event.accepted && event.step.end > depth ? Next::stop : Next::proceed;
  };
  return solver;
}

TEST(ObserverOfASolve, SeesEveryAttemptWithTheStateItLeft) {
  Solver solver = adaptive(dopri5(), 1e-6);
  std::int64_t attempts = 0;
  double worst = 0;
  solver.observer = [&](const StepEvent& event, const Tensor& state) {
    ++attempts;
    EXPECT_EQ(state.sizes(), (std::vector<std::int64_t>{2, 3}));
    if (event.accepted)
      worst = std::max(worst, distance(state, torch::full({2, 3}, std::exp(-event.step.end), float64)));
    return Next::proceed;
  };
  const Solution solution = solve(decay(variable(1.0)), torch::ones({2, 3}, float64), {0.0, 3.0}, solver);
  EXPECT_EQ(attempts, solution.report().accepted + solution.report().rejected);
  EXPECT_LT(worst, 1e-5);
  EXPECT_FALSE(solution.report().stopped);
}

TEST(ObserverOfASolve, StopsWithTheReachedDepthsAndTheStopPoint) {
  const Solution solution =
      solve(decay(variable(1.0)), torch::ones({1}, float64), {0.0, 0.25, 0.5, 50.0, 60.0},
            stopping_after(0.6, adaptive(dopri5(), 1e-8)));
  ASSERT_EQ(solution.depths.size(), 4u);
  EXPECT_EQ(solution.depths[2], 0.5);
  EXPECT_GT(solution.depths[3], 0.6);
  EXPECT_EQ(solution.depths[3], solution.report().reached);
  EXPECT_NEAR(solution.states[3].item<double>(), std::exp(-solution.depths[3]), 1e-6);
  EXPECT_TRUE(solution.report().stopped);
  EXPECT_TRUE(contains(solution.report().brief(), "stopped at depth "));
}

TEST_P(SolveOptions, StoppedSolveHasTheGradientOfItsTruncatedGrid) {
  GradientProblem stopped = full_problem(LossKind::mixed, precise, sensitivity());
  stopped.solver = stopping_after(0.5, stopped.solver);
  GradientProblem truncated = full_problem(LossKind::mixed);
  const Solution solution = solve(stopped.field, stopped.z0, stopped.depths, stopped.solver);
  ASSERT_TRUE(solution.report().stopped);
  truncated.depths = torch::tensor(solution.depths, float64);
  truncated.solver.steps = steps_along(solution.grid);
  const auto check = check_gradients(truncated);
  EXPECT_TRUE(check.passed()) << check.table();

  auto given = gradients(stopped), expected = gradients(truncated);
  // The caller's later depths were never reached, and where the solve stopped is no variable.
  const std::int64_t reached = std::int64_t(solution.depths.size()) - 1;
  EXPECT_EQ(given[1].slice(0, reached).abs().sum().item<double>(), 0);
  given[1] = given[1].slice(0, 0, reached);
  expected[1] = expected[1].slice(0, 0, reached);
  EXPECT_LT(distance(given, expected), 1e-8);
}

// ---- break points

const std::vector<double> breaks = {0.4, 0.7};

/// z' = theta_i z on the i-th piece of [0, 1]; a break point belongs to the piece on its right.
VectorField piecewise(const Tensor& theta) {
  return {.rate =
              [theta](const Tensor& s, const Tensor& z) {
                const double depth = s.item<double>();
                return theta[depth < breaks[0] ? 0 : depth < breaks[1] ? 1 : 2] * z;
              },
          .parameters = {theta},
          .break_points = breaks};
}

void expect_exact_pieces(const Solver& solver, const Sensitivity& sensitivity, double tolerance) {
  const Tensor theta = variables({-8.0, 5.0, -3.0}), lengths = torch::tensor({0.4, 0.3, 0.3}, float64);
  for (const double direction : {1.0, -1.0}) {
    const std::vector<double> span = direction > 0 ? std::vector{0.0, 1.0} : std::vector{1.0, 0.0};
    const Solution solution = solve(piecewise(theta), torch::ones({1}, float64), span, solver, sensitivity);
    const Tensor expected = torch::exp(direction * (theta * lengths).sum());
    EXPECT_LT(distance(solution.states[-1], expected), tolerance) << "direction " << direction;
    EXPECT_LT(distance(gradient(solution.states[-1].sum(), theta), gradient(expected, theta)), tolerance)
        << "direction " << direction;
  }
}

TEST_P(SolveOptions, EachPieceOfAFieldHasItsExactGradient) {
  for (const auto& method : {dopri5(), tsit5(), dop853(), fehlberg45()})
    expect_exact_pieces(adaptive(method, 1e-9), sensitivity(), 1e-6);
}

TEST_P(SolveOptions, EachPieceOfAFieldHasItsExactGradientWithFixedSteps) {
  for (const auto& method : {dopri5(), rk4()}) expect_exact_pieces(fixed(method, 101), sensitivity(), 1e-5);
}

TEST(CheckpointsAtBreakPoints, RepeatTheirStepsFromTheSideOfEachPiece) {
  const auto gradient_by = [](const Discrete& how) {
    const Tensor theta = variables({-8.0, 5.0, -3.0});
    const Solution solution =
        solve(piecewise(theta), torch::ones({1}, float64), {0.0, 1.0}, fixed(dopri5(), 12), how);
    return gradient(solution.states[-1].sum(), theta);
  };
  EXPECT_TRUE(torch::equal(gradient_by({.checkpoint_every = 100}), gradient_by({})));
}

TEST_P(SolveOptions, BreakPointOnASavedDepthIsSeenFromTheSideOfItsSolve) {
  const Tensor theta = variables({-0.5, 2.0, -1.0}), depths = variables({0.0, 0.4, 1.0});
  const Solution forwards =
      solve(piecewise(theta), torch::ones({1}, float64), depths, precise, sensitivity());
  EXPECT_NEAR(forwards.states[1].item<double>(), std::exp(-0.2), 1e-9);
  // dz/ds at the break point from its left: theta_0 z
  EXPECT_NEAR(gradient(forwards.states[1].sum(), depths)[1].item<double>(), -0.5 * std::exp(-0.2), 1e-7);
  const Tensor loss = forwards.states[1].sum() + forwards.states[2].sum();
  const Tensor expected =
      torch::exp(0.4 * theta[0]) + torch::exp(0.4 * theta[0] + 0.3 * (theta[1] + theta[2]));
  EXPECT_LT(distance(gradient(loss, theta), gradient(expected, theta)), 1e-8);

  const Tensor reversed = variables({1.0, 0.4, 0.0});
  const Solution back = solve(piecewise(theta), torch::ones({1}, float64), reversed, precise, sensitivity());
  const double there = std::exp(-0.3 * (2 - 1));
  EXPECT_NEAR(gradient(back.states[1].sum(), reversed)[1].item<double>(), 2 * there, 1e-7);
}

TEST_P(SolveOptions, BreakPointOnTheBoundsIsSeenFromInside) {
  const Tensor theta = variables({-0.5, 2.0, -1.0});
  for (const auto& span : {std::vector{0.4, 0.4, 0.7}, std::vector{0.7, 0.7, 0.4}}) {
    const Tensor depths = variables(span);
    const Solution solution =
        solve(piecewise(theta), torch::ones({1}, float64), depths, precise, sensitivity());
    const double end = std::exp(2 * (span[2] - span[0]));
    EXPECT_NEAR(solution.states[-1].item<double>(), end, 1e-9);
    EXPECT_NEAR(gradient(solution.states[-1].sum(), depths)[0].item<double>(), -2 * end, 1e-7);
    EXPECT_NEAR(gradient(solution.states[-1].sum(), depths)[2].item<double>(), 2 * end, 1e-7);
    EXPECT_NEAR(gradient(solution.states[1].sum(), depths)[1].item<double>(), 2, 1e-7);
  }
}

}  // namespace
}  // namespace fathom::testing
