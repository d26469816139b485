/// How a solve is differentiated. Discrete is the default and the exact one; the others are the paper's, for comparison,
/// and for memory that must not grow with the number of steps.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "fathom/tensor/solver.hpp"

namespace fathom {

/// The exact gradient of the computed solution: the adjoint is pulled back through each accepted step, last to first.
/// Memory: the states at the steps' starts and the graph of one step.
struct Discrete {
  std::int64_t checkpoint_every = 1;  ///< keep the state of every n-th step only and recompute those between
  std::int64_t memory_budget =
      0;  ///< bytes of kept states; n doubles whenever they would exceed it; 0: no limit
};

/// The paper's (G1): z and its adjoint are integrated backwards together, restarted at every saved depth.
///   da/ds = -a df/dz,   a(S) = dL/dz(S),   dL/dtheta = int a df/dtheta ds
/// Constant memory; exact only in the limit of small tolerances, and z may drift where the field contracts.
struct Adjoint {
  std::optional<Solver> solver = {};  ///< default: the forward one
  /// The error of the gradient block influences neither z nor a; it shrinks the step only when this is set
  /// (Kidger, Chen, Lyons 2021 call the default a seminorm).
  bool parameters_in_error_norm = false;
};

/// The adjoint integrated backwards along the forward solve's dense output: no drift, memory of all stages.
struct InterpolatedAdjoint {
  std::optional<Solver> solver = {};
  bool parameters_in_error_norm = false;
};

/// The plain graph of all accepted steps; the only one that can be differentiated again.
struct Unrolled {};

using Sensitivity = std::variant<Discrete, Adjoint, InterpolatedAdjoint, Unrolled>;

}  // namespace fathom
