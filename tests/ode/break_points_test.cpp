// Break points: the solver lands on them and each side sees only its own piece of the field.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/plain/problems.hpp"

namespace fathom::ode {
namespace {

using namespace fathom::testing;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// y' = r_i y on piece i, NaN on a break point itself, and a record of every depth at which it was asked.
struct Pieces {
  std::vector<double> breaks = {};  // rising
  std::vector<double> rates = {};   // one more than breaks
  std::vector<double> seen = {};

  double rate_at(double s) const {
    const auto next = std::lower_bound(breaks.begin(), breaks.end(), s);
    if (next != breaks.end() && *next == s) return not_a_number;
    return rates[std::size_t(next - breaks.begin())];
  }

  Rate field() {
    return [this](double s, const State& y, State& rate) {
      seen.push_back(s);
      rate[0] = rate_at(s) * y[0];
    };
  }

  /// The exponent of the growth from `first` to `last`.
  double growth(double first, double last) const {
    std::vector<double> stops = breaks_between(breaks, first, last);
    stops.push_back(last);
    double sum = 0, from = first;
    for (double stop : stops) {
      if (stop != from) sum += rate_at((from + stop) / 2) * (stop - from);
      from = stop;
    }
    return sum;
  }
};

Pieces one_jump() { return {.breaks = {1.0}, .rates = {0.7, -1.3}}; }

struct Watched {
  Outcome outcome = {};
  std::vector<Step> steps = {};
};

/// Solves from 1 and checks that each attempt asked for depths inside its own step only (the first, which is preceded by
/// the choice of its size, inside its own piece).
Watched watch(Pieces& pieces, Plan plan, const std::vector<double>& depths) {
  Watched watched;
  plan.break_points = plan.break_points.empty() ? pieces.breaks : plan.break_points;
  plan.observer = [&](const StepEvent& event) {
    std::vector<double> ahead = breaks_between(pieces.breaks, depths.front(), depths.back());
    std::erase(ahead, depths.front());
    ahead.push_back(depths.back());
    const bool is_first = event.step.start == depths.front();
    const auto [low, high] = std::minmax(event.step.start, is_first ? ahead.front() : event.step.end);
    for (double s : pieces.seen) EXPECT_TRUE(low <= s && s <= high) << s << " in " << low << ".." << high;
    pieces.seen.clear();
    if (event.accepted) watched.steps.push_back(event.step);
    return Next::proceed;
  };
  watched.outcome = solve(pieces.field(), {1.0}, plan, depths);
  return watched;
}

void expect_landing(const Watched& watched, double depth) {
  const auto ends = [&](const Step& step) { return step.end == depth; };
  const auto starts = [&](const Step& step) { return step.start == depth; };
  EXPECT_EQ(std::count_if(watched.steps.begin(), watched.steps.end(), ends), 1) << "end at " << depth;
  EXPECT_EQ(std::count_if(watched.steps.begin(), watched.steps.end(), starts), 1) << "start at " << depth;
}

const std::vector<ButcherTableau> adaptive = {heun2(),       bosh3(),  fehlberg45(),
                                              cash_karp54(), dopri5(), dop853()};

class EveryAdaptiveMethod : public ::testing::TestWithParam<ButcherTableau> {};
class EveryMethod : public ::testing::TestWithParam<ButcherTableau> {};
const auto method_name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Methods, EveryAdaptiveMethod, ::testing::ValuesIn(adaptive), method_name);
INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, ::testing::ValuesIn(all_methods()), method_name);

TEST_P(EveryAdaptiveMethod, LandsOnABreakPointAndSeesBothSidesOneSidedly) {
  for (const auto& depths : {std::vector{0.0, 2.0}, std::vector{2.0, 0.0}}) {
    Pieces pieces = one_jump();
    const Watched watched = watch(pieces, {.method = GetParam(), .steps = tolerance(1e-6)}, depths);
    expect_landing(watched, 1.0);
    EXPECT_EQ(watched.outcome.report.scouting, 0);  // a step cut short is no sign of a pole
    const double exact = std::exp(pieces.growth(depths.front(), depths.back()));
    EXPECT_NEAR(watched.outcome.saved.back()[0], exact, 5e-5);
  }
}

TEST_P(EveryMethod, LandsOnABreakPointWithFixedSteps) {
  for (const auto& depths : {std::vector{0.0, 2.0}, std::vector{2.0, 0.0}}) {
    Pieces pieces = one_jump();
    // 25 steps: the break point lies inside the thirteenth.
    const Watched watched = watch(pieces, {.method = GetParam(), .steps = FixedSteps{.count = 25}}, depths);
    expect_landing(watched, 1.0);
    EXPECT_EQ(watched.outcome.report.accepted, 26);
    EXPECT_TRUE(std::isfinite(watched.outcome.saved.back()[0]));
  }
}

TEST_P(EveryMethod, IntegratesAPiecewiseConstantFieldWithoutError) {
  const Rate stairs = [](double s, const State&, State& rate) { rate[0] = s < 0.5 ? 3 : -1; };
  for (const FixedSteps& steps : {FixedSteps{.count = 2}, FixedSteps{.count = 7}}) {
    const Plan plan{.method = GetParam(), .steps = steps, .break_points = {0.5}};
    const Outcome outcome = solve(stairs, {0.0}, plan, {0.0, 0.25, 0.5, 0.75, 1.0});
    EXPECT_NEAR(outcome.saved[1][0], 0.75, 1e-14);
    EXPECT_NEAR(outcome.saved[2][0], 1.5, 1e-14);
    EXPECT_NEAR(outcome.saved[3][0], 1.25, 1e-14);
    EXPECT_NEAR(outcome.saved[4][0], 1.0, 1e-14);
  }
}

TEST(BreakPoints, DoNotCarryTheRateOfOnePieceIntoTheNext) {
  Pieces pieces = one_jump();
  const Plan plan{.method = dopri5(), .steps = FixedSteps{.count = 2}};
  const Watched watched = watch(pieces, plan, {0.0, 2.0});
  // Two steps of six, and the first rate of each: the rate at the end of the first is of the wrong piece.
  EXPECT_EQ(watched.outcome.report.evaluations, 14);
}

TEST(BreakPoints, OnTheFirstDepthAreSeenFromInside) {
  for (const double last : {2.0, 0.0}) {
    for (const Steps& steps : {Steps(tolerance(1e-8)), Steps(FixedSteps{.count = 40})}) {
      Pieces pieces = one_jump();
      const Watched watched = watch(pieces, {.method = dopri5(), .steps = steps}, {1.0, last});
      EXPECT_NEAR(watched.outcome.saved.back()[0], std::exp(pieces.growth(1, last)), 1e-7);
    }
  }
}

TEST(BreakPoints, OnTheLastDepthAreSeenFromInside) {
  for (const double first : {2.0, 0.0}) {
    for (const Steps& steps : {Steps(tolerance(1e-8)), Steps(FixedSteps{.count = 40})}) {
      Pieces pieces = one_jump();
      const Watched watched = watch(pieces, {.method = dopri5(), .steps = steps}, {first, 1.0});
      EXPECT_NEAR(watched.outcome.saved.back()[0], std::exp(pieces.growth(first, 1)), 1e-7);
    }
  }
}

TEST(BreakPoints, OnBothEndsLeaveTheFieldUnseenThere) {
  Pieces pieces{.breaks = {0.0, 1.0}, .rates = {9, 0.5, 9}};
  const Watched watched = watch(pieces, {.method = dopri5(), .steps = tolerance(1e-8)}, {0.0, 1.0});
  EXPECT_NEAR(watched.outcome.saved.back()[0], std::exp(0.5), 1e-7);
}

TEST(BreakPoints, MayBeSavedDepths) {
  for (const ButcherTableau& method : {dopri5(), cash_karp54(), dop853()}) {
    Pieces pieces = one_jump();
    const Plan plan{.method = method, .steps = tolerance(1e-8)};
    const Watched watched = watch(pieces, plan, {0.0, 0.5, 1.0, 1.0, 1.5, 2.0});
    for (const auto& [place, s] : {std::pair{1, 0.5}, {2, 1.0}, {3, 1.0}, {4, 1.5}, {5, 2.0}}) {
      EXPECT_NEAR(watched.outcome.saved[std::size_t(place)][0], std::exp(pieces.growth(0, s)), 2e-6) << s;
    }
  }
}

TEST(BreakPoints, MayBeManyAndAllAreLandedOn) {
  for (const auto& depths : {std::vector{0.0, 3.0}, std::vector{3.0, 0.0}}) {
    Pieces pieces{.breaks = {0.1, 0.2, 0.21, 1.0, 1.0 + 1e-9, 1.7, 2.9999},
                  .rates = {1, -2, 3, -1, 0.5, 2, -1, 1}};
    const Watched watched = watch(pieces, {.method = dopri5(), .steps = tolerance(1e-9)}, depths);
    for (double depth : pieces.breaks) expect_landing(watched, depth);
    const double exact = std::exp(pieces.growth(depths.front(), depths.back()));
    EXPECT_NEAR(watched.outcome.saved.back()[0], exact, 1e-7 * exact);
  }
}

TEST(BreakPoints, MayComeUnsortedRepeatedAndFromOutside) {
  Pieces tidy{.breaks = {0.5, 1.5}, .rates = {1, -1, 1}}, untidy = tidy;
  const Plan sorted{.method = dopri5(), .steps = tolerance(1e-6)};
  const Plan unsorted{
      .method = dopri5(), .steps = tolerance(1e-6), .break_points = {1.5, -4, 0.5, 1.5, 0.5, 77}};
  const Watched expected = watch(tidy, sorted, {0.0, 2.0}), given = watch(untidy, unsorted, {0.0, 2.0});
  EXPECT_EQ(given.outcome.saved, expected.outcome.saved);
  EXPECT_EQ(given.outcome.report.evaluations, expected.outcome.report.evaluations);
}

TEST(BreakPoints, ThatAreNamedSaveEvaluationsAndKeepTheTolerance) {
  const Rate jump = [](double s, const State& y, State& rate) { rate[0] = (s < 1 ? 1 : -20) * y[0] + s; };
  const Plan unaware{.method = dopri5(), .steps = tolerance(1e-8)};
  Plan aware = unaware;
  aware.break_points = {1.0};
  const Outcome without = solve(jump, {1.0}, unaware, {0.0, 2.0}),
                with = solve(jump, {1.0}, aware, {0.0, 2.0});
  EXPECT_LT(with.report.evaluations, without.report.evaluations);
  EXPECT_LT(with.report.rejected, without.report.rejected);
}

TEST(BreakPoints, DoNotShrinkTheStepsThatFollow) {
  const Plan plain{.method = dopri5(), .steps = tolerance(1e-6)};
  Plan broken = plain;
  broken.break_points = {5.0};
  const Outcome smooth = solve(pendulum(), plain, {0.0, 10.0}), cut = solve(pendulum(), broken, {0.0, 10.0});
  EXPECT_LE(cut.report.accepted, smooth.report.accepted + 2);
}

TEST(BreakPoints, ThatAreNotANumberAreAnError) {
  for (const Steps& steps : {Steps(AdaptiveSteps{}), Steps(FixedSteps{.count = 3})}) {
    const Plan plan{.method = dopri5(), .steps = steps, .break_points = {0.5, not_a_number}};
    EXPECT_NE(message_of([&] {
                solve(decay(), plan, {0.0, 1.0});
              }).find("`break_points` must be numbers, got nan"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace fathom::ode
