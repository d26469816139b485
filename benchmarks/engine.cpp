/// The fused engine by itself: one step, a whole solve, a solve with its gradient. `step_of_one` is what a dopri5 step costs besides
/// arithmetic: a 2-2-2 field on one sample.
///
///   build/release/benchmarks/engine --benchmark_filter=step
#include <benchmark/benchmark.h>

#include "fathom/fathom.hpp"
#include "fathom/fused/engine.hpp"
#include "fathom/fused/sweep.hpp"

namespace {

using namespace fathom;

fused::Program network(std::int32_t features, std::int32_t hidden) {
  fused::Builder build(features);
  const auto first = build.matrix({.weight = 0, .bias = 1, .outputs = hidden, .inputs = features});
  const auto last = build.matrix({.weight = 2, .bias = 3, .outputs = features, .inputs = hidden});
  build.give(build.layer(build.layer(build.state(), first, {fused::FunctionKind::tanh}), last, {}));
  return std::move(build).finish();
}

/// A 2-hidden-2 field on a batch, integrated with a fixed number of dopri5 steps under error control's arithmetic.
void step(benchmark::State& state, std::int32_t hidden, std::int64_t batch) {
  const std::vector<float> weight(std::size_t(2 * hidden), 0.1f), bias(std::size_t(hidden), 0.1f);
  const fused::Tensors<float> tensors = {weight, bias, weight, {bias.data(), 2}};
  fused::Problem<float> problem(std::make_shared<fused::Program>(network(2, hidden)), tensors, batch, 1);
  const std::vector<float> start(std::size_t(2 * batch), 0.5f);
  std::vector<float> saved(2 * start.size());
  constexpr std::int64_t steps = 1000;
  const AdaptiveSteps adaptive{.first_step = 1e-3, .largest_step = 1e-3};
  for (auto _ : state) {
    fused::Engine<float> engine(problem, {.method = dopri5(), .adaptive = adaptive}, start.data(),
                                saved.data());
    ode::integrate(engine, {.method = dopri5(), .steps = adaptive}, {0.0, 1.0});
  }
  state.SetItemsProcessed(state.iterations() * steps);
  state.counters["us/step"] = benchmark::Counter(
      double(steps) * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
void step_of_one(benchmark::State& state) { step(state, 2, 1); }
void step_of_batch(benchmark::State& state) { step(state, 32, state.range(0)); }

/// The public path: a NeuralOde of 2-hidden-2 tanh, dopri5 at 1e-4.
void solve(benchmark::State& state) {
  const torch::NoGradGuard no_graph;
  NeuralOde ode(autonomous(mlp({.features = {2, state.range(1), 2}})));
  const Tensor x = torch::randn({state.range(0), 2});
  for (auto _ : state) benchmark::DoNotOptimize(ode->forward(x));
}
void solve_with_gradient(benchmark::State& state) {
  NeuralOde ode(autonomous(mlp({.features = {2, state.range(1), 2}})));
  const Tensor x = torch::randn({state.range(0), 2});
  for (auto _ : state) ode->forward(x).square().mean().backward();
}

BENCHMARK(step_of_one);
BENCHMARK(step_of_batch)->Arg(1)->Arg(64)->Arg(1024);
BENCHMARK(solve)->ArgsProduct({{1, 128, 1024}, {32, 128}});
BENCHMARK(solve_with_gradient)->ArgsProduct({{1, 128, 1024}, {32, 128}});

}  // namespace
