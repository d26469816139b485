/// Values and gradients against formulas: the reflection (G7), linear systems, integration bounds (G6), running losses.
#include <gtest/gtest.h>

#include <cmath>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

const Solver precise = adaptive(dopri5(), 1e-11);

class ClosedForms : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, ClosedForms, ::testing::ValuesIn(all_sensitivities()), name_of);

/// z' = -theta (z + x)
VectorField reflection(const Tensor& theta, const Tensor& x) {
  return {.rate = [=](const Tensor&, const Tensor& z) { return -theta * (z + x); }, .parameters = {theta, x}};
}

TEST_P(ClosedForms, ReflectionHasTheStateOfG7) {
  const Tensor theta = variable(1.7), x = variables({-2.0, 0.5, 1.0}), s = torch::linspace(0, 1, 5, float64);
  const Solution solution = solve(reflection(theta, x), x, s, precise, sensitivity());
  const Tensor expected = x * (2 * torch::exp(-theta * s.view({-1, 1})) - 1);
  EXPECT_LT(distance(solution.states, expected), 1e-9);
}

TEST_P(ClosedForms, ReflectionHasTheGradientsOfG7) {
  const Tensor theta = variable(1.7), x = variables({-2.0, 0.5, 1.0});
  const Solution solution = solve(reflection(theta, x), x, {0.0, 0.4, 1.0}, precise, sensitivity());
  const Tensor loss = solution.states[1].square().sum() + solution.states[2].sum();
  const auto closed = [&](double s) { return x * (2 * torch::exp(-theta * s) - 1); };
  const Tensor expected = closed(0.4).square().sum() + closed(1.0).sum();
  EXPECT_LT(distance(gradient(loss, theta), gradient(expected, theta)), 1e-8);
  EXPECT_LT(distance(gradient(loss, x), gradient(expected, x)), 1e-8);  // as start and as control
}

TEST(Reflection, ErrorFallsBelowEpsilonExactlyWhenThetaIsLargeEnough) {
  const double x = -3.0;
  const auto error = [&](double theta) {
    const Tensor start = variables({x});
    const Solution solution =
        solve(reflection(variable(theta), start), start, {0.0, 1.0}, adaptive(dopri5(), 1e-12));
    return std::abs(solution.states[-1].item<double>() + x);
  };
  for (const double epsilon : {1e-1, 1e-3, 1e-5}) {
    const double needed = -std::log(epsilon / (2 * std::abs(x)));
    EXPECT_NEAR(error(needed), epsilon, 1e-9);
    EXPECT_LT(error(needed * 1.001), epsilon);
    EXPECT_GT(error(needed * 0.999), epsilon);
  }
}

struct LinearSystem {
  Tensor A = torch::tensor({{-0.5, 2.0, 0.1}, {-2.0, -0.3, 0.4}, {0.2, 0.0, 0.6}}, float64).requires_grad_();
  Tensor z0 = variables({1.0, -0.7, 0.3});
  Tensor depths = variables({0.1, 0.5, 1.2, 1.9});

  Solution solved(const Sensitivity& sensitivity) const {
    const VectorField field{.rate = [A = A](const Tensor&, const Tensor& z) { return A.matmul(z); },
                            .parameters = {A}};
    return solve(field, z0, depths, precise, sensitivity);
  }
  /// exp(A (s_i - s_0)) z0
  Tensor exact() const {
    std::vector<Tensor> states;
    for (std::int64_t i = 0; i < depths.numel(); ++i) {
      states.push_back(torch::matrix_exp(A * (depths[i] - depths[0])).matmul(z0));
    }
    return torch::stack(states);
  }
};

TEST_P(ClosedForms, LinearSystemHasTheStatesOfTheMatrixExponential) {
  const LinearSystem system;
  EXPECT_LT(distance(system.solved(sensitivity()).states, system.exact()), 1e-9);
}

TEST_P(ClosedForms, LinearSystemHasTheGradientsOfTheMatrixExponential) {
  const LinearSystem system;
  const auto loss = [](const Tensor& states) {
    return (states.square() * torch::tensor({0.5, 1.0, -2.0, 3.0}, float64).view({-1, 1})).sum();
  };
  const Tensor given = loss(system.solved(sensitivity()).states), exact = loss(system.exact());
  EXPECT_LT(distance(gradient(given, system.A), gradient(exact, system.A)), 1e-8);
  EXPECT_LT(distance(gradient(given, system.z0), gradient(exact, system.z0)), 1e-8);
  EXPECT_LT(distance(gradient(given, system.depths), gradient(exact, system.depths)), 1e-7);
}

/// z' = -z (1 + s), l = z^2 + s
const VectorField bounded{
    .rate = [](const Tensor& s, const Tensor& z) { return -z * (1 + s); },
    .running_loss = [](const Tensor& s, const Tensor& z, const Tensor&) { return z.square().sum(1) + s; }};

TEST_P(ClosedForms, LastDepthHasTheGradientOfG6) {
  const Tensor depths = variables({0.0, 0.8});
  const Solution solution = solve(bounded, torch::full({1, 1}, 1.5, float64), depths, precise, sensitivity());
  const Tensor loss = solution.states[-1].pow(3).sum() + solution.running_loss[-1].sum();
  const double z = solution.states[-1].item<double>();
  const double expected = 3 * z * z * (-z * 1.8) + (z * z + 0.8);  // dL/dz f + l
  EXPECT_NEAR(gradient(loss, depths)[1].item<double>(), expected, 1e-8);
}

TEST_P(ClosedForms, FirstDepthOfARunningLossHasTheGradientOfG6) {
  const Tensor depths = variables({0.2, 0.8}), z0 = torch::full({1, 1}, 1.5, float64).requires_grad_();
  const Solution solution = solve(bounded, z0, depths, precise, sensitivity());
  const Tensor loss = solution.running_loss[-1].sum();
  const double a = gradient(loss, z0).item<double>();
  const double expected = -a * (-1.5 * 1.2) - (1.5 * 1.5 + 0.2);  // -(a f + l)
  EXPECT_NEAR(gradient(loss, depths)[0].item<double>(), expected, 1e-7);
}

TEST_P(ClosedForms, RunningLossHasItsIntegralAtEveryDepth) {
  const Tensor z0 = torch::tensor({{1.0}, {-2.0}}, float64).requires_grad_();
  const VectorField field{
      .rate = [](const Tensor&, const Tensor& z) { return -z; },
      .running_loss = [](const Tensor&, const Tensor& z, const Tensor&) { return z.square().sum(1); }};
  const Tensor s = torch::tensor({0.0, 0.3, 1.1, 2.0}, float64);
  const Solution solution = solve(field, z0, s, precise, sensitivity());
  const Tensor left = 1 - torch::exp(-2 * s);
  const Tensor expected = z0.squeeze(1).square() * left.view({-1, 1}) / 2;  // (depths, batch)
  EXPECT_LT(distance(solution.running_loss, expected), 1e-9);
  EXPECT_LT(distance(gradient(solution.running_loss.sum(), z0), gradient(expected.sum(), z0)), 1e-8);
}

TEST_P(ClosedForms, RunningLossBackwardsInDepthIsTheIntegralWithItsSign) {
  const Tensor z0 = torch::tensor({{1.0}}, float64).requires_grad_();
  const VectorField field{
      .rate = [](const Tensor&, const Tensor& z) { return z; },
      .running_loss = [](const Tensor&, const Tensor& z, const Tensor&) { return z.square().sum(1); }};
  const Solution solution = solve(field, z0, {1.0, 0.0}, precise, sensitivity());
  const double expected = -(1 - std::exp(-2)) / 2;  // int from 1 to 0 of exp(2 (s - 1))
  EXPECT_NEAR(solution.running_loss[-1].item<double>(), expected, 1e-9);
  EXPECT_NEAR(gradient(solution.running_loss[-1].sum(), z0).item<double>(), 2 * expected, 1e-8);
}

TEST(ClosedFormsOfSolves, ForwardsThenBackwardsReturnsToTheStart) {
  torch::manual_seed(3);
  const Tensor W = torch::randn({4, 4}, float64), z0 = torch::randn({16, 4}, float64);
  const VectorField field{
      .rate = [W](const Tensor& s, const Tensor& z) { return torch::tanh(z.matmul(W)) * torch::cos(s); }};
  for (const auto& method : {dopri5(), tsit5(), dop853()}) {
    const Solver solver = adaptive(method, 1e-9);
    const Tensor end = solve(field, z0, {0.0, 3.0}, solver).states[-1];
    EXPECT_GT(distance(end, z0), 0.1);
    EXPECT_LT(distance(solve(field, end, {3.0, 0.0}, solver).states[-1], z0), 1e-7) << method.name;
  }
}

}  // namespace
}  // namespace fathom::testing
