#include "fathom/report/geometry.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fathom/support/error.hpp"

namespace fathom::report {
namespace {

constexpr double pi = 3.14159265358979323846;

Grid grid(std::size_t size, const std::function<double(double, double)>& f) {
  Grid result{.x = {-2, 2}, .y = {-1, 3}, .columns = size, .rows = size};
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t column = 0; column < size; ++column)
      result.values.push_back(
          f(-2 + 4 * double(column) / double(size - 1), -1 + 4 * double(row) / double(size - 1)));
  }
  return result;
}

/// Positive for a counter-clockwise line.
double enclosed_area(const Polyline& line) {
  double area = 0;
  for (std::size_t i = 0; i + 1 < line.x.size(); ++i)
    area += line.x[i] * line.y[i + 1] - line.x[i + 1] * line.y[i];
  return area / 2;
}

double area(const std::vector<Polyline>& outlines) {
  double sum = 0;
  for (const Polyline& line : outlines) sum += enclosed_area(line);
  return sum;
}

bool is_closed(const Polyline& line) {
  return line.x.front() == line.x.back() && line.y.front() == line.y.back();
}

TEST(RegionOutlines, EncloseTheAreaOfADisc) {
  const auto outlines =
      region_outlines(grid(201, [](double x, double y) { return 1 - std::hypot(x, y - 1); }), 0);
  ASSERT_EQ(outlines.size(), 1u);
  EXPECT_TRUE(is_closed(outlines[0]));
  EXPECT_NEAR(area(outlines), pi, 1e-3);
}

TEST(RegionOutlines, SubtractAHole) {
  const auto ring = [](double x, double y) {
    return 0.25 - std::abs(std::hypot(x, y - 1) - 0.75);
  };  // radii 0.5 and 1
  const auto outlines = region_outlines(grid(401, ring), 0);
  ASSERT_EQ(outlines.size(), 2u);
  EXPECT_NEAR(area(outlines), 0.75 * pi, 1e-3);
}

TEST(RegionOutlines, AreCutAtTheWindow) {
  const auto outlines = region_outlines(grid(101, [](double x, double) { return x; }), 0);
  ASSERT_EQ(outlines.size(), 1u);
  EXPECT_NEAR(area(outlines), 8, 1e-12);
}

TEST(RegionOutlines, OfARegionAndOfItsComplementFillTheWindow) {
  const auto saddles = [](double x, double y) { return std::sin(3 * x) * std::cos(2 * y) + 0.1; };
  const Grid values = grid(80, saddles),
             opposite = grid(80, [&](double x, double y) { return -saddles(x, y); });
  EXPECT_NEAR(area(region_outlines(values, 0)) + area(region_outlines(opposite, 0)), 16, 0.02);
}

TEST(LevelLines, LieOnTheLevelAndLeaveOutTheBorder) {
  const auto lines = level_lines(grid(101, [](double x, double) { return x - 0.3; }), 0);
  ASSERT_EQ(lines.size(), 1u);
  for (const double x : lines[0].x) EXPECT_NEAR(x, 0.3, 1e-12);
  EXPECT_NEAR(std::abs(lines[0].y.back() - lines[0].y.front()), 4, 1e-12)
      << "one straight line across the window";
}

TEST(LevelLines, OfACircleInsideTheWindowAreClosed) {
  const auto lines = level_lines(grid(101, [](double x, double y) { return std::hypot(x, y - 1) - 1; }), 0);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(is_closed(lines[0]));
}

TEST(LevelLines, KeepBothPiecesOfALineThatLeavesTheWindowTwice) {
  EXPECT_EQ(level_lines(grid(101, [](double x, double) { return 1 - std::abs(x); }), 0).size(), 2u);
}

TEST(LevelLines, OfAConstantAreNone) {
  EXPECT_TRUE(level_lines(grid(5, [](double, double) { return 1.0; }), 0).empty());
  EXPECT_TRUE(region_outlines(grid(5, [](double, double) { return -1.0; }), 0).empty());
}

TEST(Contours, RefuseAGridOfTheWrongSize) {
  EXPECT_THROW(level_lines({.columns = 3, .rows = 3, .values = {1, 2}}, 0), InvalidArgument);
}

VectorGrid field(const std::function<double(double, double)>& u,
                 const std::function<double(double, double)>& v) {
  const Grid across = grid(40, u), up = grid(40, v);
  return {.x = across.x, .y = across.y, .columns = 40, .rows = 40, .u = across.values, .v = up.values};
}

TEST(Streamlines, FollowARotation) {
  const auto lines =
      streamlines(field([](double, double y) { return 1 - y; }, [](double x, double) { return x; }));
  ASSERT_GT(lines.size(), 5u);
  for (const Polyline& line : lines) {
    const double radius = std::hypot(line.x[0], line.y[0] - 1);
    for (std::size_t i = 0; i < line.x.size(); ++i)
      EXPECT_NEAR(std::hypot(line.x[i], line.y[i] - 1), radius, 5e-3);
    const double turn = line.x[0] * (line.y[1] - 1) - line.x[1] * (line.y[0] - 1);
    EXPECT_GT(turn, 0) << "points follow the field's direction";
  }
}

TEST(Streamlines, CoverTheWindow) {
  const auto lines =
      streamlines(field([](double, double) { return 1.0; }, [](double, double) { return 0.0; }), 10);
  std::vector<bool> seen(10, false);
  for (const Polyline& line : lines) seen[std::size_t(std::min(9.0, (line.y[0] + 1) / 4 * 10))] = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 10);
}

TEST(Streamlines, AreNoneWhereTheFieldStandsStillOrIsNotANumber) {
  const auto zero = [](double, double) { return 0.0; };
  EXPECT_TRUE(streamlines(field(zero, zero)).empty());
  const auto lines = streamlines(field([](double x, double) { return x < 0 ? std::nan("") : 1.0; }, zero));
  for (const Polyline& line : lines) EXPECT_GT(line.x.front(), -0.2);
}

}  // namespace
}  // namespace fathom::report
