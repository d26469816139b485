/// Lines of fields and level sets, computed here so that a page carries a few paths and no raw grids.
#pragma once

#include <vector>

#include "fathom/report/figure.hpp"

namespace fathom::report {

/// Points of a line; closed where the last equals the first.
struct Polyline {
  std::vector<double> x;
  std::vector<double> y;
};

/// The closed outlines of the region {values >= level} within the grid's window: outer ones run counter-clockwise, holes
/// clockwise, so that a nonzero fill paints exactly the region.
std::vector<Polyline> region_outlines(const Grid& grid, double level);

/// The lines {values = level} inside the window, without the window's own border.
std::vector<Polyline> level_lines(const Grid& grid, double level);

/// Evenly spread lines along a vector field: a new one keeps a distance of 1/density of the window to the others.
std::vector<Polyline> streamlines(const VectorGrid& field, int density = 18);

}  // namespace fathom::report
