/// What an observer of a solve sees, and what it answers.
///
///   observer = [](const StepEvent& event) { return event.step.end > 0.5 ? Next::stop : Next::proceed; };
#pragma once

#include <cstdint>

#include "fathom/ode/step.hpp"

namespace fathom::ode {

enum class Next { proceed, stop };

/// A finished attempt, as an observer sees it.
struct StepEvent {
  Step step = {};
  bool accepted = false;
  double error = 0;  ///< scaled: at most 1 is within tolerance; 0 for fixed steps
  std::int64_t evaluations = 0;
};

}  // namespace fathom::ode
