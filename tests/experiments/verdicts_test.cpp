/// The arithmetic behind verdicts: shapes of decision regions, divergences, slopes, means over seeds.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/statistics.hpp"
#include "experiments/topology.hpp"
#include "fathom/support/error.hpp"

namespace {

using namespace fathom;
using namespace fathom::experiments;

/// '#' is inside.
Shape shape(const std::vector<std::string>& rows) {
  std::vector<bool> inside;
  for (const std::string& row : rows) {
    for (const char cell : row) inside.push_back(cell == '#');
  }
  return shape_of(inside, {.columns = rows.front().size(), .rows = rows.size()});
}

TEST(Topology, ADiscInTheWindowIsClosed) {
  EXPECT_TRUE(shape({".....", ".###.", ".###.", ".....", "....."}).is_closed_disc());
}

TEST(Topology, ASlitToTheEdgeOpensIt) {
  const Shape slit = shape({".....", ".###.", ".####", ".....", "....."});
  EXPECT_TRUE(slit.touches_edge);
  EXPECT_FALSE(slit.is_closed_disc());
}

TEST(Topology, ASlitOfOneCornerIsStillASlit) {
  EXPECT_FALSE(shape({"....#", "...#.", ".##..", ".##..", "....."}).is_closed_disc());
}

TEST(Topology, AHoleAndASecondPieceOpenIt) {
  const Shape ring = shape({".....", ".###.", ".#.#.", ".###.", "....."});
  EXPECT_EQ(ring.pieces, 1u);
  EXPECT_EQ(ring.outside_pieces, 2u);
  EXPECT_FALSE(ring.is_closed_disc());
  const Shape two = shape({".......", ".##.##.", ".##.##.", "......."});
  EXPECT_EQ(two.pieces, 2u);
  EXPECT_FALSE(two.is_closed_disc());
}

TEST(Topology, InsideAndOutsideNeverBothPassADiagonal) {
  // A closed diagonal ring: inside joined by corners, so the centre is cut off from the outside.
  const Shape diamond = shape({".....", "..#..", ".#.#.", "..#..", "....."});
  EXPECT_EQ(diamond.pieces, 1u);
  EXPECT_EQ(diamond.outside_pieces, 2u);
}

TEST(Topology, AreaIsAShareOfTheWindow) {
  EXPECT_DOUBLE_EQ(shape({"....", ".##.", ".##.", "...."}).area, 0.25);
}

TEST(Topology, NothingInsideIsNoDisc) { EXPECT_FALSE(shape({"...", "...", "..."}).is_closed_disc()); }

TEST(Topology, ValuesMustFillTheGrid) {
  EXPECT_THROW(shape_of({true, false}, {.columns = 2, .rows = 2}), InvalidArgument);
}

TEST(Statistics, TheDivergenceOfTwoNormalsIsItsClosedForm) {
  const Normal p{-1, 0.2}, q{-0.9, 0.3};
  const std::vector<double> points = support(p, 2001);
  std::vector<double> log_q;
  for (double x : points) log_q.push_back(q.log_density(x));
  const double closed =
      std::log(q.deviation / p.deviation) +
      (p.deviation * p.deviation + (p.mean - q.mean) * (p.mean - q.mean)) / (2 * q.deviation * q.deviation) -
      0.5;
  EXPECT_NEAR(divergence(p, points, log_q), closed, 1e-8);
}

TEST(Statistics, AnIntegralIsASumOfTrapezoids) { EXPECT_DOUBLE_EQ(integral({0, 1, 3}, {0, 2, 4}), 1 + 6); }

TEST(Statistics, ANormalHasMassOne) {
  const Normal normal{3, 0.5};
  const std::vector<double> points = support(normal, 1001);
  std::vector<double> densities;
  for (double x : points) densities.push_back(normal.density(x));
  EXPECT_NEAR(integral(points, densities), 1, 1e-9);
}

TEST(Statistics, TheSlopeOfAPowerIsItsExponent) {
  std::vector<double> x, y;
  for (double p = 2; p <= 64; p *= 2) {
    x.push_back(p);
    y.push_back(3 * std::pow(p, -1.5));
  }
  EXPECT_NEAR(logarithmic_slope(x, y), -1.5, 1e-12);
  EXPECT_THROW(logarithmic_slope({1, 2}, {0, 1}), InvalidArgument);
}

TEST(Statistics, MeanAndDeviationOfASample) {
  const Spread spread = spread_of({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(spread.mean, 2.5);
  EXPECT_NEAR(spread.deviation, std::sqrt(5.0 / 3), 1e-14);
  EXPECT_EQ(spread_of({7}).deviation, 0);
}

TEST(Statistics, KernelDensityHasMassOneAndPeaksAtTheSamples) {
  std::vector<double> samples;
  for (int i = -50; i <= 50; ++i) samples.push_back(1 + 0.002 * i);
  const std::vector<double> line = spaced(0, 2, 2001);
  const std::vector<double> density = kernel_density(samples, line);
  EXPECT_NEAR(integral(line, density), 1, 1e-3);
  EXPECT_GT(density[1000], density[500]);
}

RunMetrics run_with(double accuracy, bool holds) {
  return {.experiment = "e",
          .size = "quick",
          .models = {{"m", {{"accuracy", accuracy}}}},
          .verdicts = {{"good", accuracy, 0.9, holds}}};
}

TEST(Seeds, FiguresBecomeMeansWithDeviations) {
  const RunMetrics all = across_seeds(std::vector{run_with(1, true), run_with(0.5, false)});
  ASSERT_EQ(all.models[0].figures.size(), 2u);
  EXPECT_DOUBLE_EQ(all.models[0].figures[0].second, 0.75);
  EXPECT_EQ(all.models[0].figures[1].first, "accuracy deviation");
  EXPECT_NEAR(all.models[0].figures[1].second, std::sqrt(0.125), 1e-14);
}

TEST(Seeds, AVerdictHoldsForFourOfFiveNotForThree) {
  std::vector<RunMetrics> runs(5, run_with(1, true));
  runs[0].verdicts[0].holds = false;
  EXPECT_TRUE(across_seeds(runs).verdicts[0].holds);
  EXPECT_EQ(across_seeds(runs).verdicts[0].claim, "good (4 of 5 seeds)");
  runs[1].verdicts[0].holds = false;
  EXPECT_FALSE(across_seeds(runs).verdicts[0].holds);
}

}  // namespace
