/// What keeps the steps of a solve short, and its digits few, besides the tolerance.
#pragma once

#include <optional>
#include <string>

namespace fathom::ode {

/// What decides about the size of steps.
enum class StepLimit {
  unknown,    ///< too few steps to tell, or a method that cannot
  grid,       ///< they are fixed
  tolerance,  ///< no sign of anything else
  stability   ///< longer ones would let errors grow, however loose the tolerance
};

/// What a solve met.
struct Limits {
  StepLimit steps = StepLimit::unknown;
  std::optional<double> stability_from = {};  ///< depth from which stability limits the steps
  double resolution = 0;  ///< of the state's type, where the tolerance is below it; else 0

  /// A sentence for each, with what helps and what does not; empty: there are none.
  std::string advice() const;
};

}  // namespace fathom::ode
