/// A solve of plain numbers from one set of options.
#include "fathom/ode/solve.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/plain/problems.hpp"

namespace fathom::testing {
namespace {

const Rate decay = [](double, const State& z, State& rate) { rate[0] = -z[0]; };

TEST(PlainSolve, HasTheToleranceOfItsOptions) {
  const auto at = [](double value) {
    return ode::solve(decay, {1.0}, {0.0, 1.0}, {.steps = tolerance(value)});
  };
  const ode::PlainSolution fine = at(1e-10), coarse = at(1e-3);
  EXPECT_NEAR(fine.states.back()[0], std::exp(-1), 1e-9);
  EXPECT_GT(std::abs(coarse.states.back()[0] - std::exp(-1)), 1e-9);
  EXPECT_GT(fine.report.evaluations, 2 * coarse.report.evaluations);
}

TEST(PlainSolve, HasTheMethodAndTheDepthsThatItIsGiven) {
  const ode::PlainSolution solution = ode::solve(
      decay, {1.0}, {0.0, 0.5, 1.0}, {.method = ode::rk4(), .steps = ode::FixedSteps{.count = 10}});
  ASSERT_EQ(solution.states.size(), 3u);
  EXPECT_NEAR(solution.states[1][0], std::exp(-0.5), 1e-6);
  EXPECT_EQ(solution.report.evaluations, 40);
}

TEST(PlainSolve, RefusesAStartThatIsNotFinite) {
  for (const double value : {double(NAN), double(INFINITY)}) {
    EXPECT_THROW(ode::solve(decay, {value}, {0.0, 1.0}), InvalidArgument);
  }
}

TEST(PlainSolve, RefusesAnEngineOfAnotherTolerance) {
  ode::PlainEngine engine(decay, {1.0}, ode::dopri5());
  EXPECT_THROW(ode::integrate(engine, {.steps = tolerance(1e-10)}, {0.0, 1.0}), InvalidArgument);
  EXPECT_NO_THROW(ode::integrate(engine, {}, {0.0, 1.0}));
}

TEST(PlainSolve, RefusesAnEngineOfAnotherMethod) {
  ode::PlainEngine engine(decay, {1.0}, ode::rk4());
  EXPECT_THROW(ode::integrate(engine, {.steps = ode::FixedSteps{.count = 4}}, {0.0, 1.0}), InvalidArgument);
  EXPECT_NO_THROW(
      ode::integrate(engine, {.method = ode::rk4(), .steps = ode::FixedSteps{.count = 4}}, {0.0, 1.0}));
}

}  // namespace
}  // namespace fathom::testing
