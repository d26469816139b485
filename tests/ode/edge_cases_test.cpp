// Unusual but valid solves give the right answer; arguments that cannot be meant give one clear message.
#include <gtest/gtest.h>

#include <cmath>

#include "support/plain/problems.hpp"

namespace fathom::ode {
namespace {

using namespace fathom::testing;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

class EveryAdaptiveMethod : public ::testing::TestWithParam<ButcherTableau> {};
const auto method_name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Methods, EveryAdaptiveMethod,
                         ::testing::Values(heun2(), ralston2(), bosh3(), fehlberg45(), cash_karp54(),
                                           dopri5(), tsit5(), dop853()),
                         method_name);

TEST_P(EveryAdaptiveMethod, LeavesTheStateOfAZeroFieldAlone) {
  const Rate zero = [](double, const State& y, State& rate) { rate.assign(y.size(), 0.0); };
  const Outcome outcome = solve(zero, {3.0, 0.0}, {.method = GetParam()}, {0.0, 50.0, 100.0});
  for (const State& state : outcome.saved) EXPECT_EQ(state, (State{3.0, 0.0}));
  EXPECT_LE(outcome.report.accepted, 12);  // from 1e-6, ten times longer each
  EXPECT_EQ(outcome.report.rejected, 0);
}

TEST_P(EveryAdaptiveMethod, CrossesAConstantFieldInAFewSteps) {
  const Rate constant = [](double, const State&, State& rate) { rate[0] = 2; };
  const Outcome outcome = solve(constant, {1.0}, {.method = GetParam()}, {0.0, 10.0});
  EXPECT_NEAR(outcome.saved.back()[0], 21, 1e-12);
  EXPECT_LE(outcome.report.accepted, 8);
  EXPECT_EQ(outcome.report.rejected, 0);
}

TEST_P(EveryAdaptiveMethod, ReturnsFromTheEndToTheStart) {
  const Plan plan{.method = GetParam(), .steps = tolerance(1e-6)};
  const State end = solve(pendulum(), plan, {0.0, 3.0}).saved.back();
  const State start = solve(pendulum().rate, end, plan, {3.0, 0.0}).saved.back();
  EXPECT_LT(mixed_error(start, pendulum().start), 1e-4);
}

TEST(ZeroLengthSpan, ReturnsTheStartWithoutAskingTheField) {
  for (const Steps& steps :
       {Steps(AdaptiveSteps{}), Steps(FixedSteps{.count = 5}), Steps(FixedSteps{.size = 0.1})}) {
    const Outcome outcome = solve(decay().rate, {7.0}, {.method = dopri5(), .steps = steps}, {1.0, 1.0, 1.0});
    EXPECT_EQ(outcome.saved, (std::vector<State>(3, {7.0})));
    EXPECT_EQ(outcome.report.evaluations, 0);
    EXPECT_EQ(outcome.report.accepted, 0);
    EXPECT_EQ(outcome.report.reached, 1.0);
  }
}

TEST(TinySpan, FarFromZeroIsCrossedInOneStep) {
  const double first = 1e6, last = std::nextafter(std::nextafter(first, 2e6), 2e6);
  const Outcome outcome = solve(decay().rate, {1.0}, {.method = dopri5()}, {first, last});
  EXPECT_EQ(outcome.report.accepted, 1);
  EXPECT_NEAR(outcome.saved.back()[0], 1, 1e-9);
}

TEST(RepeatedDepths, AreSavedTwice) {
  for (const Steps& steps : {Steps(tolerance(1e-8)), Steps(FixedSteps{.count = 64})}) {
    for (double way : {1.0, -1.0}) {
      const std::vector<double> depths = {0, 0, 0.3 * way, 0.3 * way, way, way};
      const Outcome outcome = solve(decay(), {.method = dopri5(), .steps = steps}, depths);
      ASSERT_EQ(outcome.saved.size(), depths.size());
      for (std::size_t i = 0; i < depths.size(); ++i)
        EXPECT_NEAR(outcome.saved[i][0], std::exp(-depths[i]), 1e-6) << depths[i];
      EXPECT_EQ(outcome.saved[2], outcome.saved[3]);
      EXPECT_EQ(outcome.saved[4], outcome.saved[5]);
    }
  }
}

TEST(EmptyState, IsIntegratedToAnEmptyState) {
  const Rate nothing = [](double, const State&, State&) {};
  for (const Steps& steps : {Steps(AdaptiveSteps{}), Steps(FixedSteps{.count = 2})}) {
    const Outcome outcome = solve(nothing, {}, {.method = dopri5(), .steps = steps}, {0.0, 0.5, 1.0});
    EXPECT_EQ(outcome.saved, (std::vector<State>(3)));
  }
}

TEST_P(EveryAdaptiveMethod, KeepsItsAccuracyForVerySmallAndVeryLargeStates) {
  for (double scale : {1e-300, 1e300}) {
    AdaptiveSteps relative = tolerance(1e-6);
    relative.absolute_tolerance = 0;
    for (double way : {1.0, -1.0}) {
      const Outcome outcome =
          solve(decay().rate, {scale}, {.method = GetParam(), .steps = relative}, {0.0, way});
      EXPECT_NEAR(outcome.saved.back()[0] / scale, std::exp(-way), 1e-4) << scale;
    }
  }
}

TEST(VeryLargeState, ThatOverflowsIsAFailure) {
  try {
    solve(decay().rate, {1e300}, {.method = dopri5()}, {0.0, -30.0});
    FAIL() << "must throw";
  } catch (const SolveFailure& failure) { EXPECT_EQ(failure.reason, FailureReason::non_finite); }
}

TEST(PureRelativeTolerance, WorksFromAZeroState) {
  AdaptiveSteps relative = tolerance(1e-6);
  relative.absolute_tolerance = 0;
  const Rate wave = [](double s, const State&, State& rate) { rate[0] = std::cos(s); };
  const Outcome outcome = solve(wave, {0.0}, {.method = dopri5(), .steps = relative}, {0.0, 1.0});
  EXPECT_NEAR(outcome.saved.back()[0], std::sin(1), 1e-5);
}

TEST(PureAbsoluteTolerance, Works) {
  AdaptiveSteps absolute = tolerance(1e-6);
  absolute.relative_tolerance = 0;
  const Outcome outcome = solve(decay(), {.method = dopri5(), .steps = absolute}, {0.0, 1.0});
  EXPECT_NEAR(outcome.saved.back()[0], std::exp(-1), 1e-5);
}

std::string message(const Steps& steps, const std::vector<double>& depths = {0.0, 1.0},
                    const ButcherTableau& method = dopri5()) {
  return message_of([&] { solve(decay().rate, {1.0}, {.method = method, .steps = steps}, depths); });
}

TEST(Depths, ThatCannotBeMeantAreRefused) {
  const auto of = [](const std::vector<double>& depths) { return message(AdaptiveSteps{}, depths); };
  EXPECT_EQ(of({}), "`depths` needs a start and an end, got 0 value(s)");
  EXPECT_EQ(of({1.0}), "`depths` needs a start and an end, got 1 value(s)");
  EXPECT_EQ(of({0.0, not_a_number}), "`depths` must be finite, got nan at place 1");
  EXPECT_EQ(of({-infinity, 0.0}), "`depths` must be finite, got -inf at place 0");
  EXPECT_EQ(of({0.0, 2.0, 1.0, 3.0}), "`depths` must go one way from 0 to 3, got 1 after 2; sort them");
  EXPECT_EQ(of({3.0, 1.0, 2.0, 0.0}), "`depths` must go one way from 3 to 0, got 2 after 1; sort them");
  EXPECT_EQ(of({0.0, 1.0, 0.0}), "`depths` must go one way from 0 to 0, got 0 after 1; sort them");
}

TEST(FixedSteps, NeedExactlyOneLayout) {
  EXPECT_EQ(message(FixedSteps{}),
            "FixedSteps needs exactly one of `count`, `size` and `grid`, got 0 of them");
  EXPECT_EQ(message(FixedSteps{.count = 3, .size = 0.1}),
            "FixedSteps needs exactly one of `count`, `size` and `grid`, got 2 of them");
  EXPECT_EQ(message(FixedSteps{.count = 3, .size = 0.1, .grid = {0.5}}),
            "FixedSteps needs exactly one of `count`, `size` and `grid`, got 3 of them");
}

TEST(FixedSteps, RefuseNumbersThatCannotBeMeant) {
  EXPECT_EQ(message(FixedSteps{.count = -2}), "FixedSteps: `count` must be positive, got -2");
  EXPECT_EQ(message(FixedSteps{.count = 2000000000}),
            "FixedSteps: `count` must be below 1e+09, got 2000000000");
  EXPECT_EQ(
      message(FixedSteps{.size = -0.1}),
      "FixedSteps: `size` must be positive and finite, got -0.1 (the direction follows from the depths)");
  EXPECT_EQ(
      message(FixedSteps{.size = not_a_number}),
      "FixedSteps: `size` must be positive and finite, got nan (the direction follows from the depths)");
  EXPECT_EQ(message(FixedSteps{.size = 1e-12}),
            "FixedSteps: `size` 1e-12 makes more than 1e+09 steps of the span 1; choose a larger one");
  EXPECT_EQ(message(FixedSteps{.grid = {0.5, not_a_number}}),
            "FixedSteps: `grid` must hold finite depths, got nan");
}

TEST(AdaptiveSteps, NeedAMethodWithAnErrorEstimate) {
  for (const ButcherTableau& method : {euler(), midpoint(), heun3(), rk4(), rk4_38()}) {
    const std::string given = message(AdaptiveSteps{}, {0.0, 1.0}, method);
    EXPECT_TRUE(given.starts_with("method `" + method.name + "` has no error estimate")) << given;
    EXPECT_NE(given.find("choose FixedSteps, or one of heun2, ralston2, bosh3"), std::string::npos) << given;
  }
}

TEST(AdaptiveSteps, RefuseNumbersThatCannotBeMeant) {
  EXPECT_EQ(message(AdaptiveSteps{.relative_tolerance = -1e-3}),
            "`relative_tolerance` must be finite and not negative, got -0.001");
  EXPECT_EQ(message(AdaptiveSteps{.absolute_tolerance = not_a_number}),
            "`absolute_tolerance` must be finite and not negative, got nan");
  EXPECT_EQ(message(AdaptiveSteps{.relative_tolerance = infinity}),
            "`relative_tolerance` must be finite and not negative, got inf");
  EXPECT_EQ(message(AdaptiveSteps{.relative_tolerance = 0, .absolute_tolerance = 0}),
            "one of `relative_tolerance` and `absolute_tolerance` must be positive, got 0 for both");
  EXPECT_EQ(message(AdaptiveSteps{.control = {.integral = 0}}),
            "`control` needs a positive `integral` and finite numbers, got integral 0, proportional 0, "
            "derivative 0");
  EXPECT_EQ(message(AdaptiveSteps{.safety = 1.5}), "`safety` must be in (0, 1], got 1.5");
  EXPECT_EQ(message(AdaptiveSteps{.smallest_factor = 1}), "`smallest_factor` must be in (0, 1), got 1");
  EXPECT_EQ(message(AdaptiveSteps{.largest_factor = 1}), "`largest_factor` must be above 1, got 1");
  EXPECT_EQ(message(AdaptiveSteps{.first_step = -0.1}),
            "`first_step` must be positive, got -0.1 (the direction follows from the depths)");
  EXPECT_EQ(message(AdaptiveSteps{.smallest_step = -1}), "`smallest_step` must not be negative, got -1");
  EXPECT_EQ(message(AdaptiveSteps{.smallest_step = 0.1, .largest_step = 0.1}),
            "`largest_step` must be above `smallest_step`, got 0.1");
  EXPECT_EQ(message(AdaptiveSteps{.step_limit = 0}), "`step_limit` must be positive, got 0");
}

}  // namespace
}  // namespace fathom::ode
