/// What the fused engine keeps for the way back, refuses and survives.
#include <gtest/gtest.h>

#include "fathom/support/error.hpp"
#include "fused/small_networks.hpp"

namespace fathom::fused {
namespace {

TEST(KeptActivations, GiveTheBitsThatRecomputingGives) {
  const SmallNetwork<float> network(2, 16);
  for (std::int64_t batch : {1, 5, 200}) {
    const auto recomputed = solved(network, batch, 1);
    std::int64_t before = recomputed.recomputed;
    for (std::int64_t budget : {64 * 1024, 256 * 1024, 16 * 1024 * 1024}) {
      const auto kept = solved(network, batch, 1, {.activations = budget});
      EXPECT_EQ(kept.start_gradient, recomputed.start_gradient);
      EXPECT_EQ(kept.weight_gradient, recomputed.weight_gradient);
      EXPECT_LE(kept.recomputed, before);
      before = kept.recomputed;
    }
    EXPECT_EQ(before, 0) << "all stages were kept";
  }
}

template <class T> void expect_same_bits_from_rates() {
  const SmallNetwork<T> network(2, 16);
  for (std::int64_t batch : {1, 5, 200, 1500}) {
    const auto recomputed = solved(network, batch, 1);
    const std::int64_t step_bytes = (batch + 64) * 2 * 7 * std::int64_t(sizeof(T));
    for (const Budgets& budgets :
         {Budgets{0, 2 * step_bytes}, Budgets{0, 1 << 24}, Budgets{step_bytes * 16, 2 * step_bytes},
          Budgets{step_bytes * 16, 1 << 24}}) {
      const auto kept = solved(network, batch, 2, budgets);
      EXPECT_EQ(kept.start_gradient, recomputed.start_gradient);
      for (std::size_t n = 0; n < kept.weight_gradient.size(); ++n) {
        EXPECT_NEAR(kept.weight_gradient[n], recomputed.weight_gradient[n],
                    1e-9 * std::abs(kept.weight_gradient[n]));
      }
    }
  }
}

TEST(KeptRates, GiveTheBitsThatRecomputingGives) {
  expect_same_bits_from_rates<float>();
  expect_same_bits_from_rates<double>();
}

TEST(FusedProblem, OfNoSamplesIsSolved) {
  const auto nothing = solved(SmallNetwork<float>(2, 16), 0, 1);
  EXPECT_TRUE(nothing.saved.empty());
}

TEST(FusedProblem, RefusesTensorsOfAnotherSizeThanTheProgramReads) {
  SmallNetwork<float> network(2, 16);
  network.tensors[2].resize(3);
  EXPECT_THROW(Problem<float>(network.program, network.spans(), 4, 1), InvalidArgument);
  network.tensors.pop_back();
  EXPECT_THROW(Problem<float>(network.program, network.spans(), 4, 1), InvalidArgument);
}

TEST(FusedSweep, IsRightAgainAfterABasisThrewInIt) {
  int calls_left = 1'000'000;
  Builder build(2);
  const auto basis = build.basis({.size = 1,
                                  .values =
                                      [&](double) {
                                        if (--calls_left == 0) throw std::runtime_error("basis");
                                        return std::vector<double>{1.0};
                                      },
                                  .slopes = [](double) { return std::vector<double>{0.0}; }});
  const auto first = build.matrix({.weight = 0, .bias = 1, .outputs = 16, .inputs = 2, .basis = basis});
  const auto last = build.matrix({.weight = 2, .bias = 3, .outputs = 2, .inputs = 16});
  build.give(build.layer(build.layer(build.state(), first, {FunctionKind::tanh}), last, {}));
  const SmallNetwork<float> network(2, 16);
  Problem<float> problem(std::make_shared<Program>(std::move(build).finish()), network.spans(), 10, 1);
  const std::vector<float> start(20, 0.5f), up(40, 1.0f);
  std::vector<float> saved(40);
  const ode::ButcherTableau method = ode::rk4();
  Engine<float> engine(problem, {.method = method, .keeps_starts = true, .keep_every = 4}, start.data(),
                       saved.data());
  ode::integrate(engine, {.method = method, .steps = ode::FixedSteps{.count = 8}}, {0.0, 1.0});
  const Pass<float> pass{.problem = &problem,
                         .method = method,
                         .records = &engine.records(),
                         .start = start.data(),
                         .depths = {0.0, 1.0},
                         .bound = 2,
                         .given = 2};
  const auto expected = pull_back(pass, up.data(), {}).start;
  calls_left = 20;
  EXPECT_THROW(pull_back(pass, up.data(), {}), std::runtime_error);
  calls_left = 1'000'000;
  EXPECT_EQ(pull_back(pass, up.data(), {}).start, expected);
}

/// `count` Euler steps taken for one.
ode::ButcherTableau eulers(int count) {
  ode::ButcherTableau method{.name = "eulers", .order = 1};
  for (int i = 0; i < count; ++i) {
    method.c.push_back(double(i) / count);
    method.a.emplace_back(std::size_t(i), 1.0 / count);
    method.b.push_back(1.0 / count);
  }
  return method;
}

/// z at both ends, and dL/dz(0) for L = sum z(0) + sum z(1), after fixed steps.
std::pair<std::vector<double>, std::vector<double>> ends_and_gradient(const ode::ButcherTableau& tableau,
                                                                      std::int64_t steps) {
  const SmallNetwork<double> network(2, 16);
  Problem<double> problem(network.program, network.spans(), 5, 1);
  const ode::Method method = tableau;
  const std::vector<double> start = some_start<double>(5), up(2 * start.size(), 1.0);
  std::vector<double> saved(up.size());
  Engine<double> engine(problem, {.method = method, .keeps_starts = true}, start.data(), saved.data());
  ode::integrate(engine, {.method = method, .steps = ode::FixedSteps{.count = steps}}, {0.0, 1.0});
  const Pass<double> pass{.problem = &problem,
                          .method = method,
                          .records = &engine.records(),
                          .layout = engine.activation_layout(),
                          .start = start.data(),
                          .depths = {0.0, 1.0},
                          .bound = 2,
                          .given = 2};
  return {saved, pull_back(pass, up.data(), {}).start};
}

TEST(FusedEngine, TakesAMethodOfAsManyStagesAsItSays) {
  const auto [ends, gradient] = ends_and_gradient(eulers(24), 2);
  const auto [expected_ends, expected_gradient] = ends_and_gradient(eulers(1), 48);
  for (std::size_t n = 0; n < ends.size(); ++n) EXPECT_NEAR(ends[n], expected_ends[n], 1e-12);
  for (std::size_t n = 0; n < gradient.size(); ++n) {
    EXPECT_NEAR(gradient[n], expected_gradient[n], 1e-12);
    EXPECT_NE(gradient[n], 2) << "the field must matter";
  }
  try {
    ends_and_gradient(eulers(25), 2);
    FAIL() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "a method has at most 24 stages here, got 25");
  }
}

/// y' = y^2 from 1 has no end beyond depth 1; nobody waits for a solve that creeps there.
TEST(FusedEngine, FindsABlowUpInFewEvaluations) {
  Builder build(1);
  build.give(build.multiply(build.state(), build.state()));
  const auto program = std::make_shared<Program>(std::move(build).finish());
  for (const ode::ButcherTableau& method : ode::all_methods()) {
    if (!method.adaptive()) continue;
    Problem<double> problem(program, {}, 1, 1);
    const ode::AdaptiveSteps steps;
    const double start = 1;
    Engine<double> engine(problem, {.method = method, .adaptive = steps}, &start, nullptr);
    try {
      ode::integrate(engine, {.method = method, .steps = steps}, {0.0, 2.0});
      FAIL() << method.name << " came through";
    } catch (const ode::SolveFailure& failure) {
      EXPECT_LT(failure.site.evaluations, 1000) << method.name;
      EXPECT_NEAR(failure.site.depth, 1, 0.05) << method.name;
    }
  }
}

}  // namespace
}  // namespace fathom::fused
