/// Functions of depth: orthogonal where they claim to be, with the slopes they claim to have, on the proper side of a joint.
#include "fathom/depth/basis.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "fathom/support/error.hpp"
#include "support/plain/problems.hpp"

namespace fathom::testing {
namespace {

const DepthSpan shifted{.first = -0.5, .last = 2};

std::vector<DepthBasis> smooth_bases() {
  return {fourier(),
          fourier({.harmonics = 3, .period = 2.5}),
          chebyshev({.degree = 6}),
          chebyshev({.degree = 4, .span = shifted}),
          legendre({.degree = 6}),
          legendre({.degree = 4, .span = shifted}),
          polynomial(5),
          gaussian_radial(),
          gaussian_radial({.centres = 3, .span = shifted, .width = 0.7}),
          multiquadric_radial(),
          multiquadric_radial({.centres = 4, .span = shifted}),
          gaussian_radial({.centres = 4, .normalised = true}),
          multiquadric_radial({.span = shifted, .normalised = true}),
          torchdyn_fourier(3)};
}

std::vector<DepthBasis> piecewise_bases() {
  return {piecewise_constant(),
          piecewise_constant({.pieces = 1}),
          piecewise_constant({.pieces = 7, .span = shifted}),
          piecewise_linear(),
          piecewise_linear({.pieces = 1}),
          piecewise_linear({.pieces = 7, .span = shifted})};
}

const std::vector<double> depths = {-0.31, 0.0, 0.123, 0.5, 0.77, 1.0, 1.4};

using Point = std::function<std::pair<double, double>(int)>;  // of a rule: where, and with which weight

/// |int psi_i psi_j - [i == j] norm_i|, largest over all pairs.
double orthogonality_error(const DepthBasis& basis, int points, const Point& rule,
                           const std::vector<double>& norms) {
  std::vector<std::vector<double>> products(basis.size, std::vector<double>(basis.size, 0.0));
  for (int k = 0; k < points; ++k) {
    const auto [s, weight] = rule(k);
    const auto psi = basis.values(s);
    for (std::size_t i = 0; i < basis.size; ++i)
      for (std::size_t j = 0; j < basis.size; ++j) products[i][j] += weight * psi[i] * psi[j];
  }
  double worst = 0;
  for (std::size_t i = 0; i < basis.size; ++i)
    for (std::size_t j = 0; j < basis.size; ++j)
      worst = std::max(worst, std::abs(products[i][j] - (i == j ? norms[i] : 0.0)));
  return worst;
}

TEST(Fourier, IsOrthonormalOnAPeriod) {
  for (const double period : {1.0, 2.5}) {
    for (const double start : {0.0, 0.3}) {  // any period will do
      const DepthBasis basis = fourier({.harmonics = 5, .period = period});
      const Point trapezoid = [=](int k) { return std::pair{start + period * k / 256, period / 256}; };
      EXPECT_LT(orthogonality_error(basis, 256, trapezoid, std::vector<double>(basis.size, 1.0)), 1e-12);
    }
  }
}

// Known mistake: torchdyn's "harmonics" are not integers, so its functions are not orthogonal.
TEST(Fourier, HarmonicsAreIntegerMultiplesOfTheFirst) {
  const double period = 1.5, base = 2 * std::numbers::pi / period, scale = std::sqrt(2 / period);
  const DepthBasis basis = fourier({.harmonics = 4, .period = period});
  ASSERT_EQ(basis.size, 9u);
  for (double s : depths) {
    const auto psi = basis.values(s);
    for (std::size_t j = 1; j <= 4; ++j) {
      EXPECT_NEAR(psi[2 * j - 1], scale * std::cos(base * double(j) * s), 1e-14);
      EXPECT_NEAR(psi[2 * j], scale * std::sin(base * double(j) * s), 1e-14);
    }
    const auto later = basis.values(s + period);
    for (std::size_t j = 0; j < basis.size; ++j) EXPECT_NEAR(later[j], psi[j], 1e-13);
  }
}

TEST(Fourier, OfTorchdynHasItsCountsAndIsNotOrthogonal) {
  for (std::size_t m : {1, 2, 5}) EXPECT_EQ(torchdyn_fourier(m).size, 2 * m);
  const auto psi = torchdyn_fourier(2).values(0.4);  // linspace(0, 2, 2): frequencies 0 and 2
  EXPECT_EQ(psi[0], 1);
  EXPECT_DOUBLE_EQ(psi[1], std::cos(0.8));
  EXPECT_EQ(psi[2], 0);
  EXPECT_DOUBLE_EQ(psi[3], std::sin(0.8));
  const Point trapezoid = [](int k) { return std::pair{(k + 0.5) / 256, 1.0 / 256}; };
  EXPECT_GT(orthogonality_error(torchdyn_fourier(3), 256, trapezoid, std::vector<double>(6, 1.0)), 0.1);
}

TEST(Legendre, IsOrthonormalOnItsSpan) {
  // Five Gauss points a panel; 32 panels leave nothing of degree 12.
  const std::vector<double> t = {-0.906179845938663993, -0.538469310105683091, 0, 0.538469310105683091,
                                 0.906179845938663993};
  const std::vector<double> w = {0.236926885056189088, 0.478628670499366468, 0.568888888888888889,
                                 0.478628670499366468, 0.236926885056189088};
  for (const DepthSpan& span : {DepthSpan{}, shifted}) {
    const DepthBasis basis = legendre({.degree = 6, .span = span});
    const double panel = (span.last - span.first) / 32;
    const Point gauss = [&](int k) {
      const auto i = std::size_t(k % 5);
      return std::pair{span.first + panel * (k / 5 + (t[i] + 1) / 2), panel * w[i] / 2};
    };
    EXPECT_LT(orthogonality_error(basis, 5 * 32, gauss, std::vector<double>(basis.size, 1.0)), 1e-12);
  }
}

TEST(Chebyshev, IsOrthogonalWithItsWeight) {
  for (const DepthSpan& span : {DepthSpan{}, shifted}) {
    const DepthBasis basis = chebyshev({.degree = 6, .span = span});
    const int points = 32;
    const Point gauss_chebyshev = [&](int k) {
      const double angle = std::numbers::pi * (k + 0.5) / points;
      return std::pair{span.first + (span.last - span.first) * (std::cos(angle) + 1) / 2,
                       std::numbers::pi / points};
    };
    std::vector<double> norms(basis.size, std::numbers::pi / 2);
    norms[0] = std::numbers::pi;
    EXPECT_LT(orthogonality_error(basis, points, gauss_chebyshev, norms), 1e-12);
  }
}

TEST(Polynomial, HasIntegerPowersOfDepth) {
  const auto psi = polynomial(4).values(-1.5);
  EXPECT_EQ(psi, (std::vector<double>{1, -1.5, 2.25, -3.375, 5.0625}));
}

TEST(Radial, FunctionsPeakAtCentresSpreadOverTheSpan) {
  const DepthBasis gaussian = gaussian_radial({.centres = 3, .span = shifted});
  const std::vector<double> centres = {-0.5, 0.75, 2};
  for (std::size_t j = 0; j < 3; ++j) {
    EXPECT_DOUBLE_EQ(gaussian.values(centres[j])[j], 1);
    EXPECT_DOUBLE_EQ(gaussian.values(centres[j] + 1.25)[j], std::exp(-0.5));  // one width away
  }
  EXPECT_DOUBLE_EQ(multiquadric_radial({.centres = 1, .width = 2}).values(2.5)[0],
                   std::sqrt(2.0));  // centre 1/2
}

TEST(EveryBasis, HasAsManyFunctionsAsItSays) {
  for (auto bases : {smooth_bases(), piecewise_bases()}) {
    for (const DepthBasis& basis : bases) {
      for (double s : depths) {
        EXPECT_EQ(basis.values(s).size(), basis.size) << basis.name;
        EXPECT_EQ(basis.slopes(s).size(), basis.size) << basis.name;
      }
      EXPECT_EQ(basis.constant.size(), basis.size) << basis.name;
    }
  }
}

TEST(EveryBasis, HasTheSlopesOfItsValues) {
  for (auto bases : {smooth_bases(), piecewise_bases()}) {
    for (const DepthBasis& basis : bases) {
      for (double s : {-0.31, 0.123, 0.41, 0.77, 0.93}) {  // no joint of any of them
        const double h = 1e-4;
        const auto far_left = basis.values(s - 2 * h), left = basis.values(s - h),
                   right = basis.values(s + h), far_right = basis.values(s + 2 * h), slopes = basis.slopes(s);
        for (std::size_t j = 0; j < basis.size; ++j) {
          const double difference = (8 * (right[j] - left[j]) - (far_right[j] - far_left[j])) / (12 * h);
          EXPECT_NEAR(slopes[j], difference, 1e-8 * std::max(1.0, std::abs(difference)))
              << basis.name << " " << j << " at " << s;
        }
      }
    }
  }
}

double constant_at(const DepthBasis& basis, double s) {
  const auto psi = basis.values(s);
  double sum = 0;
  for (std::size_t j = 0; j < basis.size; ++j) sum += basis.constant[j] * psi[j];
  return sum;
}

TEST(EveryBasis, MakesAConstantOfItsConstantCoefficients) {
  for (auto bases : {smooth_bases(), piecewise_bases()}) {
    for (const DepthBasis& basis : bases) {
      // Radial functions contain the constants only when they are normalised.
      const bool is_radial = basis.name == "gaussian radial" || basis.name == "multiquadric radial";
      for (double s = 0; s <= 1; s += 0.01)
        EXPECT_NEAR(constant_at(basis, s), 1, is_radial ? 0.05 : 1e-14) << basis.name;
    }
  }
}

TEST(NormalisedRadial, IsAPartitionOfUnityHoweverFarBeyondTheSpan) {
  for (const DepthBasis& basis :
       {gaussian_radial({.normalised = true}), multiquadric_radial({.normalised = true})}) {
    for (double s : {-1e6, -30.0, -1.0, 0.0, 0.3, 1.0, 2.0, 30.0, 1e6}) {
      const auto psi = basis.values(s), slopes = basis.slopes(s);
      EXPECT_NEAR(std::accumulate(psi.begin(), psi.end(), 0.0), 1, 1e-14) << basis.name << " at " << s;
      EXPECT_NEAR(std::accumulate(slopes.begin(), slopes.end(), 0.0), 0, 1e-12) << basis.name << " at " << s;
    }
  }
}

TEST(Piecewise, BasesAreAPartitionOfUnityWithinTheSpanAndBeyond) {
  for (const DepthBasis& basis : piecewise_bases()) {
    for (double s = -2; s <= 4; s += 0.0371) {
      double sum = 0;
      for (double value : basis.values(s)) {
        EXPECT_GE(value, 0) << basis.name;
        sum += value;
      }
      EXPECT_NEAR(sum, 1, 1e-15) << basis.name << " at " << s;
    }
  }
}

TEST(Piecewise, ConstantsSeeTheirOwnSideOfAJoint) {
  const DepthBasis basis = piecewise_constant({.pieces = 3});
  ASSERT_EQ(basis.break_points.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const double joint = basis.break_points[i];
    EXPECT_EQ(basis.values(std::nextafter(joint, -1.0))[i], 1);
    EXPECT_EQ(basis.values(joint)[i + 1], 1);
    EXPECT_EQ(basis.values(std::nextafter(joint, 2.0))[i + 1], 1);
  }
  EXPECT_EQ(basis.values(0.0)[0], 1);
  EXPECT_EQ(basis.values(1.0)[2], 1);
  EXPECT_EQ(basis.values(-5.0)[0], 1);
  EXPECT_EQ(basis.values(5.0)[2], 1);
}

TEST(Piecewise, LinesAreHatsOverTheirKnots) {
  const DepthBasis basis = piecewise_linear({.pieces = 2, .span = {0, 4}});
  EXPECT_EQ(basis.values(0), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(basis.values(0.5), (std::vector<double>{0.75, 0.25, 0}));
  EXPECT_EQ(basis.values(2), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(basis.values(9), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(basis.break_points, (std::vector<double>{0, 2, 4})) << "beyond the span values are held";
  EXPECT_EQ(basis.slopes(std::nextafter(2.0, 0.0)), (std::vector<double>{-0.5, 0.5, 0}));
  EXPECT_EQ(basis.slopes(2.0), (std::vector<double>{0, -0.5, 0.5}));
}

/// z' = (1 + psi(s)) z with psi a line from 0 to 1, flat beyond both ends of its span: z(2) = e^(3 + 1/2 + 1) z(-1).
TEST(Piecewise, LinesKeepTheOrderOfASolveThatGoesBeyondTheirSpan) {
  const DepthBasis basis = piecewise_linear({.pieces = 1});
  const Rate rate = [&](double s, const State& z, State& f) { f[0] = (1 + basis.values(s)[1]) * z[0]; };
  const auto error = [&](std::int64_t steps) {
    const ode::Plan plan{
        .method = ode::rk4(), .steps = ode::FixedSteps{.count = steps}, .break_points = basis.break_points};
    return std::abs(solve(rate, {1.0}, plan, {-1.0, 2.0}).saved.back()[0] / std::exp(4.5) - 1);
  };
  EXPECT_NEAR(std::log2(error(40) / error(80)), 4, 0.2);  // neither has a step that ends at 0 or 1 by itself
}

TEST(OwnBasis, FindsItsSlopesWhenNoneAreGiven) {
  const auto functions = [](double s) { return std::vector<double>{std::exp(s), std::sin(3 * s)}; };
  const DepthBasis basis = own_basis("own", 2, functions);
  for (double s : depths) {
    EXPECT_NEAR(basis.slopes(s)[0], std::exp(s), 1e-9);
    EXPECT_NEAR(basis.slopes(s)[1], 3 * std::cos(3 * s), 1e-9);
  }
  const DepthBasis given = own_basis("own", 2, functions, [](double) { return std::vector<double>{7, 8}; });
  EXPECT_EQ(given.slopes(0.5), (std::vector<double>{7, 8}));
}

TEST(EveryBasis, SaysWhatIsWrongInOneSentence) {
  const auto says = [](auto&& work, const std::string& expected) {
    EXPECT_NE(message_of(work).find(expected), std::string::npos) << message_of(work);
  };
  const auto one = [](double) { return std::vector<double>{1}; };
  says([] { fourier({.period = 0}); }, "the period of a Fourier basis must be positive, got 0");
  says([] { chebyshev({.span = {1, 1}}); }, "a span with first < last, got 1 and 1");
  says([] { legendre({.span = {2, 1}}); }, "a span with first < last, got 2 and 1");
  says([] { piecewise_linear({.span = {0, INFINITY}}); }, "a span with first < last, got 0 and inf");
  says([] { piecewise_constant({.pieces = 0}); }, "at least one piece, got 0");
  says([] { piecewise_linear({.pieces = 0}); }, "at least one piece, got 0");
  says([] { gaussian_radial({.centres = 0}); }, "at least one centre, got 0");
  says([] { multiquadric_radial({.width = -1}); }, "width of a radial basis must be positive, got -1");
  says([] { torchdyn_fourier(0); }, "at least one function, got 0");
  says([&] { own_basis("mine", 0, one); }, "basis `mine` needs at least one function, got 0");
  says([&] { own_basis("mine", 2, one); }, "basis `mine` must return 2 values, got 1");
  says([] { own_basis("mine", 2, {}); }, "basis `mine` needs a function of depth, got none");
}

}  // namespace
}  // namespace fathom::testing
