/// What every client of the fused engine decides alike: how many threads work on a batch, and what is kept for a gradient.
#pragma once

#include <algorithm>
#include <variant>

#include "fathom/fused/engine.hpp"

namespace fathom::fused {

/// A batch of one, or too few samples to fill two vectors a thread, is not worth a second thread.
inline int threads_for(std::int64_t batch, int most) { return batch <= 16 ? 1 : most; }

/// Activations of a thread are kept for the way back while they are few; beyond that, reading them back from memory costs as
/// much as computing them again.
inline constexpr std::int64_t activation_budget = 8 * 1024 * 1024;
/// Rates are few: from them the way back finds the arguments of all stages, and only what it needs of the layers between.
inline constexpr std::int64_t rate_budget = 64 * 1024 * 1024;

inline EngineOptions engine_options(const ode::Method& method, const ode::Steps& steps) {
  EngineOptions options{.method = method};
  if (const auto* adaptive = std::get_if<ode::AdaptiveSteps>(&steps)) options.adaptive = *adaptive;
  return options;
}

/// Which start states of steps are kept: every n-th, and n doubles whenever they would take more than `budget` bytes (0: no limit).
struct Checkpoints {
  std::int64_t every = 1;
  std::int64_t budget = 0;
};

/// What the discrete gradient needs, of `threads` threads.
inline void keep_for_gradient(const Checkpoints& checkpoints, int threads, EngineOptions& options) {
  options.keeps_starts = true;
  options.keep_every = checkpoints.every;
  options.keep_budget = checkpoints.budget;
  if (checkpoints.every == 1 && checkpoints.budget == 0) {
    options.activation_budget = activation_budget * threads;
    options.rate_budget = rate_budget;
  }
}

/// The steps for one stretch of a way back that covers a part of the whole span: a count of steps is meant for all of it.
inline ode::Steps steps_for_stretch(ode::Steps steps, double stretch, double span) {
  if (auto* fixed = std::get_if<ode::FixedSteps>(&steps); fixed && fixed->count > 0) {
    fixed->count = std::max<std::int64_t>(
        1, std::int64_t(std::ceil(double(fixed->count) * std::abs(stretch / span) - 1e-9)));
  }
  return steps;
}

}  // namespace fathom::fused
