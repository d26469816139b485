/// What sets the sensitivities apart: second derivatives, checkpoints, the adjoint's own solver, and what they refuse.
#include <gtest/gtest.h>

#include <cmath>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

const Solver precise = adaptive(dopri5(), 1e-11);

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

VectorField decay(const Tensor& theta) {
  return {.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; }, .parameters = {theta}};
}

std::int64_t backward_evaluations(const Solver& solver, const Sensitivity& sensitivity) {
  GradientProblem problem = full_problem(LossKind::terminal, solver, sensitivity);
  problem.depths = torch::tensor({0.2, 0.85}, float64);
  for (Tensor parameter : problem.field.parameters) parameter.requires_grad_();
  const Solution solution = solve(problem.field, problem.z0, problem.depths, solver, sensitivity);
  problem.loss(solution).backward();
  return solution.report().backward_evaluations;
}

/// d/de of the gradient along random directions, by the graph of the gradient and by differences of gradients.
TEST(UnrolledGradient, HasTheHessianOfFiniteDifferences) {
  for (const LossKind kind : all_losses) {
    const GradientProblem problem = full_problem(kind, fixed(dopri5(), 5), Unrolled{});
    std::vector<Tensor> variables = {problem.z0, problem.depths};
    variables.insert(variables.end(), problem.field.parameters.begin(), problem.field.parameters.end() - 1);
    std::vector<Tensor> directions;
    for (const Tensor& tensor : variables) {
      tensor.requires_grad_();
      directions.push_back(torch::randn_like(tensor.detach()));
    }
    const Solution solution = solve(problem.field, problem.z0, problem.depths, problem.solver, Unrolled{});
    const auto first =
        torch::autograd::grad({problem.loss(solution)}, variables, {}, true, /*create_graph=*/true);
    const auto given = torch::autograd::grad(first, variables, directions, {}, false, true);

    const double h = 1e-5;
    const auto moved = [&](double by) {
      const torch::NoGradGuard no_graph;
      for (std::size_t i = 0; i < variables.size(); ++i) variables[i].add_(directions[i], by);
    };
    const auto gradients_at = [&](double by) {
      moved(by);
      const auto found = gradients(problem);
      moved(-by);
      return found;
    };
    const auto ahead = gradients_at(h), behind = gradients_at(-h);
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const Tensor expected = (ahead[i] - behind[i]) / (2 * h);
      EXPECT_LT(distance(given[i], expected), 1e-5) << name(kind) << ", variable " << i;
    }
  }
}

TEST(OtherGradients, RefuseToBeDifferentiatedAgain) {
  for (const Sensitivity& sensitivity :
       std::vector<Sensitivity>{Discrete{}, Adjoint{}, InterpolatedAdjoint{}}) {
    const Tensor theta = variable(0.7);
    const Solution solution = solve(decay(theta), torch::ones({1}, float64), {0.0, 1.0}, {}, sensitivity);
    const std::string message = message_of(
        [&] { torch::autograd::grad({solution.states.sum()}, {theta}, {}, true, /*create_graph=*/true); });
    EXPECT_TRUE(contains(message, "cannot be differentiated again; use `Unrolled{}`")) << message;
  }
}

TEST(OtherGradients, RefuseParametersComputedFromOneAnother) {
  const Tensor theta = variable(0.7), twice = 2 * theta;
  const VectorField field{.rate = [=](const Tensor&, const Tensor& z) { return -(theta + twice) * z; },
                          .parameters = {theta, twice}};
  for (const Sensitivity& sensitivity :
       std::vector<Sensitivity>{Discrete{}, Adjoint{}, InterpolatedAdjoint{}}) {
    const std::string message = message_of([&] {
      solve(field, torch::ones({1}, float64), {0.0, 1.0}, {}, sensitivity);
    });
    EXPECT_EQ(
        message,
        "parameter 1 of the field is computed from parameter 0; compute it inside `rate`, or list only one "
        "of them");
  }
}

class ParametersOfAField : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, ParametersOfAField, ::testing::ValuesIn(all_sensitivities()), name_of);

TEST_P(ParametersOfAField, ListedTwiceCountOnce) {
  const Tensor theta = variable(0.7);
  VectorField field = decay(theta);
  field.parameters = {theta, theta};
  const Solution solution = solve(field, torch::ones({1}, float64), {0.0, 1.0}, precise, sensitivity());
  EXPECT_NEAR(gradient(solution.states[-1].sum(), theta).item<double>(), -std::exp(-0.7), 1e-8);
}

TEST_P(ParametersOfAField, MayBeComputedFromOthersThatAreNotListed) {
  const Tensor source = variable(0.7), theta = source.exp();
  const Solution solution =
      solve(decay(theta), torch::ones({1}, float64), {0.0, 1.0}, precise, sensitivity());
  const double k = std::exp(0.7);
  EXPECT_NEAR(gradient(solution.states[-1].sum(), source).item<double>(), -k * std::exp(-k), 1e-8);
}

TEST_P(ParametersOfAField, MayEnterThroughAComputationOutsideOfIt) {
  const Tensor theta = variable(0.7), outside = theta.exp();
  VectorField field = decay(outside);
  field.parameters = {theta};
  const Solution solution = solve(field, torch::ones({1}, float64), {0.0, 1.0}, precise, sensitivity());
  const double k = std::exp(0.7);
  EXPECT_NEAR(gradient(solution.states[-1].sum(), theta).item<double>(), -k * std::exp(-k), 1e-8);
}

TEST_P(ParametersOfAField, MayBeTheStartAsWell) {
  const Tensor x = variables({0.5, -1.0});
  const VectorField field{.rate = [x](const Tensor&, const Tensor& z) { return x - z; }, .parameters = {x}};
  const Solution solution = solve(field, 2 * x, {0.0, 1.0}, precise, sensitivity());
  const double e = std::exp(-1);  // z(1) = 2 x e + x (1 - e)
  EXPECT_LT(distance(gradient(solution.states[-1].sum(), x), torch::full({2}, 1 + e, float64)), 1e-8);
}

TEST(CheckpointsOfDiscrete, RepeatTheStepsBetweenThem) {
  const Solver solver = fixed(rk4(), 12);
  const std::int64_t replayed = 4 * 12;
  EXPECT_EQ(backward_evaluations(solver, Discrete{}), replayed);
  // Every third start is kept: within a block of three, steps 0 and 1 are repeated for the third and step 0 for none more.
  EXPECT_EQ(backward_evaluations(solver, Discrete{.checkpoint_every = 3}), replayed + 4 * (4 * 2));
  EXPECT_EQ(backward_evaluations(solver, Discrete{.checkpoint_every = 100}), replayed + 4 * 11);
}

TEST(CheckpointsOfDiscrete, KeepWithinTheMemoryBudget) {
  const Solver solver = fixed(rk4(), 12);
  const std::int64_t state = 3 * 2 * 8;  // bytes
  const auto evaluations = [&](std::int64_t budget) {
    return backward_evaluations(solver, Discrete{.memory_budget = budget});
  };
  EXPECT_EQ(evaluations(12 * state), evaluations(0));          // all fit
  EXPECT_EQ(evaluations(11 * state), evaluations(6 * state));  // every second one
  EXPECT_GT(evaluations(6 * state), evaluations(0));
  EXPECT_GT(evaluations(3 * state), evaluations(6 * state));
}

TEST(CheckpointsOfDiscrete, RefuseWhatCannotBeMeant) {
  const auto message = [](const Discrete& how) {
    return message_of([&] { solve(decay(variable(1.0)), torch::ones({1}, float64), {0.0, 1.0}, {}, how); });
  };
  EXPECT_EQ(message({.checkpoint_every = 0}), "Discrete: `checkpoint_every` must be at least 1, got 0");
  EXPECT_EQ(message({.memory_budget = -1}), "Discrete: `memory_budget` must not be negative, got -1");
}

TEST(BacksolveAdjoint, StartsAfreshFromEverySavedState) {
  // y' = -20 (y - cos s): on the way back an error of y grows like exp(20 length), over one twentieth like e.
  const Tensor a = variable(-20.0), depths = torch::linspace(0, 3, 61, float64);
  const VectorField field{.rate = [a](const Tensor& s, const Tensor& y) { return a * (y - torch::cos(s)); },
                          .parameters = {a}};
  const auto by = [&](const Sensitivity& sensitivity) {
    const Solution solution =
        solve(field, torch::ones({1}, float64), depths, adaptive(dopri5(), 1e-7), sensitivity);
    return gradient(solution.states.sum(), a).item<double>();
  };
  EXPECT_NEAR(by(Adjoint{}), by(Discrete{}), 1e-5);
}

TEST(BacksolveAdjoint, SharesAFixedCountOfStepsOutOverTheWay) {
  const Tensor theta = variable(0.7);
  const auto cost = [&](std::int64_t saved) {
    const Solution solution = solve(decay(theta), torch::ones({1}, float64),
                                    torch::linspace(0, 1, saved, float64), fixed(rk4(), 100), Adjoint{});
    solution.states.sum().backward();
    return solution.report().backward_evaluations;
  };
  const std::int64_t checking = 2;  // that the field is a pure function
  EXPECT_EQ(cost(2), 4 * 100 + checking);
  EXPECT_EQ(cost(11), 4 * 100 + checking);
}

class SourcesOfParameters : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, SourcesOfParameters,
                         ::testing::Values(all_sensitivities()[0], all_sensitivities()[1],
                                           all_sensitivities()[2]),
                         name_of);

TEST_P(SourcesOfParameters, GetTheGradientOfTheCopyThatTheFieldReads) {
  const Tensor x = variable(0.7), theta = x.exp(), seen = theta.detach().requires_grad_();
  VectorField field{.rate = [=](const Tensor&, const Tensor& z) { return -(x + seen) * z; },
                    .parameters = {x, seen}};
  field.sources = {x, theta};
  const Solution solution = solve(field, torch::ones({1}, float64), {0.0, 1.0}, precise, sensitivity());
  const double k = 0.7 + std::exp(0.7);
  EXPECT_NEAR(gradient(solution.states[-1].sum(), x).item<double>(), -(1 + std::exp(0.7)) * std::exp(-k),
              1e-8);
}

TEST_P(SourcesOfParameters, AreOneForEachParameter) {
  VectorField field = decay(variable(0.7));
  field.sources = {variable(1.0), variable(2.0)};
  EXPECT_EQ(message_of([&] {
              solve(field, torch::ones({1}, float64), {0.0, 1.0}, {}, sensitivity());
            }),
            "`sources` must be empty or one for each of the 1 parameters, got 2");
}

TEST(SourcesOfParametersByUnrolled, MustBeTheParametersThemselves) {
  const Tensor x = variable(0.7), theta = x.exp(), seen = theta.detach().requires_grad_();
  const auto run = [&](const Tensor& parameter) {
    VectorField field = decay(parameter);
    field.sources = {theta};
    const Solution solution = solve(field, torch::ones({1}, float64), {0.0, 1.0}, precise, Unrolled{});
    return gradient(solution.states[-1].sum(), x).item<double>();
  };
  EXPECT_EQ(message_of([&] { run(seen); }),
            "with `Unrolled`, parameter 0 of the field must be its own source, got a copy, which would lose "
            "the gradient; "
            "give the source itself in `parameters`");
  const double k = std::exp(0.7);
  EXPECT_NEAR(run(theta), -k * std::exp(-k), 1e-9);
}

class AdjointsOwnSolver : public ::testing::TestWithParam<NamedSensitivity> {
 protected:
  /// The parameter's sensitivity with the given options.
  static Sensitivity with(std::optional<Solver> solver, bool parameters_in_error_norm = false) {
    if (std::holds_alternative<Adjoint>(GetParam().value))
      return Adjoint{std::move(solver), parameters_in_error_norm};
    return InterpolatedAdjoint{std::move(solver), parameters_in_error_norm};
  }
};
INSTANTIATE_TEST_SUITE_P(By, AdjointsOwnSolver,
                         ::testing::Values(all_sensitivities()[1], all_sensitivities()[2]), name_of);

TEST_P(AdjointsOwnSolver, DecidesHowExactTheGradientIs) {
  const auto exact = gradients(full_problem(LossKind::mixed, precise));
  const auto error = [&](const Solver& solver) {
    return distance(gradients(full_problem(LossKind::mixed, precise, with(solver))), exact);
  };
  EXPECT_LT(error(adaptive(tsit5(), 1e-10)), 1e-7);
  EXPECT_GT(error(fixed(euler(), 8)), 1e-3);
}

TEST_P(AdjointsOwnSolver, DecidesHowMuchTheGradientCosts) {
  const auto cost = [&](double tolerance) {
    return backward_evaluations(precise, with(adaptive(dopri5(), tolerance)));
  };
  EXPECT_LT(cost(1e-2), cost(1e-8));
  EXPECT_EQ(cost(1e-11), backward_evaluations(precise, with({})));
}

TEST_P(AdjointsOwnSolver, TakesMoreStepsWhenParametersCountInItsErrorNorm) {
  torch::manual_seed(2);
  const Tensor W = (30 * torch::randn({2, 2}, float64)).requires_grad_();
  const auto cost = [&](bool in_norm) {
    const VectorField field{
        .rate = [W](const Tensor& s, const Tensor& z) { return torch::sin(z.matmul(W) * s * s); },
        .parameters = {W}};
    const Solution solution = solve(field, torch::ones({1, 2}, float64), {0.0, 1.0}, adaptive(dopri5(), 1e-6),
                                    with(std::nullopt, in_norm));
    (1e3 * solution.states[-1].sum()).backward();
    return solution.report().backward_evaluations;
  };
  EXPECT_GT(cost(true), cost(false));
}

TEST_P(AdjointsOwnSolver, MayUseFixedSteps) {
  const auto exact = gradients(full_problem(LossKind::mixed, precise));
  const auto given = gradients(full_problem(LossKind::mixed, precise, with(fixed(rk4(), 200))));
  EXPECT_LT(distance(given, exact), 1e-7);
}

}  // namespace
}  // namespace fathom::testing
