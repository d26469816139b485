// Trouble in the field becomes a shorter step, the right answer, or a failure that says where and what to do.
#include <gtest/gtest.h>

#include <cmath>
#include <exception>
#include <optional>

#include "support/plain/bare_engine.hpp"
#include "support/plain/problems.hpp"

namespace fathom::ode {
namespace {

using namespace fathom::testing;
using ::testing::AssertionResult;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Caught {
  std::optional<FailureReason> reason = {};
  FailureSite site = {};
  std::string message = {};
  std::string nested = {};
};

Caught failure_of(const Rate& rate, const State& start, const Plan& plan, const std::vector<double>& depths) {
  try {
    solve(rate, start, plan, depths);
  } catch (const SolveFailure& failure) {
    Caught caught{.reason = failure.reason, .site = failure.site, .message = failure.what()};
    try {
      std::rethrow_if_nested(failure);
    } catch (const std::exception& original) { caught.nested = original.what(); }
    return caught;
  }
  return {};
}

AssertionResult mentions(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "no \"" << part << "\" in \"" << message << '"';
}

std::vector<ButcherTableau> adaptive_methods() {
  std::vector<ButcherTableau> methods = all_methods();
  std::erase_if(methods, [](const ButcherTableau& method) { return !method.adaptive(); });
  return methods;
}

class EveryAdaptiveMethod : public ::testing::TestWithParam<ButcherTableau> {};
class EveryMethod : public ::testing::TestWithParam<ButcherTableau> {};
const auto method_name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Methods, EveryAdaptiveMethod, ::testing::ValuesIn(adaptive_methods()), method_name);
INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, ::testing::ValuesIn(all_methods()), method_name);

/// NaN wherever a long trial step throws z below 0; no solution comes there.
const std::vector<Rate> fragile_rates = {
    [](double, const State& y, State& rate) { rate[0] = -y[0] * std::sqrt(y[0]); },
    [](double, const State& y, State& rate) { rate[0] = -y[0] * (2 + std::log(y[0])); },
};

TEST(Dopri5, PaysLittleForTrialsThatLeftTheDomainOfTheField) {
  const Outcome outcome =
      solve(fragile_rates[0], {1.0}, {.method = dopri5(), .steps = tolerance(1e-3)}, {0, 200});
  EXPECT_NEAR(outcome.saved.back()[0], 1.0 / (101 * 101), 1e-3);
  EXPECT_GT(outcome.report.rejected, 0);
  EXPECT_LE(outcome.report.evaluations, 300);
}

TEST_P(EveryAdaptiveMethod, DoesNotCreepWhereATrialMetNaN) {
  for (std::size_t n = 0; n < fragile_rates.size(); ++n) {
    for (const double first_step : {0.0, 50.0}) {
      AdaptiveSteps steps = tolerance(1e-3);
      if (first_step > 0) steps.first_step = first_step;
      const SolveReport report =
          solve(fragile_rates[n], {1.0}, {.method = GetParam(), .steps = steps}, {0, 200}).report;
      EXPECT_LE(report.evaluations, n == 0 ? 300 : 700) << "field " << n;
      EXPECT_GT(report.smallest_step, 1e-3) << "field " << n;
      EXPECT_EQ(report.scouting, 0) << "field " << n;
    }
  }
}

TEST_P(EveryAdaptiveMethod, ReportsAWallOfTheDomainInUnderSixHundredEvaluations) {
  const Rate root = [](double s, const State&, State& rate) { rate[0] = std::sqrt(1 - s); };
  const Caught caught = failure_of(root, {0.0}, {.method = GetParam(), .steps = tolerance(1e-3)}, {0, 2});
  ASSERT_EQ(caught.reason, FailureReason::non_finite);
  EXPECT_LE(caught.site.evaluations, 600);
  EXPECT_NEAR(caught.site.depth, 1, GetParam().name == "ralston2" ? 0.01 : 1e-10);
}

// torchdiffeq ends a solve at a NaN that a smaller step would never meet.
TEST_P(EveryAdaptiveMethod, ShrinksAStepThatLeftTheDomainOfTheField) {
  AdaptiveSteps steps = tolerance(1e-6);
  steps.first_step = 5;
  const Rate root = [](double, const State& y, State& rate) { rate[0] = -std::sqrt(y[0]); };
  const Outcome by_root = solve(root, {1.0}, {.method = GetParam(), .steps = steps}, {0.0, 1.9});
  EXPECT_NEAR(by_root.saved.back()[0], 0.05 * 0.05, 5e-5);  // (1 - s/2)^2

  const Rate logarithm = [](double, const State& y, State& rate) { rate[0] = -5 * std::exp(std::log(y[0])); };
  const Outcome by_log = solve(logarithm, {1.0}, {.method = GetParam(), .steps = steps}, {0.0, 6.0});
  EXPECT_NEAR(by_log.saved.back()[0], 0, 5e-5);
  EXPECT_GT(by_log.report.rejected, 0);
}

TEST_P(EveryAdaptiveMethod, ReportsNaNThatNoSmallerStepAvoids) {
  const Rate wall = [](double s, const State& y, State& rate) {
    rate = {y[0], s > 0.5 ? not_a_number : 1.0};
  };
  const Caught caught =
      failure_of(wall, {1.0, 0.0}, {.method = GetParam(), .steps = tolerance(1e-4)}, {0, 1});
  ASSERT_EQ(caught.reason, FailureReason::non_finite);
  // ralston2 has no stage beyond 2/3 of a step and can end behind the wall before it sees it.
  EXPECT_NEAR(caught.site.depth, 0.5, GetParam().name == "ralston2" ? 0.01 : 1e-10);
  EXPECT_LT(std::abs(caught.site.step), 1e-10);
  EXPECT_LT(caught.site.evaluations, 1000);
  EXPECT_EQ(caught.site.component, "z[1] = nan");
  for (const char* part : {"solve failed at depth 0.5", "z[1] is nan", "(step size ", ", evaluation ",
                           "check the field for overflow"})
    EXPECT_TRUE(mentions(caught.message, part));
  EXPECT_FALSE(mentions(caught.message, "fixed steps")) << "the steps are adaptive";
}

TEST_P(EveryMethod, FailsInsteadOfReturningNaNWithFixedSteps) {
  const Rate wall = [](double s, const State&, State& rate) { rate[0] = s > 0.5 ? not_a_number : 1.0; };
  const Plan plan{.method = GetParam(), .steps = FixedSteps{.count = 10}};
  const Caught caught = failure_of(wall, {1.0}, plan, {0.0, 1.0});
  ASSERT_EQ(caught.reason, FailureReason::non_finite);
  EXPECT_GE(caught.site.depth, 0.4);
  EXPECT_LE(caught.site.depth, 0.6 + 1e-12);  // euler sees only the rate at the start of a step
  EXPECT_NEAR(caught.site.step, 0.1, 1e-12);
  EXPECT_TRUE(mentions(caught.message, "fixed steps that are too long overflow: take more steps"));
}

TEST(InfiniteRate, IsFoundLikeNaN) {
  const Rate pole = [](double, const State&, State& rate) { rate[0] = infinity; };
  for (const Steps& steps : {Steps(tolerance(1e-4)), Steps(FixedSteps{.count = 3})})
    EXPECT_EQ(failure_of(pole, {1.0}, {.method = dopri5(), .steps = steps}, {0.0, 1.0}).reason,
              FailureReason::non_finite);
}

TEST(NonFiniteStart, IsNamedBeforeAnyStep) {
  for (double bad : {not_a_number, infinity}) {
    PlainEngine engine(pendulum().rate, {0.0, bad}, dopri5());  // ode::solve() refuses it as an argument
    try {
      integrate(engine, {.method = dopri5()}, {2.0, 3.0});
      ADD_FAILURE() << "no failure";
    } catch (const SolveFailure& failure) {
      EXPECT_EQ(failure.reason, FailureReason::non_finite);
      EXPECT_EQ(failure.site.depth, 2.0);
      EXPECT_TRUE(mentions(failure.what(), std::isnan(bad) ? ": z[1] is nan (step size 1, evaluation "
                                                           : ": z[1] is inf (step size 1, evaluation "));
    }
  }
}

TEST(NonFiniteFirstRate, IsNamedAsARate) {
  const Rate bad = [](double, const State&, State& rate) { rate = {1.0, not_a_number}; };
  const Caught caught = failure_of(bad, {0.0, 0.0}, {.method = dopri5()}, {0.0, 1.0});
  EXPECT_TRUE(mentions(caught.message, ": rate[1] is nan (step size 1, evaluation 1); check"));
  EXPECT_EQ(caught.site.evaluations, 1);
}

TEST_P(EveryAdaptiveMethod, FindsABlowUpInUnderAThousandEvaluations) {
  const Rate square = [](double, const State& y, State& rate) { rate[0] = y[0] * y[0]; };
  const Rate cube = [](double, const State& y, State& rate) { rate[0] = y[0] * y[0] * y[0]; };
  const Rate tangent = [](double, const State& y, State& rate) { rate[0] = 1 + y[0] * y[0]; };
  struct Pole {
    Rate rate;
    double start, last, at;
  };
  for (const Pole& pole : {Pole{square, 1, 2, 1}, Pole{square, -1, -2, -1}, Pole{square, 1, 100, 1},
                           Pole{cube, 1, 2, 0.5}, Pole{tangent, 1, 3, std::acos(0.0) / 2}}) {
    const Caught caught =
        failure_of(pole.rate, {pole.start}, {.method = GetParam(), .steps = tolerance(1e-4)}, {0, pole.last});
    ASSERT_EQ(caught.reason, FailureReason::step_too_small) << caught.message;
    EXPECT_LT(caught.site.evaluations, 1000);
    EXPECT_NEAR(caught.site.depth, pole.at, 0.01);  // as far as a loose tolerance can tell
    for (const char* part :
         {"solve failed at depth", "steps became too small (step size ", "may blow up there",
          "end the solve before it blows up", "name jumps as `break_points`"})
      EXPECT_TRUE(mentions(caught.message, part));
    EXPECT_FALSE(mentions(caught.message, "FixedSteps")) << "they would overflow";
  }
}

/// Steep problems that stay finite; before the flame and the peak steps shrink as they do before a pole.
struct SteepProblem {
  const char* name;
  Rate rate;
  State start;
  double last;
  double end;       // z[0] at the last depth
  double relative;  // error that a tolerance of 1e-6 leads to
};

const std::vector<SteepProblem> steep_problems = {
    // z' = 50 z up to 1e299
    {"growth",
     [](double, const State& y, State& rate) { rate[0] = 50 * y[0]; },
     {1.0},
     13.8,
     std::exp(690),
     0.1},
    // Shampine's flame: like 1 / (1e4 - s) over four decades, then 1
    {"flame",
     [](double, const State& y, State& rate) { rate[0] = y[0] * y[0] * (1 - y[0]); },
     {1e-4},
     1.2e4,
     1,
     1e-4},
    // a peak of height 1e12 and width 1e-6: like 1 / (1/2 - s) over six decades
    {"peak",
     [](double s, const State&, State& rate) { rate[0] = 1 / ((s - 0.5) * (s - 0.5) + 1e-12); },
     {0.0},
     1,
     2e6 * std::atan(0.5e6),
     1e-4},
    // from 1e-12 to 1 within a layer of width 1/200
    {"layer",
     [](double, const State& y, State& rate) { rate[0] = 200 * y[0] * (1 - y[0]); },
     {1e-12},
     1,
     1,
     1e-4},
};

static_assert(Scouting<PlainEngine> && !Scouting<BareEngine<PlainEngine>>);

TEST_P(EveryAdaptiveMethod, DoesNotTakeASteepProblemForABlowUp) {
  for (const SteepProblem& problem : steep_problems) {
    AdaptiveSteps steps = tolerance(1e-6);
    steps.step_limit = 10000000;
    if (GetParam().order <= 3) steps.relative_tolerance = 1e-5;
    const Plan plan{.method = GetParam(), .steps = steps};
    PlainEngine with(problem.rate, problem.start, GetParam(), steps), without(with);
    const SolveReport scouted = integrate(with, plan, {0.0, problem.last});
    EXPECT_NEAR(with.state()[0] / problem.end, 1, problem.relative) << problem.name;
    BareEngine<PlainEngine> alone{without};
    const SolveReport plain = integrate(alone, plan, {0.0, problem.last});
    EXPECT_EQ(with.state(), without.state()) << problem.name << ": a scout must not change the solve";
    EXPECT_EQ(scouted.accepted, plain.accepted);
    EXPECT_EQ(scouted.evaluations - scouted.scouting, plain.evaluations);
    EXPECT_LE(double(scouted.scouting), 0.3 * double(plain.evaluations) + 100) << problem.name;
  }
}

TEST(Scouts, AreSentWhereStepsConvergeAndNowhereElse) {
  const auto scouting = [](const SteepProblem& problem) {
    return solve(problem.rate, problem.start, {.method = dopri5(), .steps = tolerance(1e-6)},
                 {0.0, problem.last})
        .report.scouting;
  };
  EXPECT_EQ(scouting(steep_problems[0]), 0);
  EXPECT_GT(scouting(steep_problems[2]), 0);
  EXPECT_EQ(solve(pendulum(), {.method = dopri5(), .steps = tolerance(1e-10)}, {0.0, 30.0}).report.scouting,
            0);
}

TEST(Scouts, LeaveTheSolveAloneWhenTheFieldRefusesWhereTheyGo) {
  const Rate guarded_peak = [](double s, const State& y, State& rate) {
    if (y[0] > 3.2e6) throw std::domain_error("too high");  // true end: 3.14159e6
    rate[0] = 1 / ((s - 0.5) * (s - 0.5) + 1e-12);
  };
  EXPECT_NO_THROW(solve(guarded_peak, {0.0}, {.method = dopri5(), .steps = tolerance(1e-6)}, {0.0, 1.0}));
}

TEST(BlowUp, IsFoundWithFixedStepsOnceItOverflows) {
  const Rate square = [](double, const State& y, State& rate) { rate[0] = y[0] * y[0]; };
  EXPECT_EQ(
      failure_of(square, {1.0}, {.method = rk4(), .steps = FixedSteps{.count = 100}}, {0.0, 2.0}).reason,
      FailureReason::non_finite);
}

TEST(ThrowingField, FailsWithThePlaceAndTheOriginalNested) {
  const Rate picky = [](double s, const State&, State& rate) {
    if (s > 0.3) throw std::domain_error("pressure must be positive\n  at frame 12");
    rate[0] = 1;
  };
  for (const Steps& steps : {Steps(tolerance(1e-4)), Steps(FixedSteps{.count = 10})}) {
    const Caught caught = failure_of(picky, {1.0}, {.method = dopri5(), .steps = steps}, {0.0, 1.0});
    ASSERT_EQ(caught.reason, FailureReason::field_threw);
    EXPECT_EQ(caught.nested, "pressure must be positive\n  at frame 12");
    EXPECT_TRUE(mentions(caught.message, "the field threw \"pressure must be positive\" (step size "));
    EXPECT_GT(caught.site.evaluations, 0);
    EXPECT_LE(caught.site.depth, 0.3);
  }
}

TEST(ThrowingField, IsCaughtInEveryEvaluationOfASolve) {
  const Plan plan{.method = dop853(), .steps = tolerance(1e-4)};
  const std::vector<double> depths = evenly(0, 3, 30);  // dense stages as well
  const std::int64_t all = solve(pendulum(), plan, depths).report.evaluations;
  for (std::int64_t bad = 1; bad <= all; ++bad) {
    std::int64_t evaluation = 0;
    const Rate faulty = [&](double s, const State& y, State& rate) {
      if (++evaluation == bad) throw std::runtime_error("cable cut");
      pendulum().rate(s, y, rate);
    };
    const Caught caught = failure_of(faulty, pendulum().start, plan, depths);
    EXPECT_EQ(caught.reason, FailureReason::field_threw) << bad;
    EXPECT_EQ(caught.site.evaluations, bad);
  }
}

TEST(ThrowingField, PassesErrorsOfTheLibraryAsTheyAre) {
  const Rate strict = [](double, const State&, State&) { require(false, "`field` needs a batch"); };
  EXPECT_THROW(solve(strict, {1.0}, {.method = dopri5()}, {0.0, 1.0}), InvalidArgument);
}

TEST(ThrowingField, PassesTheWantOfMemoryAsItIs) {
  const Rate large = [](double, const State&, State&) { throw std::bad_alloc(); };
  EXPECT_THROW(solve(large, {1.0}, {.method = dopri5()}, {0.0, 1.0}), std::bad_alloc);
}

Caught too_many_steps(const Rate& rate, const ButcherTableau& method, double allowed, std::int64_t limit) {
  AdaptiveSteps steps = tolerance(allowed);
  steps.step_limit = limit;
  return failure_of(rate, {0.0}, {.method = method, .steps = steps}, {0.0, 10.0});
}

void approach(double s, const State& y, State& rate) { rate[0] = -1e6 * (y[0] - std::cos(s)); }

TEST(TooManySteps, IsAFailureWithTheCountAndARemedy) {
  const Caught caught = too_many_steps(approach, dopri5(), 1e-6, 50);
  ASSERT_EQ(caught.reason, FailureReason::too_many_steps);
  EXPECT_EQ(caught.site.evaluations, 2 + 6 * 50);
  for (const char* part :
       {"no end after 50 steps (step size ", "raise `step_limit`, or loosen `relative_tolerance`",
        "where that saves no steps, the field is stiff"})
    EXPECT_TRUE(mentions(caught.message, part));
}

TEST(TooManySteps, OfAStiffFieldAreToldFromThoseThatTheToleranceWants) {
  for (const ButcherTableau& method : {dopri5(), tsit5(), dop853(), heun2()}) {
    const Caught stiff = too_many_steps(approach, method, 1e-3, 1000);
    ASSERT_EQ(stiff.reason, FailureReason::too_many_steps);
    for (const char* part :
         {"steps are limited by stability, not by the tolerance, from depth ",
          "loosening the tolerance saves nothing", "there is no implicit method", "a higher `step_limit`"})
      EXPECT_TRUE(mentions(stiff.message, part)) << method.name;
    for (const char* part : {"loosen `relative_tolerance`", "FixedSteps"})
      EXPECT_FALSE(mentions(stiff.message, part)) << method.name;
    EXPECT_EQ(stiff.site.limits.steps, StepLimit::stability);
    EXPECT_LT(*stiff.site.limits.stability_from, stiff.site.depth);
  }
  const Rate wave = [](double s, const State&, State& rate) { rate[0] = 1e4 * std::cos(100 * s); };
  const Caught precise = too_many_steps(wave, dopri5(), 1e-10, 1000);
  for (const char* part : {"the tolerance limits the steps, not stability", "loosen `relative_tolerance`"})
    EXPECT_TRUE(mentions(precise.message, part));
  EXPECT_EQ(precise.site.limits.steps, StepLimit::tolerance);
  // Three stages at three depths tell nothing: what is said then holds in both cases.
  EXPECT_TRUE(mentions(too_many_steps(approach, bosh3(), 1e-3, 1000).message,
                       "(dopri5 and tsit5 tell after some 120 steps)"));
}

TEST(Tolerance, BelowTheResolutionOfTheTypeIsToldInAFailure) {
  AdaptiveSteps steps{.relative_tolerance = 1e-18, .absolute_tolerance = 1e-18, .step_limit = 100};
  const Caught caught = failure_of(pendulum().rate, {1, 0}, {.method = dopri5(), .steps = steps}, {0, 10});
  EXPECT_TRUE(mentions(caught.message,
                       "the tolerance is below the resolution of the state's type, 2.2e-16: raise "
                       "`relative_tolerance`"));
}

TEST(TooManySteps, CountsAttemptsAndAllowsTheLastOneToFinish) {
  const Plan free{.method = dopri5(), .steps = tolerance(1e-8)};
  const SolveReport report = solve(pendulum(), free, {0.0, 5.0}).report;
  AdaptiveSteps steps = tolerance(1e-8);
  steps.step_limit = report.accepted + report.rejected;
  EXPECT_NO_THROW(solve(pendulum(), {.method = dopri5(), .steps = steps}, {0.0, 5.0}));
  steps.step_limit -= 1;
  EXPECT_THROW(solve(pendulum(), {.method = dopri5(), .steps = steps}, {0.0, 5.0}), SolveFailure);
}

TEST(Failure, HasANameForEveryReason) {
  EXPECT_STREQ(name(FailureReason::non_finite), "non_finite");
  EXPECT_STREQ(name(FailureReason::step_too_small), "step_too_small");
  EXPECT_STREQ(name(FailureReason::too_many_steps), "too_many_steps");
  EXPECT_STREQ(name(FailureReason::field_threw), "field_threw");
}

}  // namespace
}  // namespace fathom::ode
