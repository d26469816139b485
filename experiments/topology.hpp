/// What a decision region looks like as a shape: found by flood fill on a grid of the decision map.
///
///   const Shape shape = shape_of(inner, {.columns = 401, .rows = 401});
///   shape.is_closed_disc();     // one piece, no holes, away from the window's edge
#pragma once

#include <cstddef>
#include <vector>

namespace fathom::experiments {

struct GridSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

struct Shape {
  std::size_t pieces = 0;  ///< of the region, neighbours by edge or corner
  std::size_t outside_pieces =
      0;  ///< of the rest, neighbours by edge: the dual rule, so that Jordan's theorem holds
  bool touches_edge = false;  ///< of the window
  double area = 0;            ///< as a fraction of the window

  /// Inside one piece and bounded by the window, outside one piece: so it has no holes either.
  bool is_closed_disc() const { return pieces == 1 && outside_pieces == 1 && !touches_edge; }
};

/// `inside` has a value for every cell, row by row.
Shape shape_of(const std::vector<bool>& inside, const GridSize& grid);

}  // namespace fathom::experiments
