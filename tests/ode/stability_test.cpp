// Steps that stability limits are told from steps that the tolerance limits, without an evaluation more.
#include "fathom/ode/stability.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "support/plain/bare_engine.hpp"
#include "support/plain/detest.hpp"

namespace fathom::ode {
namespace {

using namespace fathom::testing;

std::vector<ButcherTableau> methods_with_a_gauge() {
  std::vector<ButcherTableau> methods = all_methods();
  std::erase_if(methods, [](const ButcherTableau& method) { return !stability_gauge(method); });
  return methods;
}

class EveryGaugedMethod : public ::testing::TestWithParam<ButcherTableau> {};
class EveryMethod : public ::testing::TestWithParam<ButcherTableau> {};
const auto method_name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Methods, EveryGaugedMethod, ::testing::ValuesIn(methods_with_a_gauge()),
                         method_name);
INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, ::testing::ValuesIn(all_methods()), method_name);

Rate van_der_pol(double mu) {
  return [mu](double, const State& y, State& rate) {
    rate[0] = y[1];
    rate[1] = mu * (1 - y[0] * y[0]) * y[1] - y[0];
  };
}

/// z' = -1000 (z - cos s): a fast approach to a slow solution.
void approach(double s, const State& y, State& rate) { rate[0] = -1000 * (y[0] - std::cos(s)); }

/// Both components turn once in 2 pi / w.
Rate oscillator(double w) {
  return [w](double, const State& y, State& rate) { rate = {w * y[1], -w * y[0]}; };
}

struct StiffProblem {
  const char* name;
  Rate rate;
  State start;
  double last;
};
const std::vector<StiffProblem> stiff_problems = {{"van der Pol, mu = 50", van_der_pol(50), {2, 0}, 30},
                                                  {"van der Pol, mu = 1000", van_der_pol(1000), {2, 0}, 5},
                                                  {"approach", approach, {0}, 3}};

TEST_P(EveryMethod, IsStableUpToItsBoundAndNotBeyond) {
  const double bound = *stability_bound(GetParam());
  const auto after_a_step = [&](double size) {
    const Plan plan{.method = GetParam(), .steps = FixedSteps{.count = 1}};
    return std::abs(solve(decay().rate, {1.0}, plan, {0, size}).saved.back()[0]);
  };
  for (const double part : {0.1, 0.5, 0.9, 0.999}) EXPECT_LE(after_a_step(part * bound), 1) << part;
  EXPECT_GT(after_a_step(1.001 * bound), 1);
}

TEST(StabilityBound, HasTheValuesOfTheLiterature) {
  EXPECT_NEAR(*stability_bound(euler()), 2, 1e-5);
  EXPECT_NEAR(*stability_bound(rk4()), 2.7853, 1e-4);
  EXPECT_NEAR(*stability_bound(dopri5()), 3.3066, 1e-4);
}

TEST(StabilityGauge, IsThereForTheMethodsWithTwoStagesAtOneDepth) {
  std::string named;
  for (const ButcherTableau& method : methods_with_a_gauge()) named += method.name + " ";
  EXPECT_EQ(named, "heun2 fehlberg45 cash_karp54 dopri5 tsit5 dop853 ");
}

TEST_P(EveryGaugedMethod, MeasuresTheSlopeOfALinearFieldExactly) {
  const Rate linear = [](double s, const State& y, State& rate) { rate[0] = -7 * y[0] + std::sin(s); };
  const StabilityGauge gauge = *stability_gauge(GetParam());
  PlainEngine engine(linear, {1.0}, GetParam());
  engine.attempt({.start = 0, .end = 0.2});
  engine.accept();
  EXPECT_NEAR(engine.rate_norm(gauge.rates) / engine.rate_norm(gauge.arguments), 0.2 * 7, 1e-10);
}

TEST_P(EveryGaugedMethod, TellsOfStiffnessInSolvesThatWork) {
  for (const StiffProblem& problem : stiff_problems) {
    for (const double loose : {1e-1, 1e-2, 1e-3}) {
      const SolveReport report = solve(problem.rate, problem.start,
                                       {.method = GetParam(), .steps = tolerance(loose)}, {0, problem.last})
                                     .report;
      ASSERT_TRUE(report.limits.stability_from) << problem.name << ", " << loose << ": " << report.brief();
      EXPECT_LT(*report.limits.stability_from, 0.1 * problem.last) << problem.name;
      EXPECT_EQ(report.limits.steps, StepLimit::stability);
      EXPECT_NE(report.brief().find("limited by stability from depth 0."), std::string::npos);
      EXPECT_NE(report.limits.advice().find("loosening the tolerance saves nothing"), std::string::npos);
    }
  }
}

TEST(Stiffness, IsWhereLooserTolerancesSaveNothing) {
  const auto evaluations = [](double loose) {
    return solve(van_der_pol(50), {2, 0}, {.method = dopri5(), .steps = tolerance(loose)}, {0, 60})
        .report.evaluations;
  };
  EXPECT_EQ(evaluations(1e-1), 12488);
  EXPECT_EQ(evaluations(1e-4), 12542);
}

TEST(Stiffness, CostsAThirdLessWithBosh3AsTheAdviceSays) {
  const auto evaluations = [](const ButcherTableau& method) {
    return solve(van_der_pol(50), {2, 0}, {.method = method, .steps = tolerance(1e-3)}, {0, 60})
        .report.evaluations;
  };
  EXPECT_LT(double(evaluations(bosh3())), 0.67 * double(evaluations(dopri5())));
}

TEST_P(EveryGaugedMethod, TakesNoProblemOfDetestForAStiffOne) {
  for (const Problem& problem : detest()) {
    for (const double tight : {1e-3, 1e-5, 1e-7}) {
      if (GetParam().order < 3 && tight < 1e-5) continue;
      const Plan plan{.method = GetParam(), .steps = tolerance(tight)};
      const SolveReport report = solve(problem.rate, problem.start, plan, {0, detest_last}).report;
      EXPECT_FALSE(report.limits.stability_from) << problem.name << ", " << tight << ": " << report.brief();
      EXPECT_NE(report.limits.steps, StepLimit::stability) << problem.name;
    }
  }
}

TEST_P(EveryGaugedMethod, TakesNoFastOscillatorForAStiffField) {
  for (const double w : {1.0, 100.0, 1e4}) {
    for (const double tight : {1e-2, 1e-4, 1e-6}) {
      if (GetParam().order < 3 && tight < 1e-4) continue;
      const Plan plan{.method = GetParam(), .steps = tolerance(tight)};
      const double last = (GetParam().order < 3 ? 20 : 100) / w;
      const SolveReport report = solve(oscillator(w), {100, 0}, plan, {0, last}).report;
      EXPECT_FALSE(report.limits.stability_from) << w << ", " << tight << ": " << report.brief();
    }
  }
  // Steps are short here and there, where the tolerance wants them so.
  const Plan plan{.method = GetParam(), .steps = tolerance(GetParam().order < 3 ? 1e-3 : 1e-5)};
  EXPECT_FALSE(solve(van_der_pol(1), {2, 0}, plan, {0, 50}).report.limits.stability_from);
  const Rate driven = [](double s, const State&, State& rate) { rate[0] = 50 * std::cos(50 * s); };
  EXPECT_FALSE(solve(driven, {0}, plan, {0, 20}).report.limits.stability_from);
}

TEST(LargestStep, ThatIsFarBelowTheToleranceIsNotTakenForStability) {
  AdaptiveSteps steps = tolerance(1e-2);
  steps.largest_step = 1e-3;
  const SolveReport report =
      solve(pendulum().rate, {1, 0}, {.method = dopri5(), .steps = steps}, {0, 1}).report;
  EXPECT_FALSE(report.limits.stability_from);
}

static_assert(Measuring<PlainEngine> && !Measuring<BareEngine<PlainEngine>>);

TEST_P(EveryGaugedMethod, ChangesNoBitAndNoCountOfASolveThatItWatches) {
  for (const StiffProblem& problem : stiff_problems) {
    const AdaptiveSteps steps = tolerance(1e-3);
    const Plan plan{.method = GetParam(), .steps = steps, .break_points = {problem.last / 3}};
    PlainEngine watched(problem.rate, problem.start, GetParam(), steps), alone(watched);
    BareEngine<PlainEngine> without{alone};
    const std::vector<double> depths = evenly(0, problem.last, 50);
    const SolveReport report = integrate(watched, plan, depths), bare = integrate(without, plan, depths);
    EXPECT_TRUE(report.limits.stability_from);
    EXPECT_FALSE(bare.limits.stability_from);
    EXPECT_EQ(watched.saved(), alone.saved()) << problem.name;
    EXPECT_EQ(report.evaluations - report.scouting, bare.evaluations) << problem.name;
    EXPECT_EQ(report.accepted, bare.accepted);
  }
}

TEST(Stiffness, IsToldOnceTheSolveHasComeToIt) {
  // Slow up to depth 1, then pulled towards 0 a thousand times as fast.
  const Rate late = [](double s, const State& y, State& rate) {
    rate[0] = (s < 1 ? -1 : -1000) * (y[0] - std::cos(s));
  };
  const Plan plan{.method = dopri5(), .steps = tolerance(1e-4), .break_points = {1.0}};
  const SolveReport report = solve(late, {1}, plan, {0, 2}).report;
  ASSERT_TRUE(report.limits.stability_from);
  EXPECT_NEAR(*report.limits.stability_from, 1, 0.1);
}

TEST(Stiffness, IsToldOfFixedStepsByNothingButTheirFailure) {
  const SolveReport report =
      solve(approach, {0}, {.method = dopri5(), .steps = FixedSteps{.count = 1000}}, {0, 1}).report;
  EXPECT_EQ(report.limits.steps, StepLimit::grid);
  EXPECT_TRUE(report.limits.advice().empty());
}

TEST(MeanOfReports, KeepsTheLimitsThatOneSolveMet) {
  SolveReport slow, fine, free;
  slow.limits = {.steps = StepLimit::stability, .stability_from = 0.5};
  fine.limits = {.resolution = 1e-7};
  for (const auto& reports : {std::vector{free, slow, fine}, std::vector{fine, free, slow}}) {
    const Limits limits = mean_of(reports).limits;
    EXPECT_EQ(limits.steps, StepLimit::stability);
    EXPECT_EQ(limits.stability_from, 0.5);
    EXPECT_EQ(limits.resolution, 1e-7);
  }
}

TEST(Resolution, ThatTheToleranceIsBelowIsToldInReports) {
  AdaptiveSteps steps{.relative_tolerance = 1e-17, .absolute_tolerance = 1e-17};
  const SolveReport report = solve(modulated_growth(), {.method = dop853(), .steps = steps}, {0, 0.1}).report;
  EXPECT_EQ(report.limits.resolution, std::numeric_limits<double>::epsilon());
  EXPECT_NE(report.brief().find("tolerance below the resolution of the state's type"), std::string::npos);
  EXPECT_EQ(report.limits.advice(),
            "the tolerance is below the resolution of the state's type, 2.2e-16: raise `relative_tolerance`");

  steps.absolute_tolerance = 1e-6;  // it alone rules, and can be met
  EXPECT_EQ(
      solve(modulated_growth(), {.method = dop853(), .steps = steps}, {0, 0.1}).report.limits.resolution, 0);
}

}  // namespace
}  // namespace fathom::ode
