/// One step of the grid, and the side of a break point that its stages must see.
#pragma once

#include <algorithm>
#include <cmath>

namespace fathom::ode {

/// How a grid point moves when the first or the last depth of the solve does: the chain rule for gradients of the bounds.
struct Moves {
  double with_first = 0;
  double with_last = 0;
};

/// From `start` to `end` (either direction). Where an end lies on a break point, stages are evaluated just inside it, so
/// that a piecewise field is seen from the step's own piece.
struct Step {
  double start = 0;
  double end = 0;
  bool starts_at_break = false;
  bool ends_at_break = false;
  Moves start_moves = {};
  Moves end_moves = {};

  double size() const { return end - start; }

  /// The depth at which the stage with abscissa `c` is evaluated.
  double stage_depth(double c) const {
    const double depth = c == 0.0 ? start : c == 1.0 ? end : start + c * size();
    const double first = starts_at_break ? std::nextafter(start, end) : start;
    const double last = ends_at_break ? std::nextafter(end, start) : end;
    return std::clamp(depth, std::min(first, last), std::max(first, last));
  }

  /// The fraction of the step at which `depth` lies.
  double fraction(double depth) const { return depth == end ? 1.0 : (depth - start) / size(); }

  bool contains(double depth) const { return std::min(start, end) <= depth && depth <= std::max(start, end); }
};

}  // namespace fathom::ode
