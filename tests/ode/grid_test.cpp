// Fixed grids: where their points lie, and how they move with the bounds of the solve.
#include "fathom/ode/grid.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/plain/problems.hpp"

namespace fathom::ode {
namespace {

using namespace fathom::testing;

std::vector<double> points(const std::vector<Step>& grid) {
  std::vector<double> depths = {grid.front().start};
  for (const Step& step : grid) {
    EXPECT_EQ(step.start, depths.back()) << "steps must join";
    depths.push_back(step.end);
  }
  return depths;
}

void expect_points(const std::vector<Step>& grid, const std::vector<double>& expected) {
  const std::vector<double> given = points(grid);
  ASSERT_EQ(given.size(), expected.size());
  for (std::size_t n = 0; n < given.size(); ++n) EXPECT_NEAR(given[n], expected[n], 1e-12) << "point " << n;
  EXPECT_EQ(given.front(), expected.front());
  EXPECT_EQ(given.back(), expected.back());
}

TEST(GridByCount, HasEqualSteps) {
  expect_points(fixed_grid({.count = 4}, 0, 1, {}), {0, 0.25, 0.5, 0.75, 1});
  expect_points(fixed_grid({.count = 4}, 1, -1, {}), {1, 0.5, 0, -0.5, -1});
  expect_points(fixed_grid({.count = 1}, 2, 5, {}), {2, 5});
}

TEST(GridByCount, EndsExactlyAtTheLastDepthHoweverItRounds) {
  for (int count : {3, 7, 10, 49, 1000}) {
    const std::vector<Step> grid = fixed_grid({.count = count}, 0.1, 0.7, {});
    EXPECT_EQ(grid.size(), std::size_t(count));
    EXPECT_EQ(grid.front().start, 0.1);
    EXPECT_EQ(grid.back().end, 0.7);
  }
}

TEST(GridBySize, HasAShorterLastStep) {
  expect_points(fixed_grid({.size = 0.4}, 0, 1, {}), {0, 0.4, 0.8, 1});
  expect_points(fixed_grid({.size = 0.4}, 1, 0, {}), {1, 0.6, 0.2, 0});
  expect_points(fixed_grid({.size = 3}, 0, 1, {}), {0, 1});
}

TEST(GridBySize, HasNoSliverWhereTheSizeDividesTheSpan) {
  for (double size : {0.1, 0.2, 0.05, 0.01, 1.0 / 3, 1.0 / 7}) {
    const auto steps = std::size_t(std::lround(1 / size));
    EXPECT_EQ(fixed_grid({.size = size}, 0, 1, {}).size(), steps) << size;
    EXPECT_EQ(fixed_grid({.size = size}, 5, 4, {}).size(), steps) << size;
  }
}

TEST(GridByDepths, TakesThoseBetweenTheBoundsInOrder) {
  expect_points(fixed_grid({.grid = {0.7, 0.2, 0.2, -3, 9}}, 0, 1, {}), {0, 0.2, 0.7, 1});
  expect_points(fixed_grid({.grid = {0.2, 0.7}}, 1, 0, {}), {1, 0.7, 0.2, 0});
  expect_points(fixed_grid({.grid = {0, 0.2, 1}}, 0, 1, {}), {0, 0.2, 1});
}

TEST(GridByDepths, ReplaysARecordedAdaptiveSolve) {
  std::vector<double> recorded;
  Plan adaptive{.method = dopri5(), .steps = tolerance(1e-6)};
  adaptive.observer = [&](const StepEvent& event) {
    if (event.accepted) recorded.push_back(event.step.end);
    return Next::proceed;
  };
  const std::vector<double> depths = evenly(0, 10, 7);
  const Outcome first = solve(pendulum(), adaptive, depths);
  const Outcome replay =
      solve(pendulum(), {.method = dopri5(), .steps = FixedSteps{.grid = recorded}}, depths);
  EXPECT_EQ(replay.saved, first.saved);
  EXPECT_EQ(replay.report.accepted, first.report.accepted);
}

TEST(StepsAlong, ReplayASolveOfOneStepAsWell) {
  const Outcome once = solve(decay(), {.method = dopri5(), .steps = tolerance(1e-3)}, {0.0, 0.01});
  ASSERT_EQ(once.report.accepted, 1);
  const Outcome again = solve(decay(), {.method = dopri5(), .steps = steps_along({})}, {0.0, 0.01});
  EXPECT_EQ(again.saved, once.saved);
  EXPECT_EQ(again.report.accepted, 1);
  EXPECT_EQ(steps_along({0.25, 0.5}).grid, (std::vector{0.25, 0.5}));
}

TEST(Breaks, AreAddedToEveryLayout) {
  expect_points(fixed_grid({.count = 2}, 0, 1, {0.3}), {0, 0.3, 0.5, 1});
  expect_points(fixed_grid({.size = 0.4}, 0, 1, {0.3}), {0, 0.3, 0.4, 0.8, 1});
  expect_points(fixed_grid({.grid = {0.7}}, 0, 1, {0.3}), {0, 0.3, 0.7, 1});
  expect_points(fixed_grid({.count = 2}, 1, 0, {0.3}), {1, 0.5, 0.3, 0});
}

TEST(Breaks, ThatFallOnAGridPointAreNotAddedTwice) {
  const std::vector<Step> grid =
      fixed_grid({.count = 10}, 0, 1, {0.3});  // 0.3 and 3 * 0.1 differ in the last bit
  ASSERT_EQ(grid.size(), 10u);
  EXPECT_EQ(grid[2].end, 0.3);
  EXPECT_TRUE(grid[2].ends_at_break);
  EXPECT_TRUE(grid[3].starts_at_break);
  EXPECT_FALSE(grid[2].starts_at_break);
  EXPECT_FALSE(grid[3].ends_at_break);
}

TEST(Breaks, OnTheBoundsMarkTheFirstAndTheLastStep) {
  const std::vector<Step> grid = fixed_grid({.count = 2}, 0, 1, {0.0, 1.0});
  ASSERT_EQ(grid.size(), 2u);
  EXPECT_TRUE(grid[0].starts_at_break);
  EXPECT_FALSE(grid[0].ends_at_break);
  EXPECT_TRUE(grid[1].ends_at_break);
}

TEST(Breaks, BetweenTwoDepthsComeInTheDirectionOfTheSolve) {
  const std::vector<double> breaks = {3, 1, 2, 1, 0, 5};
  EXPECT_EQ(breaks_between(breaks, 0, 3), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(breaks_between(breaks, 3, 0), (std::vector<double>{3, 2, 1, 0}));
  EXPECT_EQ(breaks_between(breaks, 0.5, 2.5), (std::vector<double>{1, 2}));
  EXPECT_TRUE(breaks_between({}, 0, 1).empty());
}

/// d(end of step n) / d(bound) by central differences of the grid itself.
void expect_moves(const FixedSteps& steps, double first, double last, const std::vector<double>& breaks) {
  constexpr double shift = 1e-6;
  const auto grid = [&](double by_first, double by_last) {
    return points(fixed_grid(steps, first + by_first, last + by_last, breaks));
  };
  const std::vector<Step> here = fixed_grid(steps, first, last, breaks);
  const auto first_up = grid(shift, 0), first_down = grid(-shift, 0), last_up = grid(0, shift),
             last_down = grid(0, -shift);
  ASSERT_EQ(first_up.size(), here.size() + 1);
  ASSERT_EQ(last_down.size(), here.size() + 1);
  for (std::size_t n = 0; n < here.size(); ++n) {
    const auto check = [&](const Moves& moves, std::size_t point) {
      EXPECT_NEAR(moves.with_first, (first_up[point] - first_down[point]) / (2 * shift), 1e-8)
          << "point " << point;
      EXPECT_NEAR(moves.with_last, (last_up[point] - last_down[point]) / (2 * shift), 1e-8)
          << "point " << point;
    };
    check(here[n].start_moves, n);
    check(here[n].end_moves, n + 1);
  }
}

TEST(Moves, AreTheDerivativesOfTheGridByItsBounds) {
  for (const auto& [first, last] : {std::pair{0.0, 1.0}, {1.0, -0.5}}) {
    expect_moves({.count = 5}, first, last, {});
    expect_moves({.count = 5}, first, last, {0.123, 0.77});
    expect_moves({.size = 0.35}, first, last, {});
    expect_moves({.size = 0.35}, first, last, {0.123});
    expect_moves({.grid = {0.25, 0.5}}, first, last, {});
  }
}

TEST(Moves, OfAnAdaptiveSolveBelongToItsEndsOnly) {
  Plan plan{.method = dopri5(), .steps = tolerance(1e-6), .break_points = {2.0}};
  std::vector<Step> steps;
  plan.observer = [&](const StepEvent& event) {
    if (event.accepted) steps.push_back(event.step);
    return Next::proceed;
  };
  solve(pendulum(), plan, {0.0, 4.0});
  for (std::size_t n = 0; n < steps.size(); ++n) {
    EXPECT_EQ(steps[n].start_moves.with_first, n == 0 ? 1 : 0);
    EXPECT_EQ(steps[n].start_moves.with_last, 0);
    EXPECT_EQ(steps[n].end_moves.with_first, 0);
    EXPECT_EQ(steps[n].end_moves.with_last, n + 1 == steps.size() ? 1 : 0);
  }
}

TEST(Step, PlacesItsStagesBetweenItsEndsAndInsideOfBreaks) {
  const Step open{.start = 1, .end = 3};
  EXPECT_EQ(open.stage_depth(0), 1);
  EXPECT_EQ(open.stage_depth(0.5), 2);
  EXPECT_EQ(open.stage_depth(1), 3);
  const Step closed{.start = 1, .end = 3, .starts_at_break = true, .ends_at_break = true};
  EXPECT_EQ(closed.stage_depth(0), std::nextafter(1.0, 2.0));
  EXPECT_EQ(closed.stage_depth(0.5), 2);
  EXPECT_EQ(closed.stage_depth(1), std::nextafter(3.0, 2.0));
  const Step back{.start = 3, .end = 1, .starts_at_break = true, .ends_at_break = true};
  EXPECT_EQ(back.stage_depth(0), std::nextafter(3.0, 2.0));
  EXPECT_EQ(back.stage_depth(1), std::nextafter(1.0, 2.0));
}

TEST(Step, KnowsWhichFractionADepthIs) {
  const Step back{.start = 0.7, .end = 0.1};
  EXPECT_EQ(back.fraction(0.1), 1);
  EXPECT_EQ(back.fraction(0.7), 0);
  EXPECT_NEAR(back.fraction(0.4), 0.5, 1e-15);
  EXPECT_TRUE(back.contains(0.1) && back.contains(0.7) && back.contains(0.3));
  EXPECT_FALSE(back.contains(0.71) || back.contains(0.09));
}

}  // namespace
}  // namespace fathom::ode
