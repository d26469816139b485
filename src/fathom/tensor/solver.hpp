/// How a field is integrated: method, steps and who watches.
///
///   Solver{.method = tsit5(), .steps = AdaptiveSteps{.relative_tolerance = 1e-6, .absolute_tolerance = 1e-6}}
#pragma once

#include <functional>

#include "fathom/ode/integrate.hpp"
#include "fathom/ode/methods.hpp"
#include "fathom/tensor/vector_field.hpp"

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
using ode::steps_along;

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

struct Solver {
  ode::Method method = {};  ///< dopri5
  ode::Steps steps = AdaptiveSteps{};

  /// Keep the interpolant of every step, so that the solution can be read at any depth afterwards.
  bool dense = false;

  /// Use the fused engine where the field has a program for it; the answer is the same to rounding.
  bool fused = true;

  /// Called after every attempted step with the state it left; may stop the solve.
  std::function<Next(const StepEvent& event, const Tensor& state)> observer = {};
};

}  // namespace fathom
