/// The fused engine measures what the loop asks for, and computes the same bits as if it had not been asked.
#include <gtest/gtest.h>

#include "fused/small_networks.hpp"
#include "support/plain/bare_engine.hpp"

namespace fathom::fused {
namespace {

using testing::BareEngine;

/// z_1' = -1000 (z_1 - z_2),  z_2' = -z_2 / 10
template <class T> struct Stiff {
  explicit Stiff(std::int64_t batch) : start(some_start<T>(batch)) {
    Builder build(2);
    const auto matrix = build.matrix({.weight = 0, .bias = 1, .outputs = 2, .inputs = 2});
    build.give(build.layer(build.state(), matrix, {}));
    program = std::make_shared<Program>(std::move(build).finish());
  }
  Tensors<T> tensors() const { return {weight, bias}; }

  std::vector<T> weight = {-1000, 1000, 0, T(-0.1)}, bias = {0, 0}, start;
  std::shared_ptr<const Program> program;
};

struct Watched {
  ode::SolveReport report;
  std::vector<double> saved, gradient;
};

template <class T>
Watched solved_stiff(const ode::Method& method, std::int64_t batch, bool measures,
                     ode::ErrorNorm norm = ode::ErrorNorm::batch) {
  const Stiff<T> stiff(batch);
  Problem<T> problem(stiff.program, stiff.tensors(), batch, 2);
  const ode::AdaptiveSteps steps{.relative_tolerance = 1e-3, .absolute_tolerance = 1e-3, .norm = norm};
  const std::vector<double> depths = {0, 0.3, 1};
  std::vector<T> saved(depths.size() * stiff.start.size());
  Engine<T> engine(problem,
                   {.method = method, .adaptive = steps, .keeps_starts = true, .activation_budget = 1 << 14},
                   stiff.start.data(), saved.data());
  const ode::Plan plan{.method = method, .steps = steps};
  Watched result;
  if (measures) {
    result.report = ode::integrate(engine, plan, depths);
  } else {
    BareEngine<Engine<T>> without{engine};
    result.report = ode::integrate(without, plan, depths);
  }
  const Pass<T> pass{.problem = &problem,
                     .method = method,
                     .records = &engine.records(),
                     .layout = engine.activation_layout(),
                     .start = stiff.start.data(),
                     .depths = depths,
                     .bound = depths.size(),
                     .given = depths.size()};
  const std::vector<T> up(saved.size(), T(1));
  const SweepResult<T> back = pull_back(pass, up.data(), {});
  result.saved.assign(saved.begin(), saved.end());
  result.gradient = back.weights;
  result.gradient.insert(result.gradient.end(), back.start.begin(), back.start.end());
  return result;
}

template <class T> void expect_told_with_the_same_bits() {
  static_assert(ode::Measuring<Engine<T>>);
  for (const ode::ButcherTableau& method : {ode::dopri5(), ode::tsit5(), ode::cash_karp54(), ode::heun2()}) {
    for (const std::int64_t batch : {1, 5, 200}) {
      const Watched watched = solved_stiff<T>(method, batch, true),
                    bare = solved_stiff<T>(method, batch, false);
      EXPECT_TRUE(watched.report.limits.stability_from) << method.name << ", " << batch;
      EXPECT_FALSE(bare.report.limits.stability_from);
      EXPECT_EQ(watched.saved, bare.saved) << method.name << ", " << batch;
      EXPECT_EQ(watched.gradient, bare.gradient) << method.name << ", " << batch;
      EXPECT_EQ(watched.report.evaluations, bare.report.evaluations) << method.name << ", " << batch;
    }
  }
}

TEST(FusedEngine, TellsOfStiffnessWithoutChangingABit) {
  expect_told_with_the_same_bits<float>();
  expect_told_with_the_same_bits<double>();
}

TEST(FusedEngine, TellsOfStiffnessInTheWorstSample) {
  const auto watched = solved_stiff<double>(ode::dopri5(), 70, true, ode::ErrorNorm::per_sample);
  EXPECT_TRUE(watched.report.limits.stability_from);
}

TEST(FusedEngine, TellsThatTheToleranceIsBelowTheResolutionOfItsType) {
  const SmallNetwork<float> network(2, 16);
  for (const bool measures : {true, false}) {
    Problem<float> problem(network.program, network.spans(), 5, 1);
    const std::vector<float> start = some_start<float>(5);
    const ode::AdaptiveSteps steps{
        .relative_tolerance = 1e-12, .absolute_tolerance = 1e-12, .step_limit = 50};
    Engine<float> engine(problem, {.adaptive = steps}, start.data(), nullptr);
    std::string message;
    try {
      const ode::Plan plan{.steps = steps};
      BareEngine<Engine<float>> without{engine};
      measures ? ode::integrate(engine, plan, {0.0, 3.0}) : ode::integrate(without, plan, {0.0, 3.0});
    } catch (const ode::SolveFailure& failure) { message = failure.what(); }
    EXPECT_EQ(message.find("the tolerance is below the resolution of the state's type, 1.2e-07: raise "
                           "`relative_tolerance`, or solve in float64") != std::string::npos,
              measures)
        << message;
  }
}

TEST(FusedEngine, MeasuresNothingInTheAdjointThatWouldCostEvaluations) {
  const Stiff<double> stiff(3);
  Problem<double> problem(stiff.program, stiff.tensors(), 3, 1);
  std::vector<double> start = stiff.start;
  start.resize(2 * start.size(), 1.0);
  const ode::Method method = ode::cash_karp54();
  const ode::AdaptiveSteps steps{.relative_tolerance = 1e-3, .absolute_tolerance = 1e-3};
  Engine<double> engine(problem, {.method = method, .adaptive = steps, .adjoint = true}, start.data(),
                        nullptr);
  const ode::SolveReport report = ode::integrate(engine, {.method = method, .steps = steps}, {0.0, 0.2});
  EXPECT_GT(report.accepted, 30);
  EXPECT_EQ(report.limits.steps, ode::StepLimit::unknown);
}

}  // namespace
}  // namespace fathom::fused
