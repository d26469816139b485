// What a solve costs and how its steps follow the error.
#include "fathom/ode/control.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "support/plain/detest.hpp"

namespace fathom::ode {
namespace {

using namespace fathom::testing;

struct Recorded {
  Outcome outcome = {};
  std::vector<StepEvent> events = {};
};

Recorded record(const Rate& rate, const State& start, Plan plan, const std::vector<double>& depths) {
  Recorded recorded;
  plan.observer = [&](const StepEvent& event) { return recorded.events.push_back(event), Next::proceed; };
  recorded.outcome = solve(rate, start, plan, depths);
  return recorded;
}

Recorded record(const Problem& problem, const Plan& plan, const std::vector<double>& depths) {
  return record(problem.rate, problem.start, plan, depths);
}

std::vector<ButcherTableau> adaptive_methods() {
  std::vector<ButcherTableau> methods = all_methods();
  std::erase_if(methods, [](const ButcherTableau& method) { return !method.adaptive(); });
  return methods;
}

/// The first step of HNW II.4, which scipy and the libraries of torch take.
double step_of_literature(const Problem& problem, const ButcherTableau& method, double tol, double last) {
  const State& y = problem.start;
  State rate(y.size()), probed(y.size()), moved = y;
  const auto norm = [&](const State& values) {
    double sum = 0;
    for (std::size_t n = 0; n < y.size(); ++n) sum += std::pow(values[n] / (tol + tol * std::abs(y[n])), 2);
    return std::sqrt(sum / double(y.size()));
  };
  problem.rate(0, y, rate);
  const double d0 = norm(y), d1 = norm(rate);
  const double probe = std::min(d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1, last);
  for (std::size_t n = 0; n < y.size(); ++n) moved[n] += probe * rate[n];
  problem.rate(probe, moved, probed);
  for (std::size_t n = 0; n < y.size(); ++n) probed[n] -= rate[n];
  const double steepest = std::max(d1, norm(probed) / probe);
  const double size = steepest <= 1e-15 ? std::max(1e-6, 1e-3 * probe)
                                        : std::pow(0.01 / steepest, 1.0 / method.control_order());
  return std::min({100 * probe, size, last});
}

class EveryAdaptiveMethod : public ::testing::TestWithParam<ButcherTableau> {};
const auto method_name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Methods, EveryAdaptiveMethod, ::testing::ValuesIn(adaptive_methods()), method_name);

TEST(Dopri5, CostsTwoEvaluationsAndSixAnAttempt) {
  for (const Problem& problem : {modulated_growth(), pendulum(), decay()}) {
    const SolveReport report =
        solve(problem, {.method = dopri5(), .steps = tolerance(1e-7)}, {0.0, 10.0}).report;
    EXPECT_EQ(report.evaluations, 2 + 6 * (report.accepted + report.rejected)) << problem.name;
  }
}

TEST(Dopri5, CostsOneEvaluationAndSixAnAttemptWhenTheFirstStepIsGiven) {
  AdaptiveSteps steps = tolerance(1e-6);
  steps.first_step = 2.0;  // too long, so that some attempts are rejected
  const SolveReport report = solve(pendulum(), {.method = dopri5(), .steps = steps}, {0.0, 10.0}).report;
  EXPECT_GT(report.rejected, 0);
  EXPECT_EQ(report.evaluations, 1 + 6 * (report.accepted + report.rejected));
}

TEST(Dopri5, CostsOneEvaluationAndSixAFixedStep) {
  const Plan plan{.method = dopri5(), .steps = FixedSteps{.count = 20}};
  EXPECT_EQ(solve(pendulum(), plan, {0.0, 10.0}).report.evaluations, 1 + 6 * 20);
}

// torchdyn's evaluations grow with the number of saved points.
TEST(SavedDepths, ChangeNeitherStepsNorEvaluationsOfDopri5AndTsit5) {
  for (const ButcherTableau& method : {dopri5(), tsit5()}) {
    const Plan plan{.method = method, .steps = tolerance(1e-6)};
    const SolveReport two = solve(pendulum(), plan, evenly(0, 10, 1)).report;
    for (int intervals : {9, 999}) {
      const SolveReport many = solve(pendulum(), plan, evenly(0, 10, intervals)).report;
      EXPECT_EQ(many.evaluations, two.evaluations) << method.name;
      EXPECT_EQ(many.accepted, two.accepted) << method.name;
      EXPECT_EQ(many.rejected, two.rejected) << method.name;
    }
  }
}

TEST_P(EveryAdaptiveMethod, TakesTheSameStepsWhateverIsSaved) {
  const ButcherTableau method = GetParam();
  const Plan plan{.method = method, .steps = tolerance(1e-4)};
  const Recorded two = record(pendulum(), plan, evenly(0, 10, 1));
  const Recorded many = record(pendulum(), plan, evenly(0, 10, 9999));
  ASSERT_EQ(two.events.size(), many.events.size());
  for (std::size_t n = 0; n < two.events.size(); ++n)
    EXPECT_EQ(two.events[n].step.end, many.events[n].step.end) << "attempt " << n;
  EXPECT_EQ(two.outcome.saved.back(), many.outcome.saved.back());

  // The rate at the end serves the next step as well; only stages for dense output alone cost anything.
  const std::int64_t extra = std::int64_t(method.dense_stages()) - (method.first_same_as_last() ? 0 : 1);
  const std::int64_t most = method.dense_stages() == 0 ? 0 : extra * many.outcome.report.accepted + 1;
  EXPECT_LE(many.outcome.report.evaluations, two.outcome.report.evaluations + most);
}

// torchdyn's first step is mis-sized when depth runs backwards.
TEST_P(EveryAdaptiveMethod, TakesTheMirroredStepsWhenDepthIsReversed) {
  const Plan plan{.method = GetParam(), .steps = tolerance(1e-5)};
  for (const Problem& problem : {modulated_growth(), pendulum()}) {
    const Recorded ahead = record(problem, plan, {0.0, 3.0});
    const Recorded back = record(mirrored(problem.rate), problem.start, plan, {0.0, -3.0});
    ASSERT_EQ(ahead.events.size(), back.events.size());
    for (std::size_t n = 0; n < ahead.events.size(); ++n) {
      EXPECT_EQ(ahead.events[n].step.end, -back.events[n].step.end) << "attempt " << n;
      EXPECT_EQ(ahead.events[n].accepted, back.events[n].accepted) << "attempt " << n;
    }
    EXPECT_EQ(ahead.outcome.saved, back.outcome.saved);
  }
}

TEST(FirstStep, ProbesOnlyDepthsOfTheSolve) {
  for (const double last : {1e-9, 0.5, -0.5}) {
    double lowest = 0, highest = 0;
    const Rate watched = [&](double s, const State& y, State& rate) {
      lowest = std::min(lowest, s), highest = std::max(highest, s);
      rate[0] = y[0];
    };
    solve(watched, {1.0}, {.method = dopri5()}, {0.0, last});
    EXPECT_GE(lowest, std::min(0.0, last));
    EXPECT_LE(highest, std::max(0.0, last));
  }
}

TEST(FirstStep, IsTheGivenOne) {
  AdaptiveSteps steps = tolerance(1e-6);
  steps.first_step = 0.015625;
  for (const double last : {1.0, -1.0}) {
    const Recorded recorded = record(pendulum(), {.method = dopri5(), .steps = steps}, {0.0, last});
    EXPECT_EQ(recorded.events.front().step.end, std::copysign(0.015625, last));
  }
}

TEST_P(EveryAdaptiveMethod, BeginsWithAStepOfTheSizeThatTheToleranceAllows) {
  const ButcherTableau method = GetParam();
  int solves = 0, rejected = 0;
  double sum = 0;
  for (const double tol : {1e-3, 1e-4, 1e-6, 1e-8}) {
    for (const Problem& problem : detest()) {
      const Recorded recorded = record(problem, {.method = method, .steps = tolerance(tol)}, {0.0, 0.1});
      const StepEvent& first = recorded.events.front();
      if (problem.name == "E3" || problem.name == "E5") continue;  // a zero state has no scale
      if (first.step.end == 0.1 && first.accepted) continue;       // cut
      ++solves;
      rejected += first.accepted ? 0 : 1;
      sum += std::log10(first.error);
      // At most 1.5 times too long, and twenty times too short, as the error goes by h^order.
      EXPECT_LT(first.error, std::pow(1.5, method.control_order())) << problem.name << " at " << tol;
      EXPECT_GT(first.error, std::pow(0.05, method.control_order())) << problem.name << " at " << tol;
    }
  }
  ASSERT_GT(solves, 10);
  EXPECT_LE(rejected, solves / 20);
  EXPECT_GT(sum / solves, -0.7 * method.control_order());  // in the mean at most five times too short
}

TEST_P(EveryAdaptiveMethod, BeginsWithAStepThatIsSeldomRejected) {
  int solves = 0, rejected = 0;
  for (const double tol : {1e-3, 1e-4, 1e-6, 1e-8}) {
    for (const Problem& problem : detest()) {
      Plan plan{.method = GetParam(), .steps = tolerance(tol)};
      plan.observer = [&](const StepEvent& first) {
        rejected += first.accepted ? 0 : 1;
        EXPECT_LT(first.error, std::pow(10, GetParam().control_order())) << problem.name << " at " << tol;
        return Next::stop;
      };
      solve(problem, plan, {0.0, detest_last});
      ++solves;
    }
  }
  EXPECT_LE(rejected, 6 * solves / 100);
}

TEST(FirstStep, IsShortWhereARestIsAboutToEnd) {
  // Rates of next to nothing that grow within a small part of the time in which such a rate would change the state.
  const Rate swinging = [](double s, const State&, State& rate) { rate[0] = 1e-10 + std::sin(50 * s); };
  const Rate leaving = [](double, const State& y, State& rate) { rate[0] = 200 * (y[0] - 1) * (2 - y[0]); };
  for (const ButcherTableau& method : adaptive_methods()) {
    const Plan plan{.method = method, .steps = tolerance(1e-6)};
    for (const auto& [rate, start] : {std::pair{swinging, 1.0}, std::pair{leaving, 1 + 1e-9}}) {
      EXPECT_LT(record(rate, {start}, plan, {0, 2}).events.front().step.size(), 0.5) << method.name;
    }
  }
}

TEST(FirstStep, IsFoundForAMethodWhoseErrorConstantVanishes) {
  ButcherTableau method = dopri5();
  method.embedded_order = 3;  // so that the constant is taken at a power of h that the estimate does not have
  ASSERT_LT(method.error_constant(), 1e-12);
  const Recorded recorded = record(pendulum(), {.method = method, .steps = tolerance(1e-6)}, {0, 10});
  EXPECT_TRUE(recorded.events.front().accepted);
}

TEST(FirstStep, IsTheWholeWayWhereTheFieldIsSmooth) {
  const Rate slow = [](double, const State& y, State& rate) { rate = {-0.1 * y[1], 0.1 * y[0]}; };
  const SolveReport report =
      solve(slow, {1, 0}, {.method = dopri5(), .steps = tolerance(1e-4)}, {0, 1}).report;
  EXPECT_EQ(report.accepted, 1);
  EXPECT_EQ(report.rejected, 0);
  EXPECT_EQ(report.evaluations, 8);
}

TEST(FirstStep, DoesNotTrustARateThatHappensNotToChange) {
  // y'' = 0 at the start, where the rate cos(20 s) has its maximum.
  const Rate swinging = [](double s, const State&, State& rate) { rate[0] = std::cos(20 * s); };
  for (const ButcherTableau& method : adaptive_methods()) {
    const Recorded recorded = record(swinging, {0.1}, {.method = method, .steps = tolerance(1e-6)}, {0, 10});
    EXPECT_TRUE(recorded.events.front().accepted) << method.name;
  }
}

TEST(FirstStep, IsFoundWhereTheRateIsZeroAtTheStart) {
  const Rate ramp = [](double s, const State&, State& rate) { rate[0] = s; };
  const Rate rest = [](double, const State&, State& rate) { rate[0] = 0; };
  for (const ButcherTableau& method : adaptive_methods()) {
    const Plan plan{.method = method, .steps = tolerance(1e-6)};
    for (const double start : {0.0, 1.0}) {
      EXPECT_NEAR(solve(ramp, {start}, plan, {0, 1}).saved.back()[0], start + 0.5, 1e-5) << method.name;
      EXPECT_EQ(solve(rest, {start}, plan, {0, 1}).saved.back()[0], start) << method.name;
    }
  }
}

TEST(FirstStep, SavesEvaluationsOfShortSolves) {
  for (const auto& [last, least_saved] : {std::pair{0.1, 0.05}, std::pair{1.0, 0.02}, std::pair{20.0, 0.0}}) {
    for (const ButcherTableau& method : {bosh3(), dopri5(), tsit5(), dop853()}) {
      double ours = 0, as_in_literature = 0;
      for (const double tol : {1e-3, 1e-4, 1e-6}) {
        for (const Problem& problem : detest()) {
          AdaptiveSteps steps = tolerance(tol);
          ours += double(solve(problem, {.method = method, .steps = steps}, {0, last}).report.evaluations);
          steps.first_step = step_of_literature(problem, method, tol, last);
          as_in_literature +=
              1 + double(solve(problem, {.method = method, .steps = steps}, {0, last}).report.evaluations);
        }
      }
      EXPECT_LT(ours, (1 - least_saved) * as_in_literature) << method.name << " to " << last;
    }
  }
}

TEST(LargestStep, IsNeverExceeded) {
  AdaptiveSteps steps = tolerance(1e-3);
  steps.largest_step = 0.1;
  for (double last : {1.0, 1.005, 0.1005, 1.0 / 3}) {
    const Recorded recorded = record(decay(), {.method = dopri5(), .steps = steps}, {0.0, last});
    EXPECT_LE(recorded.outcome.report.largest_step, 0.1 * (1 + 1e-14)) << last;
  }
}

TEST(SmallestStep, IsTriedBeforeTheSolveFails) {
  AdaptiveSteps steps = tolerance(1e-12);
  steps.smallest_step = 0.25;
  double smallest = 1;
  Plan plan{.method = bosh3(), .steps = steps};
  plan.observer = [&](const StepEvent& event) {
    smallest = std::min(smallest, std::abs(event.step.size()));
    return Next::proceed;
  };
  try {
    solve(pendulum(), plan, {0.0, 10.0});
    FAIL() << "must throw";
  } catch (const SolveFailure& failure) {
    EXPECT_EQ(failure.reason, FailureReason::step_too_small);
    EXPECT_EQ(failure.site.step, 0.25);
  }
  EXPECT_GE(smallest, 0.25);
}

TEST(SmallestStep, AllowsTheStepThatEndsAtAStop) {
  AdaptiveSteps steps = tolerance(1e-3);
  steps.smallest_step = 0.25;
  const Outcome outcome = solve(decay(), {.method = dopri5(), .steps = steps}, {0.0, 0.1});
  EXPECT_NEAR(outcome.saved.back()[0], std::exp(-0.1), 1e-3);
}

TEST(StepControl, FollowsSoederlindsFormulaAfterEveryAttempt) {
  for (const StepControl& control : {i_control(), pi_control(), pid_control()}) {
    AdaptiveSteps steps = tolerance(1e-6);
    steps.control = control;
    const auto [I, P, D] = control;
    const double q = dopri5().control_order();
    const Recorded recorded = record(pendulum(), {.method = dopri5(), .steps = steps}, {0.0, 30.0});
    double e1 = 1, e2 = 1;
    bool rejected_before = false;
    for (std::size_t n = 0; n + 2 < recorded.events.size(); ++n) {  // the last step is cut by the end
      const auto& [step, accepted, e, evaluations] = recorded.events[n];
      const double formula =
          std::pow(e, -(I + P + D) / q) * std::pow(e1, (P + 2 * D) / q) * std::pow(e2, -D / q);
      double factor = std::clamp(0.9 * (accepted ? formula : std::pow(e, -1 / q)), 0.2, 10.0);
      if (rejected_before || !accepted) factor = std::min(factor, 1.0);
      EXPECT_NEAR(recorded.events[n + 1].step.size(), step.size() * factor, 1e-12) << "attempt " << n;
      if (accepted) e2 = e1, e1 = std::max(e, 1e-4);
      rejected_before = !accepted;
    }
  }
}

TEST(StepControl, MeetsTheToleranceWhicheverIsChosen) {
  for (const StepControl& control : {i_control(), pi_control(), pid_control()}) {
    for (const ButcherTableau& method : {bosh3(), dopri5(), tsit5(), dop853()}) {
      for (double value : {1e-3, 1e-5, 1e-7}) {
        AdaptiveSteps steps = tolerance(value);
        steps.control = control;
        for (const Problem& problem : {modulated_growth(), cubic_decay(), pendulum()}) {
          const Outcome outcome = solve(problem, {.method = method, .steps = steps}, {0.0, 10.0});
          EXPECT_LT(mixed_error(outcome.saved.back(), problem.exact(10)), 50 * value)
              << problem.name << ' ' << method.name;
        }
      }
    }
  }
}

TEST(StepControl, OfPiOrPidKindRejectsLessThanHalfAsMuchOnARelaxationOscillator) {
  const Rate van_der_pol = [](double, const State& y, State& rate) {
    rate = {y[1], 20 * (1 - y[0] * y[0]) * y[1] - y[0]};
  };
  const auto rejected = [&](const StepControl& control) {
    AdaptiveSteps steps = tolerance(1e-4);
    steps.control = control;
    return solve(van_der_pol, {2.0, 0.0}, {.method = dopri5(), .steps = steps}, {0.0, 20.0}).report.rejected;
  };
  EXPECT_LT(2 * rejected(pi_control()), rejected(i_control()));
  EXPECT_LT(2 * rejected(pid_control()), rejected(i_control()));
}

// scipy 1.17.1, solve_ivp(f, (0, 20), y0, method=..., rtol=tol, atol=tol).nfev. It has the same coefficients,
// norm and I control, a first step as in the literature, which is given here, and does not stretch a step to the end.
struct Cost {
  ButcherTableau method;
  double tolerance;
  std::map<std::string, int> evaluations;
};

TEST(Evaluations, AreAsManyAsScipysFromTheSameFirstStep) {
  const std::vector<Cost> costs = {
      {bosh3(),
       1e-3,
       {{"A1", 53}, {"A3", 206}, {"B1", 347}, {"B4", 212}, {"D1", 170}, {"D5", 539}, {"E2", 383}}},
      {bosh3(), 1e-6, {{"A1", 275}, {"A3", 1493}, {"B1", 2405}, {"B4", 1958}, {"D1", 1487}, {"E2", 2837}}},
      {dopri5(),
       1e-3,
       {{"A1", 74}, {"A3", 128}, {"B1", 284}, {"B4", 170}, {"D1", 188}, {"D5", 458}, {"E2", 386}}},
      {dopri5(),
       1e-6,
       {{"A1", 164}, {"A3", 482}, {"B1", 866}, {"B4", 542}, {"D1", 428}, {"D5", 1352}, {"E2", 1142}}},
      {dopri5(), 1e-9, {{"A1", 530}, {"A3", 1502}, {"B1", 2768}, {"B4", 2102}, {"D1", 1700}, {"D5", 3602}}},
      {dop853(),
       1e-3,
       {{"A1", 86}, {"A3", 254}, {"B1", 446}, {"B4", 206}, {"D1", 194}, {"D5", 806}, {"E2", 470}}},
      {dop853(),
       1e-6,
       {{"A1", 146}, {"A3", 446}, {"B1", 722}, {"B4", 350}, {"D1", 362}, {"D5", 1466}, {"E2", 1094}}},
      {dop853(), 1e-9, {{"A1", 266}, {"A3", 998}, {"B1", 1658}, {"B4", 794}, {"D1", 746}, {"D5", 3062}}}};
  for (const Cost& cost : costs) {
    for (const Problem& problem : detest()) {
      if (!cost.evaluations.contains(problem.name)) continue;
      AdaptiveSteps steps = tolerance(cost.tolerance);
      steps.first_step = step_of_literature(problem, cost.method, cost.tolerance, 20);
      const Plan plan{.method = cost.method, .steps = steps};
      const double probe = 1;  // the evaluation that scipy finds its first step with
      const auto ours = probe + double(solve(problem, plan, {0.0, 20.0}).report.evaluations);
      const double theirs = cost.evaluations.at(problem.name);
      EXPECT_NEAR(ours, theirs, 0.01 * theirs + double(cost.method.stages()))
          << problem.name << ' ' << cost.method.name << " at " << cost.tolerance;
    }
  }
}

TEST(CombinedError, IsThatOfDop853) {
  EXPECT_EQ(combined_error(0.5, 0), 0.5);
  EXPECT_EQ(combined_error(0, 3), 0);
  EXPECT_DOUBLE_EQ(combined_error(0.3, 4), 0.09 / 0.5);
  EXPECT_TRUE(std::isinf(combined_error(1, std::numeric_limits<double>::infinity())));
  EXPECT_GT(combined_error(1e200, 1e200), 1e199);  // no overflow on the way
}

}  // namespace
}  // namespace fathom::ode
