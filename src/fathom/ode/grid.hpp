/// The grids behind a solve: saved depths, break points, and the steps that are laid out in advance.
#pragma once

#include <vector>

#include "fathom/ode/step.hpp"
#include "fathom/ode/steps.hpp"

namespace fathom::ode {

/// Depths must be finite and go one way; repeated ones are allowed. Throws InvalidArgument otherwise.
void check_depths(const std::vector<double>& depths);

/// The break points from `first` to `last`, both included, in the direction of the solve and without repetition.
std::vector<double> breaks_between(std::vector<double> break_points, double first, double last);
/// The same in place.
void keep_breaks_between(std::vector<double>& break_points, double first, double last);

/// All steps of a fixed grid from `first` to `last`; a step never crosses a break point.
std::vector<Step> fixed_grid(const FixedSteps& steps, double first, double last,
                             const std::vector<double>& breaks);

}  // namespace fathom::ode
