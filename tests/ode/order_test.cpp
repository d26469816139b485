// The order of every method by experiment, forwards and backwards in depth: gates, Exactness 2.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "support/plain/problems.hpp"

namespace fathom::ode {
namespace {

using namespace fathom::testing;

constexpr double below = 0.15, above = 0.3;  // the gate: slope in [p - 0.15, p + 0.3]
constexpr double dense_below = 0.25;  // fractions of the step vary with its size, which blurs the slope

/// Where a method's error follows its leading term and still stands clear of rounding.
struct Experiment {
  double span = 2;
  int saved_intervals = 8;  // the error is a sum over these, so that no zero crossing of one spoils the fit
  std::vector<int> counts = {};
};

Experiment experiment(const ButcherTableau& method, const Problem& problem) {
  if (method.order <= 2) return {.counts = {128, 256, 512, 1024}};
  if (method.order == 3) return {.counts = {64, 128, 256, 512}};
  if (method.name == "rk4_38") return {.counts = {32, 64, 96, 128}};
  if (method.order == 4) return {.counts = {64, 128, 192, 256}};
  if (method.name == "cash_karp54") return {.counts = {8, 16, 24, 32}};
  if (method.name == "dopri5") return {.counts = {16, 32, 48, 64}};
  if (method.name == "tsit5") return {.counts = {32, 64, 96}};
  // dop853 reaches rounding so soon that each problem needs its own window.
  if (problem.name == "ModulatedGrowth")
    return {.span = 6, .saved_intervals = 4, .counts = {16, 20, 24, 28, 32}};
  if (problem.name == "Pendulum") return {.span = 4, .saved_intervals = 4, .counts = {16, 20, 24, 28, 32}};
  return {.span = 1.5, .saved_intervals = 1, .counts = {10, 12, 14, 16}};
}

enum class Way { forwards, backwards };

double total_error(const Problem& problem, const ButcherTableau& method, const std::vector<double>& depths,
                   int count) {
  // The pendulum's reference is a solve of its own: once a depth, not once a step size.
  static std::map<std::pair<std::string, double>, State> known;
  const Outcome outcome = solve(problem, {.method = method, .steps = FixedSteps{.count = count}}, depths);
  double total = 0;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    State& exact = known[{problem.name, depths[i]}];
    if (exact.empty()) exact = problem.exact(depths[i]);
    for (std::size_t n = 0; n < exact.size(); ++n) total += std::abs(outcome.saved[i][n] - exact[n]);
  }
  return total / double(depths.size() - 1);
}

double slope(const Problem& problem, const ButcherTableau& method, const Experiment& trial, Way way,
             int saved_intervals) {
  std::vector<double> depths = evenly(0, trial.span, saved_intervals);
  if (way == Way::backwards) std::reverse(depths.begin(), depths.end());
  std::vector<double> sizes, errors;
  for (int count : trial.counts) {
    sizes.push_back(trial.span / count);
    errors.push_back(total_error(problem, method, depths, count));
  }
  return fitted_slope(sizes, errors);
}

double slope(const Problem& problem, const ButcherTableau& method, Way way) {
  const Experiment trial = experiment(method, problem);
  return slope(problem, method, trial, way, trial.saved_intervals);
}

void expect_order(const Problem& problem, const ButcherTableau& method) {
  for (Way way : {Way::forwards, Way::backwards}) {
    const double measured = slope(problem, method, way);
    const char* direction = way == Way::forwards ? "forwards" : "backwards";
    EXPECT_GE(measured, method.order - below) << problem.name << ' ' << direction;
    EXPECT_LE(measured, method.order + above) << problem.name << ' ' << direction;
  }
}

/// On y' = -y^3 / 2 the principal error term of these four nearly cancels, so that down to rounding their error falls
/// faster than their order says (5.7 to 6.4 instead of 5; 4.8 to 5.2 instead of 4): only the lower bound can be asked.
bool cancels_on_cubic_decay(const ButcherTableau& method) {
  return method.name == "rk4_38" || method.name == "cash_karp54" || method.name == "dopri5" ||
         method.name == "tsit5";
}

class EveryMethod : public ::testing::TestWithParam<ButcherTableau> {};
const auto method_name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, ::testing::ValuesIn(all_methods()), method_name);

TEST_P(EveryMethod, KeepsItsOrderWhenTheFieldDependsOnDepth) { expect_order(modulated_growth(), GetParam()); }

TEST_P(EveryMethod, KeepsItsOrderOnAnAutonomousSystem) { expect_order(pendulum(), GetParam()); }

TEST_P(EveryMethod, KeepsItsOrderOnACubicField) {
  const ButcherTableau method = GetParam();
  if (!cancels_on_cubic_decay(method)) return expect_order(cubic_decay(), method);
  const Experiment wide{.span = 5, .counts = {16, 32, 48, 64}};
  for (Way way : {Way::forwards, Way::backwards})
    EXPECT_GE(slope(cubic_decay(), method, wide, way, wide.saved_intervals), method.order - below);
}

// An interpolant of order q is off by h^(q + 1) inside a step, so the saved states have order min(p, q + 1).
TEST_P(EveryMethod, KeepsItsOrderBetweenTheSteps) {
  const ButcherTableau method = GetParam();
  const int order = std::min(method.order, method.dense_order + 1);
  ASSERT_GE(order, method.order - 1);
  for (Way way : {Way::forwards, Way::backwards}) {
    for (const Problem& problem : {modulated_growth(), pendulum()}) {
      EXPECT_GE(slope(problem, method, experiment(method, problem), way, 97), order - dense_below)
          << problem.name;
    }
  }
}

// torchdyn 1.0.6 falls to first order here: its stages do not see their own depths.
TEST(Rk4, IsFourthOrderWhenTheFieldDependsOnDepth) {
  for (const ButcherTableau& method : {rk4(), rk4_38()}) {
    EXPECT_NEAR(slope(modulated_growth(), method, Way::forwards), 4, below) << method.name;
    EXPECT_NEAR(slope(modulated_growth(), method, Way::backwards), 4, below) << method.name;
  }
}

// torchdiffeq 0.2.5 ships a tsit5 that is of fourth order.
TEST(Tsit5, IsFifthOrder) {
  for (const Problem& problem : {modulated_growth(), pendulum()}) {
    EXPECT_GE(slope(problem, tsit5(), Way::forwards), 5 - below) << problem.name;
    EXPECT_GE(slope(problem, tsit5(), Way::backwards), 5 - below) << problem.name;
  }
}

}  // namespace
}  // namespace fathom::ode
