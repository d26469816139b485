/// Small fields and losses as programs with their tensors, and a solve with its gradient, for the tests of the fused engine.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "fathom/fused/engine.hpp"
#include "fathom/fused/sweep.hpp"
#include "fathom/ode/methods.hpp"

namespace fathom::fused {

template <class T> struct SmallNetwork {
  /// z' = V tanh(W z + b) + c
  SmallNetwork(std::int32_t features, std::int32_t hidden) {
    Builder build(features);
    const auto first = build.matrix({.weight = 0, .bias = 1, .outputs = hidden, .inputs = features});
    const auto last = build.matrix({.weight = 2, .bias = 3, .outputs = features, .inputs = hidden});
    build.give(build.layer(build.layer(build.state(), first, {FunctionKind::tanh}), last, {}));
    take(std::move(build), {features * hidden, hidden, features * hidden, features});
  }

  /// z' = V tanh((W + s W') [z, x] + b + s b') + c with two features of z and of x: every sample has its control, and weights vary
  /// with depth. Each call of the basis is counted where `calls` points.
  static SmallNetwork with_control_and_depth(std::int64_t batch, std::int64_t* calls = nullptr) {
    Builder build(2);
    const auto basis = build.basis({.size = 2,
                                    .values =
                                        [calls](double s) {
                                          if (calls) ++*calls;
                                          return std::vector<double>{1, s};
                                        },
                                    .slopes =
                                        [](double) {
                                          return std::vector<double>{0, 1};
                                        }});
    const auto first = build.matrix({.weight = 0, .bias = 1, .outputs = 16, .inputs = 4, .basis = basis});
    const auto last = build.matrix({.weight = 2, .bias = 3, .outputs = 2, .inputs = 16});
    const Rows both = build.joined({build.state(), build.input(4, 2)});
    build.give(build.layer(build.layer(both, first, {FunctionKind::tanh}), last, {}));
    SmallNetwork made;
    made.take(std::move(build), {2 * 16 * 4, 2 * 16, 2 * 16, 2, 2 * batch});
    return made;
  }

  /// |V z + c - y|^2 of two features and one answer.
  static SmallNetwork squared_error(std::int64_t batch) {
    Builder build(2, 1);
    const auto head = build.matrix({.weight = 0, .bias = 1, .outputs = 1, .inputs = 2});
    build.give(build.zeros(2));
    build.give_loss(0, build.distance(build.layer(build.state(), head, {}), build.input(2, 1)));
    SmallNetwork made;
    made.take(std::move(build), {2, 1, batch});
    return made;
  }

  Tensors<T> spans() const {
    Tensors<T> all;
    for (const auto& tensor : tensors) all.emplace_back(tensor.data(), tensor.size());
    return all;
  }

  std::shared_ptr<const Program> program;
  std::vector<std::vector<T>> tensors;

 private:
  SmallNetwork() = default;

  void take(Builder build, const std::vector<std::int64_t>& sizes) {
    program = std::make_shared<Program>(std::move(build).finish());
    T next = T(0.3);
    for (const std::int64_t size : sizes) {
      for (T& value : tensors.emplace_back(std::size_t(size))) value = T(0.5) * std::sin(next += T(1.7));
    }
  }
};

template <class T> struct Solved {
  std::vector<T> saved, start_gradient;
  std::vector<double> weight_gradient;
  std::int64_t recomputed = 0;
  ode::SolveReport report;
};

struct Budgets {
  std::int64_t activations = 0;
  std::int64_t rates = 0;
};

/// Two features of each sample, all different.
template <class T> std::vector<T> some_start(std::int64_t batch) {
  std::vector<T> start(std::size_t(batch) * 2);
  for (std::size_t n = 0; n < start.size(); ++n) start[n] = T(std::sin(double(n)));
  return start;
}

template <class T>
Solved<T> solved(const SmallNetwork<T>& network, std::int64_t batch, int threads,
                 const Budgets& budgets = {}) {
  Problem<T> problem(network.program, network.spans(), batch, threads);
  const std::vector<T> start = some_start<T>(batch);
  Solved<T> result;
  result.saved.resize(2 * start.size());
  const ode::AdaptiveSteps steps{.relative_tolerance = 1e-6, .absolute_tolerance = 1e-6};
  const ode::Method method = ode::dopri5();
  Engine<T> engine(problem,
                   {.method = method,
                    .adaptive = steps,
                    .keeps_starts = true,
                    .activation_budget = budgets.activations,
                    .rate_budget = budgets.rates},
                   start.data(), result.saved.data());
  result.report = ode::integrate(engine, {.method = method, .steps = steps}, {0.0, 3.0});
  const Pass<T> pass{.problem = &problem,
                     .method = method,
                     .records = &engine.records(),
                     .layout = engine.activation_layout(),
                     .start = start.data(),
                     .depths = {0.0, 3.0},
                     .bound = 2,
                     .given = 2};
  const std::vector<T> up(result.saved.size(), T(1));
  const SweepResult<T> back = pull_back(pass, up.data(), {});
  result.start_gradient = back.start;
  result.weight_gradient = back.weights;
  result.recomputed = back.recomputed;
  return result;
}

}  // namespace fathom::fused
