/// How a Session solves and differentiates.
///
///   SolveOptions{.steps = AdaptiveSteps{.relative_tolerance = 1e-6, .absolute_tolerance = 1e-6}, .threads = 2}
///   SolveOptions{.method = rk4(), .steps = FixedSteps{.count = 20}}
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fathom/ode/failure.hpp"
#include "fathom/ode/methods.hpp"
#include "fathom/ode/report.hpp"
#include "fathom/ode/step_event.hpp"
#include "fathom/ode/steps.hpp"

namespace fathom {

using ode::AdaptiveSteps;
using ode::ErrorNorm;
using ode::FailureReason;
using ode::FixedSteps;
using ode::i_control;
using ode::Method;
using ode::Next;
using ode::pi_control;
using ode::pid_control;
using ode::SolveFailure;
using ode::SolveReport;
using ode::StepControl;
using ode::StepEvent;
using ode::Steps;

using ode::bosh3;
using ode::cash_karp54;
using ode::dop853;
using ode::dopri5;
using ode::euler;
using ode::fehlberg45;
using ode::heun2;
using ode::heun3;
using ode::midpoint;
using ode::ralston2;
using ode::rk4;
using ode::rk4_38;
using ode::tsit5;

/// How gradients are found.
enum class Derivative {
  none,      ///< not at all: a solve keeps nothing for them
  discrete,  ///< the exact gradient of the computed solution, back through each accepted step
  adjoint  ///< the adjoint equation, integrated backwards: constant memory, exact in the limit of small tolerances
};

struct SolveOptions {
  Method method = {};  ///< dopri5
  Steps steps = AdaptiveSteps{};
  std::vector<double> break_points = {};  ///< depths where a step has to end, besides the field's own

  Derivative derivative = Derivative::discrete;
  std::int64_t checkpoint_every =
      1;  ///< discrete: keep the state of every n-th step only and recompute those between
  std::int64_t memory_budget =
      0;  ///< discrete: bytes of kept states; n doubles when they would exceed it; 0: no limit
  std::optional<Steps> adjoint_steps = {};  ///< adjoint: of the way back; default: `steps`

  /// Threads that may share the samples of a batch of more than 16. Steps and states do not depend on their number, sums over samples only
  /// by rounding.
  int threads = 1;

  /// Called after every attempted step, by the thread that solves; may stop the solve. Not with steps for each sample.
  std::function<Next(const StepEvent&)> observer = {};
};

}  // namespace fathom
