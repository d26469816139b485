// The observer sees every attempt and may stop the solve; the report counts what was done.
#include <gtest/gtest.h>

#include <cmath>

#include "support/plain/problems.hpp"

namespace fathom::ode {
namespace {

using namespace fathom::testing;

Plan too_long_first_step() {
  AdaptiveSteps steps = tolerance(1e-6);
  steps.first_step = 3;
  return {.method = dopri5(), .steps = steps};
}

TEST(Observer, SeesEveryAttemptOnceAndInOrder) {
  Plan plan = too_long_first_step();
  std::vector<StepEvent> events;
  plan.observer = [&](const StepEvent& event) { return events.push_back(event), Next::proceed; };
  const SolveReport report = solve(pendulum(), plan, {0.0, 10.0}).report;

  std::int64_t accepted = 0, rejected = 0, evaluations = 1;
  double depth = 0;
  for (const StepEvent& event : events) {
    evaluations += 6;
    EXPECT_EQ(event.evaluations, evaluations);
    EXPECT_EQ(event.step.start, depth);
    EXPECT_EQ(event.accepted, event.error <= 1);
    if (event.accepted) depth = event.step.end;
    ++(event.accepted ? accepted : rejected);
  }
  EXPECT_EQ(depth, 10.0);
  EXPECT_GT(rejected, 0);
  EXPECT_EQ(report.accepted, accepted);
  EXPECT_EQ(report.rejected, rejected);
  EXPECT_EQ(report.evaluations, evaluations);
}

TEST(Observer, SeesNoErrorOfFixedSteps) {
  Plan plan{.method = dopri5(), .steps = FixedSteps{.count = 4}};
  std::int64_t seen = 0;
  plan.observer = [&](const StepEvent& event) {
    EXPECT_TRUE(event.accepted);
    EXPECT_EQ(event.error, 0);
    ++seen;
    return Next::proceed;
  };
  solve(pendulum(), plan, {0.0, 4.0});
  EXPECT_EQ(seen, 4);
}

TEST(Observer, ChangesNothingByLooking) {
  Plan watched = too_long_first_step();
  watched.observer = [](const StepEvent&) { return Next::proceed; };
  const Outcome alone = solve(pendulum(), too_long_first_step(), {0.0, 5.0, 10.0});
  EXPECT_EQ(solve(pendulum(), watched, {0.0, 5.0, 10.0}).saved, alone.saved);
}

TEST(Observer, StopsTheSolveWhereItWants) {
  for (const Steps& steps : {Steps(tolerance(1e-6)), Steps(FixedSteps{.count = 100})}) {
    Plan plan{.method = dopri5(), .steps = steps};
    double stopped_at = 0;
    plan.observer = [&](const StepEvent& event) {
      if (!event.accepted || event.step.end < 4) return Next::proceed;
      stopped_at = event.step.end;
      return Next::stop;
    };
    const Outcome outcome = solve(decay(), plan, evenly(0, 10, 100));
    EXPECT_TRUE(outcome.report.stopped);
    EXPECT_EQ(outcome.report.reached, stopped_at);
    EXPECT_GE(stopped_at, 4);
    EXPECT_LT(stopped_at, 10);
    const auto reached =
        std::size_t(std::floor(stopped_at * 10 + 1e-9)) + 1;  // depths 0, 0.1, ..., up to there
    EXPECT_EQ(outcome.saved.size(), reached);
    EXPECT_NEAR(outcome.saved.back()[0], std::exp(-0.1 * double(reached - 1)), 1e-4);
    EXPECT_NE(outcome.report.brief().find(text(", stopped at depth ", stopped_at)), std::string::npos);
  }
}

TEST(Observer, MayStopAfterARejectedAttempt) {
  Plan plan = too_long_first_step();
  plan.observer = [](const StepEvent& event) { return event.accepted ? Next::proceed : Next::stop; };
  const SolveReport report = solve(pendulum(), plan, {0.0, 10.0}).report;
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(report.reached, 0);
  EXPECT_EQ(report.accepted, 0);
  EXPECT_EQ(report.rejected, 1);
  EXPECT_EQ(report.evaluations, 7);
}

TEST(Observer, ThatStopsAtTheLastStepStopsNothing) {
  Plan plan{.method = dopri5(), .steps = tolerance(1e-6)};
  plan.observer = [](const StepEvent& event) { return event.step.end == 2.0 ? Next::stop : Next::proceed; };
  const SolveReport report = solve(pendulum(), plan, {0.0, 2.0}).report;
  EXPECT_FALSE(report.stopped);
  EXPECT_EQ(report.reached, 2.0);
}

TEST(Observer, ThatThrowsEndsTheSolveWithItsOwnException) {
  Plan plan{.method = dopri5()};
  plan.observer = [](const StepEvent&) -> Next { throw std::out_of_range("enough"); };
  EXPECT_THROW(solve(pendulum(), plan, {0.0, 2.0}), std::out_of_range);
}

TEST(Report, HoldsTheExtremesOfTheAcceptedSteps) {
  for (double last : {10.0, -10.0}) {
    Plan plan = too_long_first_step();
    double smallest = 1e9, largest = 0, latest = 0;
    plan.observer = [&](const StepEvent& event) {
      if (!event.accepted) return Next::proceed;
      latest = std::abs(event.step.size());
      smallest = std::min(smallest, latest), largest = std::max(largest, latest);
      return Next::proceed;
    };
    const SolveReport report = solve(pendulum().rate, pendulum().start, plan, {0.0, last}).report;
    EXPECT_EQ(report.smallest_step, smallest);
    EXPECT_EQ(report.largest_step, largest);
    EXPECT_EQ(report.last_step, latest);
    EXPECT_EQ(report.reached, last);
    EXPECT_LT(report.largest_step, 3);  // the rejected first attempt does not count
    EXPECT_GT(report.seconds, 0);
  }
}

TEST(Report, OfFixedStepsHoldsTheGrid) {
  const Plan plan{.method = rk4(), .steps = FixedSteps{.size = 0.4}};
  const SolveReport report = solve(pendulum(), plan, {0.0, 1.0}).report;
  EXPECT_EQ(report.accepted, 3);
  EXPECT_EQ(report.rejected, 0);
  EXPECT_EQ(report.evaluations, 12);
  EXPECT_NEAR(report.smallest_step, 0.2, 1e-12);
  EXPECT_NEAR(report.largest_step, 0.4, 1e-12);
  EXPECT_NEAR(report.last_step, 0.2, 1e-12);
  EXPECT_FALSE(report.stopped);
}

TEST(Brief, IsOneLine) {
  SolveReport report{.evaluations = 26, .accepted = 4, .seconds = 0.0008};
  EXPECT_EQ(report.brief(), "26 evaluations, 4 steps accepted, 0 rejected, 0.8 ms");
  report.backward_evaluations = 24;
  report.rejected = 2;
  report.engine = "tensor";
  EXPECT_EQ(report.brief(),
            "26 evaluations + 24 backwards, 4 steps accepted, 2 rejected, 0.8 ms, tensor engine");
}

TEST(Brief, WritesLongTimesWithoutAnExponent) {
  SolveReport report{.evaluations = 9, .accepted = 1, .seconds = 1.2344, .reached = 0.125, .stopped = true};
  EXPECT_EQ(report.brief(), "9 evaluations, 1 steps accepted, 0 rejected, 1234 ms, stopped at depth 0.125");
  report.seconds = 0.0123;
  EXPECT_EQ(report.brief(), "9 evaluations, 1 steps accepted, 0 rejected, 12 ms, stopped at depth 0.125");
}

}  // namespace
}  // namespace fathom::ode
