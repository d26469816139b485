/// The tensor engine under bad fields: NaN, infinities, exceptions, blow-up, extreme and degenerate states.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <regex>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

const Tensor ones = torch::ones({4, 2}, float64);

VectorField decay() {
  return {.rate = [](const Tensor&, const Tensor& z) { return -z; }};
}

/// z' = -z, but one component of the n-th evaluation is `value`.
VectorField spoiled(std::int64_t evaluation, std::int64_t component, double value) {
  return {.rate = [=, count = std::int64_t{0}](const Tensor&, const Tensor& z) mutable {
    Tensor rate = -z;
    if (count++ == evaluation) rate.view(-1)[component] = value;
    return rate;
  }};
}

std::string nested_message(const std::exception& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& inner) { return inner.what(); }
  return "nothing is nested";
}

/// A spoiled evaluation either does no harm or is named; never does a solve return a number that is not one.
void expect_survival_or_blame(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t size) { return std::size_t(random()) % size; };
  const auto& method = ode::all_methods()[pick(ode::all_methods().size())];
  Solver solver = method.adaptive() && pick(2) == 0 ? adaptive(method, method.order > 3 ? 1e-7 : 1e-5)
                                                    : fixed(method, 20);
  solver.dense = pick(2) == 0;
  const std::int64_t evaluation = std::int64_t(pick(60)), component = std::int64_t(pick(8));
  const double infinity = std::numeric_limits<double>::infinity();
  const double value = std::array<double, 3>{NAN, infinity, -infinity}[pick(3)];
  SCOPED_TRACE(text("seed ", seed, ": ", method.name, ", ", value, " at evaluation ", evaluation));
  try {
    const Tensor depths = torch::linspace(0, 1, std::int64_t(2 + pick(9)), float64);
    const Solution solution = solve(spoiled(evaluation, component, value), ones, depths, solver);
    const Tensor exact = torch::exp(-depths).view({-1, 1, 1}) * ones;
    EXPECT_LT(distance(solution.states, exact), method.order == 1 ? 0.05 : 1e-2);
  } catch (const SolveFailure& failure) {
    EXPECT_EQ(failure.reason, FailureReason::non_finite);
    EXPECT_GT(failure.site.evaluations, evaluation);
    EXPECT_LT(failure.site.evaluations, 1000);
    EXPECT_TRUE(std::regex_search(failure.site.component, std::regex(R"(z\[\d, \d\] = (-?inf|nan))")))
        << failure.site.component;
    const std::regex whole(
        R"(solve failed at depth .*: .* is .* \(step size .*, evaluation \d+\); check the field .*)");
    EXPECT_TRUE(std::regex_match(failure.what(), whole)) << failure.what();
  }
}

TEST(NonFiniteRates, AreSurvivedOrNamedWhereverTheyAppear) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) expect_survival_or_blame(seed);
}

TEST(NonFiniteRates, AtTheEndOfAStepDoNotSpoilItsInterpolantInSilence) {
  const VectorField field{.rate = [](const Tensor& s, const Tensor& z) {
    return s.item<double>() == 1.0 ? torch::full_like(z, NAN) : -z;
  }};
  for (const bool dense : {false, true}) {
    for (const auto& method : ode::all_methods()) {
      Solver solver = fixed(method, 4);
      solver.dense = dense;
      const std::vector<double> depths = dense ? std::vector{0.0, 1.0} : std::vector{0.0, 0.95, 1.0};
      const auto failure = failure_of([&] { solve(field, ones, depths, solver); });
      ASSERT_TRUE(failure) << method.name;
      EXPECT_EQ(failure->reason, FailureReason::non_finite) << method.name;
      EXPECT_EQ(failure->site.depth, 0.75) << method.name;
      EXPECT_NE(failure->site.component.find("z[0, 0] = nan"), std::string::npos) << failure->site.component;
    }
  }
}

TEST(NonFiniteRates, NameTheComponentOfTheState) {
  const VectorField field{.rate = [](const Tensor&, const Tensor& z) {
    const Tensor rate = -z;
    rate[3][1] = NAN;
    return rate;
  }};
  for (const Solver& solver : {adaptive(dopri5(), 1e-6), fixed(rk4(), 4)}) {
    const auto failure = failure_of([&] { solve(field, ones, {0.0, 1.0}, solver); });
    ASSERT_TRUE(failure);
    EXPECT_TRUE(failure->site.component.ends_with("z[3, 1] = nan")) << failure->site.component;
    EXPECT_EQ(failure->site.depth, 0);
  }
}

TEST(NonFiniteRates, NameTheRunningLoss) {
  VectorField field = decay();
  field.running_loss = [](const Tensor&, const Tensor& z, const Tensor&) { return (z - 2).sum(1).log(); };
  const auto failure = failure_of([&] { solve(field, ones, {0.0, 1.0}); });
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->site.component.find("running loss[0] = nan"), std::string::npos)
      << failure->site.component;
}

/// z' = z^2 from 1 to 2; the solution ends at depth 1.
SolveFailure blow_up(const ode::ButcherTableau& method) {
  const VectorField field{.rate = [](const Tensor&, const Tensor& z) { return z * z; }};
  return failure_of([&] { solve(field, ones, {0.0, 2.0}, adaptive(method, 1e-4)); }).value();
}

TEST(BlowUp, IsFoundWhereItIsInUnderAThousandEvaluationsByEveryPair) {
  for (const auto& method : ode::all_methods()) {
    if (!method.adaptive()) continue;
    const SolveFailure failure = blow_up(method);
    EXPECT_NE(failure.reason, FailureReason::too_many_steps) << method.name;
    EXPECT_NEAR(failure.site.depth, 1, 0.05) << method.name;
    EXPECT_LT(failure.site.evaluations, 1000) << method.name;
  }
}

TEST(ThrowingField, IsATypedFailureThatKeepsItsException) {
  bool armed = true;
  std::int64_t count = 0;
  const VectorField field{.rate = [&](const Tensor&, const Tensor& z) {
    if (armed && ++count == 10) throw std::out_of_range("no such row\nsecond line");
    return -z;
  }};
  try {
    solve(field, ones, {0.0, 5.0});
    FAIL() << "nothing was thrown";
  } catch (const SolveFailure& failure) {
    EXPECT_EQ(failure.reason, FailureReason::field_threw);
    EXPECT_EQ(failure.site.evaluations, 10);
    EXPECT_EQ(nested_message(failure), "no such row\nsecond line");
    EXPECT_NE(std::string(failure.what()).find("the field threw \"no such row\" (step "), std::string::npos);
  }
  armed = false;
  EXPECT_LT(distance(solve(field, ones, {0.0, 1.0}).states[-1], ones * std::exp(-1)), 1e-3);
}

class FieldThatThrowsOnTheWayBack : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, FieldThatThrowsOnTheWayBack,  // Unrolled does not evaluate the field again
                         ::testing::Values(all_sensitivities()[0], all_sensitivities()[1],
                                           all_sensitivities()[2]),
                         name_of);

TEST_P(FieldThatThrowsOnTheWayBack, LeavesTheSolveUsable) {
  bool armed = false;
  const Tensor theta = variable(1.0);
  const VectorField field{.rate =
                              [&](const Tensor&, const Tensor& z) {
                                if (armed) throw std::out_of_range("no such row");
                                return -theta * z;
                              },
                          .parameters = {theta}};
  const Solution solution = solve(field, ones, {0.0, 1.0}, adaptive(dopri5(), 1e-8), sensitivity());
  armed = true;
  EXPECT_THROW(gradient(solution.states[-1].sum(), theta), std::exception);
  EXPECT_TRUE(torch::GradMode::is_enabled());
  armed = false;
  EXPECT_NEAR(gradient(solution.states[-1].sum(), theta).item<double>(), -8 * std::exp(-1), 1e-5);
}

class DegenerateFields : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, DegenerateFields, ::testing::ValuesIn(all_sensitivities()), name_of);

TEST_P(DegenerateFields, ZeroFieldKeepsTheStateAndItsGradient) {
  const VectorField field{.rate = [](const Tensor&, const Tensor& z) { return torch::zeros_like(z); }};
  const Tensor z0 = ones.clone().requires_grad_(), depths = variables({0.0, 0.5, 3.0});
  const Solution solution = solve(field, z0, depths, {}, sensitivity());
  EXPECT_TRUE(torch::equal(solution.states, ones.expand({3, 4, 2})));
  EXPECT_TRUE(torch::equal(gradient(solution.states.sum(), z0), 3 * ones));
  EXPECT_EQ(gradient(solution.states.sum(), depths).abs().max().item<double>(), 0);
}

TEST_P(DegenerateFields, ConstantFieldWithoutGraphMovesTheState) {
  const VectorField field{
      .rate = [](const Tensor&, const Tensor& z) { return torch::full_like(z, 2.0).detach(); }};
  const Tensor z0 = ones.clone().requires_grad_(), depths = variables({0.0, 0.5, 3.0});
  const Solution solution = solve(field, z0, depths, {}, sensitivity());
  EXPECT_LT(distance(solution.states[-1], 7 * ones), 1e-12);
  EXPECT_LT(distance(gradient(solution.states[-1].sum(), z0), ones), 1e-12);
  EXPECT_LT(distance(gradient(solution.states[-1].sum(), depths), torch::tensor({-16.0, 0.0, 16.0}, float64)),
            1e-12);
}

TEST_P(DegenerateFields, TinyAndHugeStatesKeepTheirRelativeAccuracy) {
  const auto check = [&](double size, auto type, double tolerance) {
    const Tensor z0 = torch::full({3}, size, type).requires_grad_();
    const Solver solver{.steps = AdaptiveSteps{.relative_tolerance = tolerance, .absolute_tolerance = 0}};
    const Solution solution = solve(decay(), z0, {0.0, 0.5, 1.0}, solver, sensitivity());
    EXPECT_NEAR(solution.states[-1][0].template item<double>() / size, std::exp(-1), 20 * tolerance) << size;
    EXPECT_NEAR(gradient(solution.states[-1].sum(), z0)[0].template item<double>(), std::exp(-1),
                20 * tolerance)
        << size;
  };
  for (const double size : {1e-300, 1e300}) check(size, torch::kFloat64, 1e-7);
  for (const double size : {1e-30, 1e30}) check(size, torch::kFloat32, 1e-5);
}

TEST_P(DegenerateFields, HugeStatesAreSolvedWithTheDefaultTolerance) {
  const Tensor z0 = torch::full({3}, 1e300, float64).requires_grad_();
  const Solution solution = solve(decay(), z0, {0.0, 1.0}, {}, sensitivity());
  EXPECT_NEAR(solution.states[-1][0].item<double>() / 1e300, std::exp(-1), 1e-3);
}

TEST(NormsInFloat32, OverflowNoSoonerThanInFloat64) {
  const auto first_step = [](auto type) {
    double size = 0;
    Solver solver;
    solver.observer = [&](const StepEvent& event, const Tensor&) {
      size = event.step.size();
      return Next::stop;
    };
    const VectorField field{
        .rate = [](const Tensor& s, const Tensor& z) { return 1e16 * torch::cos(z * 0 + s); }};
    solve(field, torch::zeros({8}, type), {0.0, 1.0}, solver);
    return size;
  };
  // The rate is 1e20 times the tolerance; its square is beyond float32.
  EXPECT_NEAR(first_step(torch::kFloat32) / first_step(torch::kFloat64), 1, 1e-2);
}

}  // namespace
}  // namespace fathom::testing
