/// What a solve cost: counted, not estimated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fathom/ode/limits.hpp"

namespace fathom::ode {

struct SolveReport {
  std::int64_t evaluations = 0;           ///< of the field, forwards
  std::int64_t backward_evaluations = 0;  ///< of the field and its vector-Jacobian product, for gradients
  std::int64_t scouting = 0;  ///< of the evaluations forwards, those that looked ahead for a blow-up
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  double smallest_step = 0;  ///< magnitudes, over accepted steps
  double largest_step = 0;
  double last_step = 0;
  double seconds = 0;          ///< forwards; of a loss in one piece, with the way back through the last step
  double reached = 0;          ///< depth of the last state
  bool stopped = false;        ///< by the observer, before the last depth
  Limits limits = {};          ///< that it met: stability, or the resolution of numbers
  std::string engine = {};     ///< that did the arithmetic: "fused" or "tensor"
  std::string not_fused = {};  ///< why it was not the fused one, for example "layer 2 (Conv2d) has no kernel"

  /// "26 evaluations, 4 steps accepted, 0 rejected, 0.8 ms"; `limits.advice()` says more of what it names.
  std::string brief() const;
};

/// Of solves side by side, one or more: means, rounded up; extremes and times of all; a limit that one of them met.
SolveReport mean_of(const std::vector<SolveReport>& reports);

}  // namespace fathom::ode
