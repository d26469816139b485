/// The only integration loop. It chooses steps, accepts or rejects them, saves states by dense output, stops at break
/// points and turns trouble into typed failures; the arithmetic is an engine's (tensors, plain vectors, fused kernels).
///
///   PlainEngine engine(field, {1.0}, dopri5(), tolerance);
///   const SolveReport report = integrate(engine, {.method = dopri5(), .steps = tolerance}, {0.0, 0.5, 1.0});
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fathom/ode/control.hpp"
#include "fathom/ode/failure.hpp"
#include "fathom/ode/grid.hpp"
#include "fathom/ode/methods.hpp"
#include "fathom/ode/report.hpp"
#include "fathom/ode/stability.hpp"
#include "fathom/ode/step.hpp"
#include "fathom/ode/step_event.hpp"
#include "fathom/ode/steps.hpp"
#include "fathom/ode/tableau.hpp"
#include "fathom/ode/with_site.hpp"

namespace fathom::ode {

/// What the loop asks of an engine. An engine holds the state, its rate and one trial step.
template <class E>
concept Engine = requires(E& engine, const Step& step, std::size_t place, double fraction) {
  /// Norms of state and rate at the start of `step`, scaled by the tolerance.
  { engine.start_norms(step) } -> std::same_as<StartNorms>;
  /// Norm of f(end, z + h f) - f, scaled likewise, divided by the size of `probe`.
  { engine.curvature(step) } -> std::same_as<double>;
  /// Runs all stages; keeps the candidate state and gives its error.
  { engine.attempt(step) } -> std::same_as<TrialError>;
  /// The candidate becomes the state; its stages stay until the next attempt.
  engine.accept();
  /// Saves the state, or the interpolant inside the step accepted last.
  engine.save_state(place);
  engine.save_inside(place, fraction);
  /// The rate at the end of the last step is not the rate at the start of the next one: the field jumps there.
  engine.forget_rate();
  { engine.evaluations() } -> std::convertible_to<std::int64_t>;
  /// Names the first value that is not finite, for example "z[3, 1] = nan".
  { engine.offender() } -> std::convertible_to<std::string>;
};

/// An engine that can send another one of its kind ahead, from its state and with another method and tolerance.
template <class E>
concept Scouting = Engine<E> && requires(const E& engine, const Method& method, const AdaptiveSteps& steps) {
  { engine.scout(method, steps) } -> std::same_as<E>;
};

/// An engine that can measure what it has computed: for the limits that stability and rounding set to steps.
template <class E>
concept Measuring = Engine<E> && requires(E& engine, const std::vector<double>& weights) {
  /// The distance between neighbouring numbers of the state's type near 1.
  { engine.resolution() } -> std::convertible_to<double>;
  /// Norm of the state, scaled by the tolerance.
  { engine.state_norm() } -> std::convertible_to<double>;
  /// Norm of sum_i weights_i k_i over the stages of the step accepted last, scaled likewise.
  { engine.rate_norm(weights) } -> std::convertible_to<double>;
};

struct Plan {
  Method method = {};
  Steps steps = AdaptiveSteps{};
  std::vector<double> break_points = {};
  std::function<Next(const StepEvent&)> observer = {};
};

/// The walks of one plan, for many solves with it: made by the first one, so that later ones allocate nothing. Of fixed steps that holds
/// while the bounds are the same.
class Walks {
 public:
  AdaptiveWalk& adaptive(const AdaptiveSteps& steps, const Plan& plan, double first, double last) {
    if (!fresh_) fresh_.emplace(steps, plan.method);
    adaptive_ = *fresh_;  // in the memory of the solve before
    adaptive_->begin(first, last, plan.break_points);
    return *adaptive_;
  }
  FixedWalk& fixed(const FixedSteps& steps, const Plan& plan, double first, double last) {
    if (!fixed_ || bounds_ != std::pair(first, last)) fixed_.emplace(steps, first, last, plan.break_points);
    bounds_ = {first, last};
    fixed_->begin_again();
    return *fixed_;
  }

 private:
  std::optional<AdaptiveWalk> fresh_, adaptive_;
  std::optional<FixedWalk> fixed_;
  std::pair<double, double> bounds_ = {};
};

template <Engine E> SolveReport integrate(E& engine, const Plan& plan, const std::vector<double>& depths);

namespace detail {

/// Runs `work`, and if the field throws in it, says where the solve stood.
template <class E, class Work> auto guarded(E& engine, const Step& step, Work&& work) {
  return with_site(work, [&] {
    return FailureSite{.depth = step.start, .step = step.size(), .evaluations = engine.evaluations()};
  });
}

template <class E>
[[noreturn]] void fail(E& engine, FailureReason reason, const Step& step, const SolveReport& report) {
  const FailureSite site{.depth = step.start,
                         .step = step.size(),
                         .evaluations = engine.evaluations() + report.scouting,
                         .component = reason == FailureReason::non_finite ? engine.offender() : std::string{},
                         .limits = report.limits};
  throw SolveFailure(reason, site, text("no end after ", report.accepted + report.rejected, " steps"));
}

/// Notes a tolerance that the state's type cannot meet. Costs nothing where the relative one is above its resolution.
template <Engine E> void note_resolution(E& engine, const Plan& plan, SolveReport& report) {
  if constexpr (Measuring<E>) {
    const auto* steps = std::get_if<AdaptiveSteps>(&plan.steps);
    const double resolution = engine.resolution();
    if (!steps || steps->relative_tolerance >= resolution) return;
    if (resolution * engine.state_norm() > 1) report.limits.resolution = resolution;
  }
}

template <Engine E> void prepare(E&, FixedWalk&, const SolveReport&) {}

template <Engine E> void prepare(E& engine, AdaptiveWalk& walk, const SolveReport& report) {
  if (!walk.needs_first_step()) return;
  Step probe = walk.propose();
  const StartNorms norms = guarded(engine, probe, [&] { return engine.start_norms(probe); });
  if (!std::isfinite(norms.state) || !std::isfinite(norms.rate)) {
    if (!engine.offender().empty()) fail(engine, FailureReason::non_finite, probe, report);
  }
  // Never beyond the first stop: the probe must see the piece of the field that the first step will see.
  const double size = std::min(walk.probe_size(norms), std::abs(probe.size()));
  const bool reaches_stop = size == std::abs(probe.size());
  if (!reaches_stop) probe.end = probe.start + std::copysign(size, probe.size());
  probe.ends_at_break = probe.ends_at_break && reaches_stop;
  const double curvature = guarded(engine, probe, [&] { return engine.curvature(probe); });
  walk.choose_first_step(norms, size, curvature);
}

inline void count(SolveReport& report, const Step& step, bool accepted) {
  if (!accepted) {
    ++report.rejected;
    return;
  }
  const double size = std::abs(step.size());
  report.smallest_step = report.accepted == 0 ? size : std::min(report.smallest_step, size);
  report.largest_step = std::max(report.largest_step, size);
  report.last_step = size;
  report.reached = step.end;
  ++report.accepted;
}

template <Engine E>
void save_reached(E& engine, const Step& step, const std::vector<double>& depths, std::size_t& next_saved) {
  for (; next_saved < depths.size() && step.contains(depths[next_saved]); ++next_saved) {
    const double fraction = step.fraction(depths[next_saved]);
    if (fraction == 1.0) {
      engine.save_state(next_saved);
    } else {
      guarded(engine, step, [&] { engine.save_inside(next_saved, fraction); });
    }
  }
}

/// Where steps shrink towards a depth ahead, a scout goes there with a loose tolerance. If even so its steps fall below the
/// resolution of depth, the state changes by its own size within nothing: it blows up, and the solve need not creep there.
/// Whatever else the scout meets, in states that only a loose tolerance leads to, is no concern of the solve.
template <Scouting E>
void look_ahead(const E& engine, const AdaptiveSteps& steps, const Convergence& ahead, SolveReport& report) {
  constexpr double loosest = 0.1;
  constexpr std::int64_t most_attempts = 500;
  const double looser = loosest / std::max(steps.relative_tolerance, steps.absolute_tolerance);
  if (looser <= 1) return;
  AdaptiveSteps loose{.relative_tolerance = looser * steps.relative_tolerance,
                      .absolute_tolerance = looser * steps.absolute_tolerance,
                      .norm = steps.norm,
                      .first_step = ahead.step,
                      .smallest_step = ahead.smallest,
                      .step_limit = most_attempts};
  const Plan plan{.method = bosh3(), .steps = loose};  // at such tolerances a low order is the cheapest
  E scout = engine.scout(plan.method, loose);
  std::optional<FailureSite> blow_up;
  try {
    integrate(scout, plan, {ahead.from, ahead.to});
  } catch (const SolveFailure& failure) {
    if (failure.reason == FailureReason::step_too_small) blow_up = failure.site;
  } catch (const std::exception&) {}
  report.scouting += scout.evaluations();
  if (!blow_up) return;
  blow_up->evaluations = engine.evaluations() + report.scouting;
  throw SolveFailure(FailureReason::step_too_small, *blow_up, "");
}

template <Engine E> void look_ahead(const E&, FixedWalk&, const Plan&, SolveReport&) {}

template <Engine E>
void look_ahead(const E& engine, AdaptiveWalk& walk, const Plan& plan, SolveReport& report) {
  if constexpr (Scouting<E>) {
    if (const auto ahead = walk.converges())
      look_ahead(engine, std::get<AdaptiveSteps>(plan.steps), *ahead, report);
  }
}

/// Measures the slope of the field where the watch asks for it, in the step accepted last.
template <Engine E>
void watch_stability(E& engine, StabilityWatch& watch, const Step& step, SolveReport& report) {
  if constexpr (Measuring<E>) {
    if (!watch.asks(report.accepted)) return;
    const StepSlope slope = guarded(engine, step, [&] {
      return StepSlope{.rates = engine.rate_norm(watch.gauge().rates),
                       .arguments = engine.rate_norm(watch.gauge().arguments),
                       .rounding = engine.resolution() * engine.state_norm()};
    });
    watch.see(step, slope);
    report.limits.steps = watch.limit();
    report.limits.stability_from = watch.limited_from();
  }
}

template <Engine E, class Walk>
void march(E& engine, Walk& walk, const Plan& plan, const std::vector<double>& depths, SolveReport& report) {
  std::size_t next_saved = 0;
  for (; next_saved < depths.size() && depths[next_saved] == depths.front(); ++next_saved)
    engine.save_state(next_saved);
  if (walk.finished()) return;
  note_resolution(engine, plan, report);
  prepare(engine, walk, report);
  constexpr bool is_fixed = std::same_as<Walk, FixedWalk>;
  StabilityWatch watch(is_fixed ? nullptr : plan.method.gauge());
  if (is_fixed) report.limits.steps = StepLimit::grid;
  while (!walk.finished()) {
    const Step step = walk.propose();
    const TrialError error = guarded(engine, step, [&] { return engine.attempt(step); });
    const Verdict verdict = walk.judge(step, error);
    count(report, step, verdict.accepted);
    if (verdict.failure) fail(engine, *verdict.failure, step, report);
    if (verdict.accepted) {
      engine.accept();
      save_reached(engine, step, depths, next_saved);
      if (step.ends_at_break) {
        engine.forget_rate();
      } else if (!walk.finished()) {
        watch_stability(engine, watch, step, report);
      }
      look_ahead(engine, walk, plan, report);
    }
    if (!plan.observer) continue;
    const StepEvent event{step, verdict.accepted, is_fixed ? 0 : error.ratio,
                          engine.evaluations() + report.scouting};
    if (plan.observer(event) == Next::stop && !walk.finished()) {
      report.stopped = true;
      return;
    }
  }
}

}  // namespace detail

/// Integrates from depths.front() to depths.back(); the engine saves its state at every depth reached. `walks`: of this plan.
template <Engine E>
SolveReport integrate(E& engine, const Plan& plan, const std::vector<double>& depths, Walks& walks) {
  check_depths(depths);
  if constexpr (requires { engine.follows(plan.method, std::get_if<AdaptiveSteps>(&plan.steps)); }) {
    require(
        engine.follows(plan.method, std::get_if<AdaptiveSteps>(&plan.steps)),
        "the engine and the plan must have the same method and tolerance; ode::solve() makes both from one");
  }
  const auto began = std::chrono::steady_clock::now();
  SolveReport report;
  report.reached = depths.front();
  const double first = depths.front(), last = depths.back();
  if (const auto* fixed = std::get_if<FixedSteps>(&plan.steps)) {
    detail::march(engine, walks.fixed(*fixed, plan, first, last), plan, depths, report);
  } else {
    const auto& adaptive = std::get<AdaptiveSteps>(plan.steps);
    detail::march(engine, walks.adaptive(adaptive, plan, first, last), plan, depths, report);
  }
  detail::note_resolution(engine, plan, report);
  report.evaluations = engine.evaluations() + report.scouting;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return report;
}

template <Engine E> SolveReport integrate(E& engine, const Plan& plan, const std::vector<double>& depths) {
  Walks walks;
  return integrate(engine, plan, depths, walks);
}

}  // namespace fathom::ode
