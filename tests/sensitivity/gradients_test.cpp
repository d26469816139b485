/// Every explicit method x every sensitivity x every kind of loss, against finite differences and against each other.
/// One check covers z0, both bounds, saved depths, weights, the control, and a parameter that the field does not use.
#include <gtest/gtest.h>

#include <tuple>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

using MethodAndLoss = std::tuple<std::string, LossKind>;

ode::ButcherTableau method_named(const std::string& name) {
  for (const auto& method : ode::all_methods()) {
    if (method.name == name) return method;
  }
  throw std::invalid_argument(name);
}

std::vector<std::string> names(bool (*wanted)(const ode::ButcherTableau&)) {
  std::vector<std::string> found;
  for (const auto& method : ode::all_methods()) {
    if (wanted(method)) found.push_back(method.name);
  }
  return found;
}

std::string label(const ::testing::TestParamInfo<MethodAndLoss>& info) {
  return std::get<0>(info.param) + "_" + name(std::get<1>(info.param));
}

constexpr std::int64_t fixed_count = 7;

class EveryMethod : public ::testing::TestWithParam<MethodAndLoss> {
 protected:
  ode::ButcherTableau method() const { return method_named(std::get<0>(GetParam())); }
  LossKind loss() const { return std::get<1>(GetParam()); }
};

TEST_P(EveryMethod, DiscreteEqualsFiniteDifferencesWithFixedSteps) {
  const auto check = check_gradients(full_problem(loss(), fixed(method(), fixed_count)));
  EXPECT_TRUE(check.passed()) << check.table();
}

TEST_P(EveryMethod, DiscreteEqualsTheUnrolledGraph) {
  const Solver solver = fixed(method(), fixed_count);
  EXPECT_LT(
      distance(gradients(full_problem(loss(), solver)), gradients(full_problem(loss(), solver, Unrolled{}))),
      1e-12);
}

TEST_P(EveryMethod, CheckpointsDoNotChangeOneBitOfTheGradient) {
  const Solver solver = fixed(method(), fixed_count);
  const auto all = gradients(full_problem(loss(), solver));
  for (const Discrete& thinned :
       {Discrete{.checkpoint_every = 3}, Discrete{.checkpoint_every = 100}, Discrete{.memory_budget = 200}}) {
    const auto some = gradients(full_problem(loss(), solver, thinned));
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(torch::equal(some[i], all[i])) << "variable " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, EveryMethod,
                         ::testing::Combine(::testing::ValuesIn(names([](const auto&) { return true; })),
                                            ::testing::ValuesIn(all_losses)),
                         label);

class EveryAdaptiveMethod : public EveryMethod {};

TEST_P(EveryAdaptiveMethod, DiscreteEqualsFiniteDifferencesAlongItsOwnSteps) {
  const auto check = check_gradients(full_problem(loss(), adaptive(method(), 1e-4)));
  EXPECT_TRUE(check.passed()) << check.table();
}

TEST_P(EveryAdaptiveMethod, DiscreteEqualsTheUnrolledGraphAlongItsOwnSteps) {
  const Solver solver = adaptive(method(), 1e-4);
  EXPECT_LT(
      distance(gradients(full_problem(loss(), solver)), gradients(full_problem(loss(), solver, Unrolled{}))),
      1e-12);
}

INSTANTIATE_TEST_SUITE_P(Gradients, EveryAdaptiveMethod,
                         ::testing::Combine(::testing::ValuesIn(names([](const auto& method) {
                                              return method.adaptive();
                                            })),
                                            ::testing::ValuesIn(all_losses)),
                         label);

class EveryPrecisePair : public EveryMethod {};

/// A second-order pair would need a million steps for this tolerance; for those see the convergence test below.
TEST_P(EveryPrecisePair, AdjointsAgreeWithDiscreteAtTightTolerance) {
  Solver solver = adaptive(method(), 1e-12);
  // The slope of cubic Hermite output, which is what Discrete gives for an inner depth, is only of order 3.
  if (method().dense_order == 3) std::get<AdaptiveSteps>(solver.steps).largest_step = 0.005;
  const auto exact = gradients(full_problem(loss(), solver));
  EXPECT_LT(distance(gradients(full_problem(loss(), solver, Adjoint{})), exact), 1e-8);
  EXPECT_LT(distance(gradients(full_problem(loss(), solver, InterpolatedAdjoint{})), exact), 1e-8);
}

TEST_P(EveryPrecisePair, AdjointsEqualFiniteDifferencesAtTightTolerance) {
  for (const Sensitivity& sensitivity : std::vector<Sensitivity>{Adjoint{}, InterpolatedAdjoint{}}) {
    const auto check = check_gradients(full_problem(loss(), adaptive(method(), 1e-12), sensitivity));
    EXPECT_TRUE(check.passed()) << check.table();
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, EveryPrecisePair,
                         ::testing::Combine(::testing::ValuesIn(names([](const auto& method) {
                                              return method.adaptive() && method.order >= 4;
                                            })),
                                            ::testing::ValuesIn(all_losses)),
                         label);

class EveryFixedStepMethod : public EveryMethod {};

/// With coarse fixed steps a continuous adjoint is not the gradient of the computed solution; it comes closer with the
/// order of the method.
TEST_P(EveryFixedStepMethod, AdjointsConvergeToDiscreteWithTheMethodsOrder) {
  const auto gap = [&](std::int64_t steps, const Sensitivity& sensitivity) {
    const Solver solver = fixed(method(), steps);
    return distance(gradients(full_problem(loss(), solver, sensitivity)),
                    gradients(full_problem(loss(), solver)));
  };
  // For an inner depth Discrete gives the slope of cubic Hermite output, which is only of order 3.
  const double order = loss() == LossKind::mixed ? std::min(method().order, 3) : method().order;
  for (const Sensitivity& sensitivity : std::vector<Sensitivity>{Adjoint{}, InterpolatedAdjoint{}}) {
    const double coarse = gap(12, sensitivity), fine = gap(48, sensitivity);
    EXPECT_GT(std::log(coarse / std::max(fine, 1e-14)) / std::log(4.0), order - 0.5)
        << coarse << " -> " << fine;
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, EveryFixedStepMethod,
                         ::testing::Combine(::testing::ValuesIn(names([](const auto& method) {
                                              return method.order <= 4;
                                            })),
                                            ::testing::Values(LossKind::terminal, LossKind::mixed)),
                         label);

}  // namespace
}  // namespace fathom::testing
