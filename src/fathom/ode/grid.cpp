#include "fathom/ode/grid.hpp"

#include <algorithm>
#include <cmath>

#include "fathom/support/error.hpp"

namespace fathom::ode {

namespace {

constexpr double most_steps = 1e9;

struct GridPoint {
  double depth = 0;
  Moves moves = {};
  bool breaks = false;
};

/// Two grid points closer than this are one.
double closeness(double first, double last) {
  return 1e-13 * std::max({std::abs(first), std::abs(last), std::abs(last - first)});
}

void check(const FixedSteps& steps) {
  const int given = (steps.count != 0) + (steps.size != 0) + !steps.grid.empty();
  require(given == 1, "FixedSteps needs exactly one of `count`, `size` and `grid`, got ", given, " of them");
  require(steps.count >= 0, "FixedSteps: `count` must be positive, got ", steps.count);
  require(steps.size >= 0 && std::isfinite(steps.size),
          "FixedSteps: `size` must be positive and finite, got ", steps.size,
          " (the direction follows from the depths)");
  for (double depth : steps.grid)
    require(std::isfinite(depth), "FixedSteps: `grid` must hold finite depths, got ", depth);
  require(double(steps.count) < most_steps, "FixedSteps: `count` must be below ", most_steps, ", got ",
          steps.count);
}

/// Interior points of the layout, without the bounds and the break points.
std::vector<GridPoint> layout(const FixedSteps& steps, double first, double last) {
  std::vector<GridPoint> points;
  const double span = last - first;
  for (std::int64_t n = 1; n < steps.count; ++n) {
    const double part = double(n) / double(steps.count);
    points.push_back({.depth = first + part * span, .moves = {1 - part, part}});
  }
  if (steps.size > 0) {
    const double step = std::copysign(steps.size, span);
    require(std::abs(span) / steps.size < most_steps, "FixedSteps: `size` ", steps.size, " makes more than ",
            most_steps, " steps of the span ", span, "; choose a larger one");
    const std::int64_t whole = std::int64_t(std::ceil(std::abs(span) / steps.size)) - 1;
    for (std::int64_t n = 1; n <= whole; ++n)
      points.push_back({.depth = first + double(n) * step, .moves = {1, 0}});
  }
  for (double depth : steps.grid) points.push_back({.depth = depth});
  return points;
}

/// The bounds and the break points, which every fixed grid has.
std::vector<GridPoint> corners(double first, double last, const std::vector<double>& breaks) {
  std::vector<GridPoint> points = {{.depth = first, .moves = {1, 0}}, {.depth = last, .moves = {0, 1}}};
  const double close = closeness(first, last);
  for (double depth : breaks) {
    const auto same = [&](const GridPoint& other) { return std::abs(other.depth - depth) <= close; };
    const auto found = std::find_if(points.begin(), points.end(), same);
    if (found == points.end()) {
      points.push_back({.depth = depth, .breaks = true});
    } else {
      found->breaks = true;
    }
  }
  return points;
}

}  // namespace

void check_depths(const std::vector<double>& depths) {
  require(depths.size() >= 2, "`depths` needs a start and an end, got ", depths.size(), " value(s)");
  for (std::size_t i = 0; i < depths.size(); ++i) {
    require(std::isfinite(depths[i]), "`depths` must be finite, got ", depths[i], " at place ", i);
  }
  const bool forwards = depths.back() >= depths.front();
  for (std::size_t i = 1; i < depths.size(); ++i) {
    const bool ordered = forwards ? depths[i - 1] <= depths[i] : depths[i - 1] >= depths[i];
    require(ordered, "`depths` must go one way from ", depths.front(), " to ", depths.back(), ", got ",
            depths[i], " after ", depths[i - 1], "; sort them");
  }
}

std::vector<double> breaks_between(std::vector<double> break_points, double first, double last) {
  keep_breaks_between(break_points, first, last);
  return break_points;
}

void keep_breaks_between(std::vector<double>& break_points, double first, double last) {
  for (double depth : break_points)
    require(!std::isnan(depth), "`break_points` must be numbers, got ", depth);
  const auto [low, high] = std::minmax(first, last);
  std::erase_if(break_points,
                [low = low, high = high](double depth) { return !(low <= depth && depth <= high); });
  std::sort(break_points.begin(), break_points.end());
  break_points.erase(std::unique(break_points.begin(), break_points.end()), break_points.end());
  if (last < first) std::reverse(break_points.begin(), break_points.end());
}

std::vector<Step> fixed_grid(const FixedSteps& steps, double first, double last,
                             const std::vector<double>& breaks) {
  check(steps);
  if (first == last) return {};
  std::vector<GridPoint> points = corners(first, last, breaks);
  const double close = closeness(first, last);
  const auto [low, high] = std::minmax(first, last);
  const std::size_t corner_count = points.size();  // the only points that one of the layout can fall upon
  for (const GridPoint& point : layout(steps, first, last)) {
    const bool inside = low < point.depth && point.depth < high;
    const auto taken = [&](const GridPoint& other) { return std::abs(other.depth - point.depth) <= close; };
    const auto end = points.begin() + std::ptrdiff_t(corner_count);
    if (inside && std::none_of(points.begin(), end, taken)) points.push_back(point);
  }
  std::sort(points.begin(), points.end(), [&](const GridPoint& a, const GridPoint& b) {
    return last > first ? a.depth < b.depth : a.depth > b.depth;
  });
  std::vector<Step> grid;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const GridPoint &from = points[i - 1], &to = points[i];
    if (from.depth == to.depth) continue;
    grid.push_back({.start = from.depth,
                    .end = to.depth,
                    .starts_at_break = from.breaks,
                    .ends_at_break = to.breaks,
                    .start_moves = from.moves,
                    .end_moves = to.moves});
  }
  return grid;
}

}  // namespace fathom::ode
