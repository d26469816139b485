/// The gradient checker passes what is right and catches what is wrong, whichever way the solve is differentiated.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

enum class Mistake { none, flipped_sign, missing_factor, dropped_term };

/// x^3 + x, with the derivative that `mistake` makes of 3 x^2 + 1.
struct Cubic : torch::autograd::Function<Cubic> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, std::int64_t mistake) {
    context->save_for_backward({x});
    context->saved_data["mistake"] = mistake;
    return x * x * x + x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const Tensor x = context->get_saved_variables()[0];
    switch (Mistake(context->saved_data["mistake"].toInt())) {
      case Mistake::none: return {grads[0] * (3 * x * x + 1), {}};
      case Mistake::flipped_sign: return {-grads[0] * (3 * x * x + 1), {}};
      case Mistake::missing_factor: return {grads[0] * (x * x + 1), {}};
      case Mistake::dropped_term: return {grads[0] * 3 * x * x, {}};
    }
    return {};
  }
};

/// z' = cos(s) - theta cubic(z), or cubic(theta) z when the mistake is to be in the parameter's gradient alone.
GradientProblem cubic_problem(Mistake mistake, const Sensitivity& sensitivity, bool of_parameter = false) {
  const Tensor theta = torch::tensor({0.5, 0.8}, float64);
  const auto cubic = [mistake](const Tensor& x) { return Cubic::apply(x, std::int64_t(mistake)); };
  GradientProblem problem;
  problem.field.rate = [=](const Tensor& s, const Tensor& z) {
    return torch::cos(s) - (of_parameter ? cubic(theta) * z : theta * cubic(z));
  };
  problem.field.parameters = {theta};
  problem.z0 = torch::tensor({{0.7, -0.4}, {0.2, 0.9}}, float64);
  problem.depths = torch::tensor({0.0, 0.4, 1.0}, float64);
  problem.loss = [](const Solution& solution) { return solution.states.square().sum(); };
  problem.solver = adaptive(dopri5(), 1e-9);
  problem.sensitivity = sensitivity;
  return problem;
}

class Checker : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, Checker, ::testing::ValuesIn(all_sensitivities()), name_of);

TEST_P(Checker, PassesRightGradients) {
  for (const bool of_parameter : {false, true}) {
    const GradientCheck check = check_gradients(cubic_problem(Mistake::none, sensitivity(), of_parameter));
    EXPECT_TRUE(check.passed()) << check.table();
    EXPECT_LT(check.worst(), 1e-6);
  }
}

TEST_P(Checker, CatchesEveryMistakeInAField) {
  for (const Mistake mistake : {Mistake::flipped_sign, Mistake::missing_factor, Mistake::dropped_term}) {
    const GradientCheck check = check_gradients(cubic_problem(mistake, sensitivity()));
    EXPECT_FALSE(check.passed()) << check.table();
    EXPECT_GT(check.worst(), 1e-2);
  }
}

TEST_P(Checker, BlamesTheVariableWhoseGradientIsWrong) {
  for (const Mistake mistake : {Mistake::flipped_sign, Mistake::missing_factor, Mistake::dropped_term}) {
    const GradientCheck check = check_gradients(cubic_problem(mistake, sensitivity(), /*of_parameter=*/true));
    ASSERT_EQ(check.rows.size(), 3u);
    EXPECT_TRUE(check.rows[0].passed) << check.table();   // z0
    EXPECT_TRUE(check.rows[1].passed) << check.table();   // depths
    EXPECT_FALSE(check.rows[2].passed) << check.table();  // parameter 0
  }
}

TEST(CheckerOfGradients, PrintsATableOfEveryVariable) {
  const std::string table = check_gradients(cubic_problem(Mistake::flipped_sign, Discrete{}, true)).table();
  const std::regex whole(R"(variable     entries     largest   rel\. error\n)"
                         R"(z0                 4   \S+    \S+  ok\n)"
                         R"(depths             3   \S+    \S+  ok\n)"
                         R"(parameter 0        2   \S+    2\.000e\+00  WRONG\n)");
  EXPECT_TRUE(std::regex_match(table, whole)) << table;
}

TEST(CheckerOfGradients, ChecksNoMoreEntriesThanAsked) {
  GradientProblem problem = cubic_problem(Mistake::none, Discrete{});
  problem.z0 = torch::full({5, 2}, 0.3, float64);
  const GradientCheck check = check_gradients(problem, {.entries = 3});
  EXPECT_EQ(check.rows[0].entries, 3);
  EXPECT_EQ(check.rows[2].entries, 2);
}

TEST(CheckerOfGradients, SpreadsTheEntriesOverTheWholeTensor) {
  // Only the last of five entries has a wrong gradient; three entries spread over five reach it.
  GradientProblem problem = cubic_problem(Mistake::none, Discrete{});
  const Tensor theta = torch::full({5}, 0.5, float64);
  problem.z0 = torch::full({5}, 0.3, float64);
  problem.field.parameters = {theta};
  problem.field.rate = [theta](const Tensor&, const Tensor& z) {
    return -z * torch::cat({theta.slice(0, 0, 4), theta.slice(0, 4).detach()});
  };
  EXPECT_FALSE(check_gradients(problem, {.entries = 3}).passed());
}

TEST(CheckerOfGradients, AllowsTheToleranceItIsGiven) {
  GradientProblem problem = cubic_problem(Mistake::none, Adjoint{});
  problem.solver = adaptive(dopri5(), 1e-3);  // an adjoint at this tolerance is a little off
  EXPECT_FALSE(check_gradients(problem, {.tolerance = 1e-9}).passed());
  EXPECT_TRUE(check_gradients(problem, {.tolerance = 1e-1}).passed());
}

TEST(CheckerOfGradients, PutsEveryEntryBackWhereItWas) {
  const GradientProblem problem = cubic_problem(Mistake::none, Discrete{});
  const Tensor z0 = problem.z0.clone(), theta = problem.field.parameters[0].clone(),
               depths = problem.depths.clone();
  check_gradients(problem);
  EXPECT_TRUE(torch::equal(problem.z0, z0));
  EXPECT_TRUE(torch::equal(problem.field.parameters[0], theta));
  EXPECT_TRUE(torch::equal(problem.depths, depths));
}

TEST(CheckerOfGradients, PutsEveryEntryBackWhenTheLossThrows) {
  GradientProblem problem = cubic_problem(Mistake::none, Discrete{});
  const Tensor z0 = problem.z0.clone();
  problem.loss = [calls = 0](const Solution& solution) mutable {
    if (++calls == 4) throw std::runtime_error("enough");
    return solution.states.sum();
  };
  EXPECT_THROW(check_gradients(problem), std::runtime_error);
  EXPECT_TRUE(torch::equal(problem.z0, z0));
}

TEST(CheckerOfGradients, FailsALossThatIsNotFinite) {
  GradientProblem problem = cubic_problem(Mistake::none, Discrete{});
  problem.loss = [](const Solution& solution) { return solution.states.sum() * NAN; };
  EXPECT_FALSE(check_gradients(problem).passed());
}

TEST(CheckerOfGradients, FailsDifferencesThatAreNotFinite) {
  GradientProblem problem = cubic_problem(Mistake::none, Discrete{});
  problem.loss = [calls = 0](const Solution& solution) mutable {
    return ++calls == 1 ? solution.states.sum() : solution.states.sum() * NAN;
  };
  EXPECT_FALSE(check_gradients(problem).passed());
}

TEST(CheckerOfGradients, RefusesWhatItCannotMove) {
  const auto complaint = [](auto change) {
    GradientProblem problem = cubic_problem(Mistake::none, Discrete{});
    change(problem);
    return message_of([&] { check_gradients(problem); });
  };
  EXPECT_EQ(complaint([](GradientProblem& problem) {
              problem.z0 = variables({1.0, 2.0}) * 2;
            }),
            "`z0` must be a leaf tensor, got the result of a computation");
  EXPECT_EQ(complaint([](GradientProblem& problem) { problem.field.parameters[0] = variable(1.0) * 2; }),
            "`parameter 0` must be a leaf tensor, got the result of a computation");
  EXPECT_EQ(complaint([](GradientProblem& problem) { problem.z0 = problem.z0.t(); }),
            "`z0` must be contiguous");
  EXPECT_EQ(complaint([](GradientProblem& problem) { problem.z0 = problem.z0.to(torch::kFloat32); }),
            "gradients are checked in float64, got `z0` of type Float");
  EXPECT_EQ(complaint([](GradientProblem& problem) {
              problem.field.parameters[0] = torch::ones({2}, torch::kFloat32);
            }),
            "gradients are checked in float64, got `parameter 0` of type Float");
  EXPECT_EQ(complaint([](GradientProblem& problem) {
              problem.loss = [](const Solution& solution) { return solution.states[-1]; };
            }),
            "the loss must be a scalar, got shape [2, 2]");
}

TEST(CheckerOfGradients, RefusesToCheckNothing) {
  EXPECT_EQ(message_of([] { check_gradients(cubic_problem(Mistake::none, Discrete{}), {.entries = 0}); }),
            "`entries` must be positive, got 0");
}

}  // namespace
}  // namespace fathom::testing
