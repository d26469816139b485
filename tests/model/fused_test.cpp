/// The fused engine against the tensor engine, which stays its reference: same steps, same states, same gradients, over
/// wrappers, sizes, random layers, methods and losses, in both precisions and by every sensitivity that has kernels.
#include "model/fused_problems.hpp"

namespace fathom::testing {
namespace {

class EveryWrapper : public ::testing::TestWithParam<std::string> {
 protected:
  /// Every size; the first problem that differs is enough to read.
  template <class Change>
  void expect_all_equal(torch::ScalarType type, Stepping stepping, double tolerance, Change&& change) {
    for (const Draw& draw : draws_of(GetParam(), type, stepping)) {
      Problem problem = random_problem(draw);
      change(problem);
      expect_equal(problem, tolerance);
      if (HasFailure()) return;
    }
  }
  void expect_all_equal(torch::ScalarType type, Stepping stepping, double tolerance) {
    expect_all_equal(type, stepping, tolerance, [](Problem&) {});
  }
  static void use_adjoint(Problem& problem) { problem.sensitivity = Adjoint{}; }
  /// Steps backwards are not recorded, so that only fixed ones can be the same for both engines.
  static void use_adjoint_on_fixed_steps(Problem& problem) {
    problem.sensitivity = Adjoint{.solver = fixed(rk4(), 3)};
  }
};

TEST_P(EveryWrapper, GivesTheSameInDoublePrecisionOnFixedSteps) {
  expect_all_equal(torch::kFloat64, Stepping::fixed, 1e-12);
}

TEST_P(EveryWrapper, GivesTheSameInDoublePrecisionOnAdaptiveSteps) {
  expect_all_equal(torch::kFloat64, Stepping::adaptive, 1e-12);
}

TEST_P(EveryWrapper, GivesTheSameInSinglePrecisionOnFixedSteps) {
  expect_all_equal(torch::kFloat32, Stepping::fixed, 1e-5);
}

TEST_P(EveryWrapper, GivesTheSameInSinglePrecisionOnAdaptiveSteps) {
  expect_all_equal(torch::kFloat32, Stepping::adaptive, 1e-5);
}

TEST_P(EveryWrapper, GivesTheSameByAdjointInDoublePrecision) {
  expect_all_equal(torch::kFloat64, Stepping::fixed, 1e-12, use_adjoint);
}

TEST_P(EveryWrapper, GivesTheSameByAdjointInSinglePrecision) {
  expect_all_equal(torch::kFloat32, Stepping::fixed, 1e-5, use_adjoint);
}

TEST_P(EveryWrapper, GivesTheSameByAdjointFromTheEndOfAdaptiveSteps) {
  expect_all_equal(torch::kFloat64, Stepping::adaptive, 1e-12, use_adjoint_on_fixed_steps);
  expect_all_equal(torch::kFloat32, Stepping::adaptive, 1e-5, use_adjoint_on_fixed_steps);
}

/// The way back ends where its own steps lead, and these differ by the last digits of their errors.
TEST_P(EveryWrapper, GivesNearlyTheSameByAdjointOnAdaptiveStepsBackwards) {
  expect_all_equal(torch::kFloat64, Stepping::adaptive, 1e-7, use_adjoint);
}

TEST_P(EveryWrapper, GivesTheSameFromCheckpoints) {
  for (const std::int64_t batch : {1, 5, 130}) {
    Problem problem = random_problem({GetParam(), torch::kFloat64, batch, 3, 0});
    problem.solver = fixed(rk4(), 7);
    const std::vector<Tensor> expected = answers_by(Engine::fused, problem).gradients;
    for (const Discrete& how : {Discrete{.checkpoint_every = 3}, Discrete{.memory_budget = 1}}) {
      problem.sensitivity = how;
      const std::vector<Tensor> given = answers_by(Engine::fused, problem).gradients;
      for (std::size_t i = 0; i < given.size(); ++i) ASSERT_LT(distance(given[i], expected[i]), 1e-13) << i;
    }
  }
}

TEST_P(EveryWrapper, GivesTheSameWithAnyNumberOfThreads) {
  const Problem problem = random_problem({GetParam(), torch::kFloat64, 130, 3, 0, Stepping::adaptive});
  const Answers one = answers_with_threads(problem, 1), three = answers_with_threads(problem, 3);
  EXPECT_EQ(one.solution.report().accepted, three.solution.report().accepted);
  EXPECT_EQ(one.solution.grid, three.solution.grid);
  EXPECT_TRUE(torch::equal(one.solution.states, three.solution.states));
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    EXPECT_LT(distance(three.gradients[i], one.gradients[i]), 1e-13) << i;
  }
}

std::string spelled(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Random, EveryWrapper, ::testing::ValuesIn(wrappers), spelled);

}  // namespace
}  // namespace fathom::testing
