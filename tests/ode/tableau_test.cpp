// Every method is what it claims to be: gates, Exactness 1.
#include "fathom/ode/tableau.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fathom/ode/methods.hpp"
#include "fathom/ode/order_conditions.hpp"
#include "fathom/support/error.hpp"
#include "support/plain/problems.hpp"

namespace fathom::ode {
namespace {

constexpr double condition_tolerance = 1e-13;
constexpr double dense_tolerance = 2e-13;  // dop853's interpolant has coefficients of 1e3
constexpr double clearly_violated = 1e-5;  // dop853 is off by 2.7e-5 at order 9, all others by more

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size());
  std::transform(a.begin(), a.end(), b.begin(), result.begin(), std::minus<>());
  return result;
}

/// The largest violation through `order`, and the one just above it.
double residual_through(const ButcherTableau& method, const std::vector<double>& weights, int order,
                        double fraction = 1) {
  double worst = 0;
  for (int nodes = 1; nodes <= order; ++nodes)
    worst = std::max(worst, order_residual(method, weights, nodes, fraction));
  return worst;
}

std::vector<ButcherTableau> adaptive_methods() {
  std::vector<ButcherTableau> methods = all_methods();
  std::erase_if(methods, [](const ButcherTableau& method) { return !method.adaptive(); });
  return methods;
}

class EveryMethod : public ::testing::TestWithParam<ButcherTableau> {};
class EveryAdaptiveMethod : public ::testing::TestWithParam<ButcherTableau> {};
const auto method_name = [](const auto& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, ::testing::ValuesIn(all_methods()), method_name);
INSTANTIATE_TEST_SUITE_P(Methods, EveryAdaptiveMethod, ::testing::ValuesIn(adaptive_methods()), method_name);

// Where coefficients are large (dop853 has 43), rounding them to double alone moves the sum by their size times 1e-16,
// so the gate's 1e-15 is relative to the sum of |a| there.
TEST_P(EveryMethod, HasRowsThatSumToTheirAbscissa) {
  const ButcherTableau method = GetParam();
  for (std::size_t i = 0; i < method.c.size(); ++i) {
    long double sum = 0, magnitude = 1;
    for (double weight : method.a[i]) sum += weight, magnitude += std::abs(weight);
    EXPECT_LT(std::abs(sum - method.c[i]), 1e-15L * magnitude) << "row " << i;
  }
}

TEST_P(EveryMethod, HasTheOrderItClaimsByRootedTrees) {
  const ButcherTableau method = GetParam();
  EXPECT_LT(residual_through(method, method.b, method.order), condition_tolerance);
}

TEST_P(EveryMethod, HasNoHigherOrderThanItClaims) {
  const ButcherTableau method = GetParam();
  EXPECT_GT(order_residual(method, method.b, method.order + 1), clearly_violated);
}

TEST_P(EveryAdaptiveMethod, HasACompanionOfTheOrderItClaims) {
  const ButcherTableau method = GetParam();
  const std::vector<double> companion = difference(method.b, method.error);
  EXPECT_LT(residual_through(method, companion, method.embedded_order), condition_tolerance);
  EXPECT_GT(order_residual(method, companion, method.embedded_order + 1), clearly_violated);
}

TEST_P(EveryAdaptiveMethod, HasErrorWeightsThatSumToZero) {
  const ButcherTableau method = GetParam();
  EXPECT_NEAR(std::accumulate(method.error.begin(), method.error.end(), 0.0), 0.0, 1e-15);
}

TEST_P(EveryMethod, HasDenseOutputOfTheOrderItClaims) {
  const ButcherTableau method = GetParam();
  for (int tenth = 0; tenth <= 10; ++tenth) {
    const double t = tenth / 10.0;
    EXPECT_LT(residual_through(method, method.dense_weights(t), method.dense_order, t), dense_tolerance)
        << "at " << t;
  }
}

TEST_P(EveryMethod, HasDenseOutputOfNoHigherOrderThanItClaims) {
  const ButcherTableau method = GetParam();
  double worst = 0;
  for (double t : {0.2, 0.4, 0.6, 0.8})
    worst = std::max(worst, order_residual(method, method.dense_weights(t), method.dense_order + 1, t));
  EXPECT_GT(worst, clearly_violated);
}

TEST_P(EveryMethod, HasDenseOutputThatJoinsTheStatesAtBothEnds) {
  const ButcherTableau method = GetParam();
  const std::vector<double> at_start = method.dense_weights(0), at_end = method.dense_weights(1);
  for (std::size_t i = 0; i < method.c.size(); ++i) {
    EXPECT_EQ(at_start[i], 0) << "stage " << i;
    EXPECT_NEAR(at_end[i], i < method.stages() ? method.b[i] : 0, dense_tolerance) << "stage " << i;
  }
}

TEST_P(EveryMethod, HasDenseOutputThatJoinsTheRatesAtBothEnds) {
  const ButcherTableau method = GetParam();
  const std::vector<double> at_start = method.dense_weight_rates(0), at_end = method.dense_weight_rates(1);
  ASSERT_TRUE(method.end_rate_stage());
  for (std::size_t i = 0; i < method.c.size(); ++i) {
    EXPECT_NEAR(at_start[i], i == 0 ? 1 : 0, dense_tolerance) << "stage " << i;
    EXPECT_NEAR(at_end[i], i == *method.end_rate_stage() ? 1 : 0, 1e-12) << "stage " << i;
  }
}

TEST_P(EveryMethod, HasDenseWeightRatesThatAreTheDerivativeOfTheWeights) {
  const ButcherTableau method = GetParam();
  const double t = 0.37, shift = 1e-5;
  const std::vector<double> rates = method.dense_weight_rates(t);
  const std::vector<double> right = method.dense_weights(t + shift), left = method.dense_weights(t - shift);
  for (std::size_t i = 0; i < method.c.size(); ++i) {
    double scale = 1;
    for (double coefficient : method.dense[i]) scale += std::abs(coefficient);
    EXPECT_NEAR(rates[i], (right[i] - left[i]) / (2 * shift), 1e-8 * scale) << "stage " << i;
  }
}

TEST_P(EveryMethod, IsFoundFsalFromItsCoefficients) {
  const ButcherTableau method = GetParam();
  const bool expected =
      method.name == "bosh3" || method.name == "dopri5" || method.name == "tsit5" || method.name == "dop853";
  EXPECT_EQ(method.first_same_as_last(), expected);
}

TEST(EndRate, IsNotFoundOnceTheLastRowDiffersFromTheWeights) {
  ButcherTableau method = dopri5();
  EXPECT_EQ(method.end_rate_stage(), 6u);
  method.a[6][0] += 1e-12;
  EXPECT_FALSE(method.end_rate_stage());
  EXPECT_FALSE(method.first_same_as_last());
}

// The mutations below change the smallest thing that a slip of the pen would; the checks above must see each.
TEST_P(EveryMethod, ShowsEverySwapOfTwoCoefficientsOfARow) {
  const ButcherTableau method = GetParam();
  for (std::size_t i = 2; i < method.stages(); ++i) {
    for (std::size_t j = 1; j < method.a[i].size(); ++j) {
      ButcherTableau swapped = method;
      std::swap(swapped.a[i][j - 1], swapped.a[i][j]);
      if (swapped.a == method.a) continue;
      double residual = residual_through(swapped, swapped.b, method.order);
      if (method.adaptive()) {
        const std::vector<double> companion = difference(method.b, method.error);
        residual = std::max(residual, residual_through(swapped, companion, method.embedded_order));
      }
      const bool lost_end_rate = swapped.end_rate_stage() != method.end_rate_stage();
      EXPECT_TRUE(residual > 1e-9 || lost_end_rate) << "row " << i << ", columns " << j - 1 << " and " << j;
    }
  }
}

TEST_P(EveryMethod, ShowsEveryPerturbedWeight) {
  const ButcherTableau method = GetParam();
  for (std::size_t i = 0; i < method.stages(); ++i) {
    std::vector<double> perturbed = method.b;
    perturbed[i] += 1e-9;
    EXPECT_GT(residual_through(method, perturbed, method.order), 1e-10) << "weight " << i;
  }
}

TEST_P(EveryMethod, RefusesEveryPerturbedRow) {
  for (std::size_t i = 1; i < GetParam().c.size(); ++i) {
    ButcherTableau perturbed = GetParam();
    perturbed.a[i][0] += 1e-9;
    EXPECT_THROW(check_consistency(perturbed), InvalidArgument) << "row " << i;
  }
}

TEST(Dop853, HasACoarseCompanionOfOrderThree) {
  const ButcherTableau method = dop853();
  const std::vector<double> companion = difference(method.b, method.coarse_error);
  EXPECT_LT(residual_through(method, companion, 3), condition_tolerance);
  EXPECT_GT(order_residual(method, companion, 4), clearly_violated);
  EXPECT_NEAR(std::accumulate(method.coarse_error.begin(), method.coarse_error.end(), 0.0), 0.0, 1e-15);
}

TEST(ControlOrder, IsThePowerOfTheStepThatTheErrorEstimateFollows) {
  EXPECT_EQ(heun2().control_order(), 2);
  EXPECT_EQ(bosh3().control_order(), 3);
  EXPECT_EQ(fehlberg45().control_order(), 5);
  EXPECT_EQ(dopri5().control_order(), 5);
  EXPECT_EQ(dop853().control_order(), 8);  // HNW II.10: E5^2 / sqrt(E5^2 + 0.01 E3^2) behaves like h^8
}

TEST_P(EveryAdaptiveMethod, EstimatesAnErrorOfTheConstantItSays) {
  const ButcherTableau method = GetParam();
  const auto estimate = [&](double z) {  // of one step of length 1 on y' = z y, y = 1
    std::vector<double> rates;
    for (const auto& row : method.a)
      rates.push_back(z * (1 + std::inner_product(row.begin(), row.end(), rates.begin(), 0.0)));
    return std::abs(std::inner_product(method.error.begin(), method.error.end(), rates.begin(), 0.0));
  };
  const auto constant = [&](double z) { return estimate(z) / std::pow(z, method.error_order()); };
  const double z = 0.05;  // small ones drown in rounding at order 6
  EXPECT_NEAR((2 * constant(z) - constant(2 * z)) / method.error_constant(), 1, 0.03);
}

TEST(ErrorConstant, IsTheSameWithRowsFilledUp) {
  ButcherTableau method = dopri5();
  for (auto& row : method.a) row.resize(2 * method.c.size());
  EXPECT_EQ(method.error_constant(), dopri5().error_constant());
}

TEST(ErrorConstant, IsTheKnownOneOfDopri5) {
  // The companion's stability function has 1097/120000 where exp has 1/120 (HNW II.5, table 5.2).
  EXPECT_NEAR(dopri5().error_constant(), 97.0 / 120000, 1e-15);
  EXPECT_EQ(dopri5().error_order(), 5);
  EXPECT_EQ(dop853().error_order(), 6);
}

TEST(RootedTrees, AreAsManyAsCayleyCounted) {
  const std::vector<std::size_t> counts = {1, 1, 2, 4, 9, 20, 48, 115};
  for (std::size_t n = 0; n < counts.size(); ++n) EXPECT_EQ(rooted_tree_count(int(n) + 1), counts[n]);
}

TEST(RootedTrees, GiveTheKnownResidualOfEulersMethod) {
  EXPECT_EQ(order_residual(euler(), {1.0, 0.0}, 1), 0);
  EXPECT_NEAR(order_residual(euler(), {1.0, 0.0}, 2), 0.5, 1e-15);  // sum b c = 0 instead of 1/2
}

TEST(Consistency, NamesTheMethodAndTheRowOfAWrongSum) {
  ButcherTableau method = rk4();
  method.a[2][1] = 0.25;
  const std::string message = testing::message_of([&] { check_consistency(method); });
  EXPECT_EQ(message, "method `rk4`: row 2 of `a` sums to 0.25 but c is 0.5");
}

TEST(Consistency, NamesThePartOfTheWrongSize) {
  const auto message = [](auto&& change) {
    ButcherTableau method = dop853();
    change(method);
    return testing::message_of([&] { check_consistency(method); });
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(message([](auto& m) { m.error.pop_back(); }), "`error` needs 13 entries, got 12");
  expect(message([](auto& m) { m.coarse_error.pop_back(); }), "`coarse_error` needs 13 entries, got 12");
  expect(message([](auto& m) { m.dense.pop_back(); }), "`dense` needs 16 entries, got 15");
  expect(message([](auto& m) { m.a.pop_back(); }), "`a` needs 16 entries, got 15");
  expect(message([](auto& m) { m.c.resize(4); }), "`c` needs one entry a stage, got 4 for 13");
  expect(message([](auto& m) { m.b.clear(); }), "needs at least one stage");
  expect(message([](auto& m) { m.a[1].push_back(0); }), "is not explicit: row 1 of `a` has 2 entries");
}

}  // namespace
}  // namespace fathom::ode
