#include "fathom/depth/basis.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

using Values = std::vector<double>;

void check(const DepthSpan& span) {
  require(std::isfinite(span.first) && std::isfinite(span.last) && span.first < span.last,
          "a basis needs a span with first < last, got ", span.first, " and ", span.last);
}

/// Solves the normal equations of  min_c sum_i (sum_j c_j psi_j(s_i) - 1)^2  over a grid of the span.
Values closest_to_one(const DepthBasis& basis, const DepthSpan& span) {
  const std::size_t n = basis.size, samples = 8 * n + 1;
  std::vector<Values> normal(n, Values(n + 1, 0.0));  // [matrix | right side]
  for (std::size_t i = 0; i < samples; ++i) {
    const Values psi = basis.values(span.first + (span.last - span.first) * double(i) / double(samples - 1));
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t c = 0; c < n; ++c) normal[r][c] += psi[r] * psi[c];
      normal[r][n] += psi[r];
    }
  }
  double largest = 0;
  for (std::size_t r = 0; r < n; ++r) largest = std::max(largest, normal[r][r]);
  // Functions that nearly depend on each other would get huge coefficients; a little damping keeps them small.
  for (std::size_t r = 0; r < n; ++r) normal[r][r] += 1e-8 * std::max(largest, 1e-300);
  for (std::size_t pivot = 0; pivot < n; ++pivot) {
    for (std::size_t r = pivot + 1; r < n; ++r) {
      const double factor = normal[r][pivot] / normal[pivot][pivot];
      for (std::size_t c = pivot; c <= n; ++c) normal[r][c] -= factor * normal[pivot][c];
    }
  }
  Values solution(n);
  for (std::size_t r = n; r-- > 0;) {
    double rest = normal[r][n];
    for (std::size_t c = r + 1; c < n; ++c) rest -= normal[r][c] * solution[c];
    solution[r] = rest / normal[r][r];
  }
  return solution;
}

Values unit(std::size_t size, std::size_t place, double value = 1.0) {
  Values values(size, 0.0);
  values[place] = value;
  return values;
}

/// n + 1 points from first to last; the ends are exact.
Values knots(const DepthSpan& span, std::size_t pieces) {
  Values points;
  for (std::size_t i = 0; i <= pieces; ++i) {
    points.push_back(i == pieces ? span.last
                                 : span.first + (span.last - span.first) * double(i) / double(pieces));
  }
  return points;
}

/// The piece that holds s; the outer ones reach to infinity. A joint belongs to the piece on its right.
std::size_t piece_of(const Values& points, double s) {
  const auto right = std::upper_bound(points.begin() + 1, points.end() - 1, s);
  return std::size_t(right - points.begin()) - 1;
}

/// psi_j / sum_k psi_k, for functions that are positive. So far beyond the span that all vanish, the outermost is 1.
DepthBasis shares_of(const DepthBasis& plain, const DepthSpan& span) {
  DepthBasis basis = plain;
  basis.name = "normalised " + plain.name;
  basis.values = [=, values = plain.values](double s) {
    Values psi = values(s);
    const double sum = std::accumulate(psi.begin(), psi.end(), 0.0);
    if (sum == 0) return unit(psi.size(), s < span.first ? 0 : psi.size() - 1);
    for (double& value : psi) value /= sum;
    return psi;
  };
  basis.slopes = [values = plain.values, slopes = plain.slopes](double s) {
    const Values psi = values(s);
    Values slope = slopes(s);
    const double sum = std::accumulate(psi.begin(), psi.end(), 0.0);
    if (sum == 0) return Values(psi.size(), 0.0);
    const double sum_slope = std::accumulate(slope.begin(), slope.end(), 0.0);
    for (std::size_t j = 0; j < psi.size(); ++j) slope[j] = (slope[j] - psi[j] * sum_slope / sum) / sum;
    return slope;
  };
  basis.constant = Values(basis.size, 1.0);
  return basis;
}

DepthBasis radial(const char* name, const RadialOptions& options, double (*function)(double),
                  double (*slope)(double)) {
  check(options.span);
  require(options.centres >= 1, "a radial basis needs at least one centre, got 0");
  require(options.width >= 0, "the width of a radial basis must be positive, got ", options.width);
  const double length = options.span.last - options.span.first;
  const std::size_t intervals = std::max<std::size_t>(1, options.centres - 1);
  const double width = options.width > 0 ? options.width : length / double(intervals);
  Values centres =
      options.centres == 1 ? Values{options.span.first + length / 2} : knots(options.span, intervals);
  DepthBasis basis{.name = name, .size = options.centres, .values = {}, .slopes = {}};
  basis.values = [=](double s) {
    Values psi;
    for (double centre : centres) psi.push_back(function((s - centre) / width));
    return psi;
  };
  basis.slopes = [=](double s) {
    Values psi;
    for (double centre : centres) psi.push_back(slope((s - centre) / width) / width);
    return psi;
  };
  if (options.normalised) return shares_of(basis, options.span);
  basis.constant = closest_to_one(basis, options.span);
  return basis;
}

}  // namespace

DepthBasis fourier(const FourierOptions& options) {
  require(options.period > 0 && std::isfinite(options.period),
          "the period of a Fourier basis must be positive, got ", options.period);
  const double base = 2 * std::numbers::pi / options.period;
  const double flat = 1 / std::sqrt(options.period), wave = std::sqrt(2 / options.period);
  const std::size_t m = options.harmonics;
  DepthBasis basis{.name = "fourier", .size = 2 * m + 1, .values = {}, .slopes = {}};
  basis.values = [=](double s) {
    Values psi = {flat};
    for (std::size_t j = 1; j <= m; ++j) {
      psi.push_back(wave * std::cos(base * double(j) * s));
      psi.push_back(wave * std::sin(base * double(j) * s));
    }
    return psi;
  };
  basis.slopes = [=](double s) {
    Values psi = {0.0};
    for (std::size_t j = 1; j <= m; ++j) {
      const double frequency = base * double(j);
      psi.push_back(-wave * frequency * std::sin(frequency * s));
      psi.push_back(wave * frequency * std::cos(frequency * s));
    }
    return psi;
  };
  basis.constant = unit(basis.size, 0, 1 / flat);
  return basis;
}

DepthBasis chebyshev(const PolynomialOptions& options) {
  check(options.span);
  const auto [first, last] = options.span;
  const double scale = 2 / (last - first), offset = -1 - scale * first;
  const std::size_t size = options.degree + 1;
  DepthBasis basis{.name = "chebyshev", .size = size, .values = {}, .slopes = {}};
  basis.values = [=](double s) {
    const double t = scale * s + offset;
    Values psi(size, 1.0);
    if (size > 1) psi[1] = t;
    for (std::size_t n = 2; n < size; ++n) psi[n] = 2 * t * psi[n - 1] - psi[n - 2];
    return psi;
  };
  basis.slopes = [=](double s) {
    // dT_n/dt = n U_{n-1}
    const double t = scale * s + offset;
    Values second(size, 1.0), psi(size, 0.0);
    if (size > 1) second[1] = 2 * t;
    for (std::size_t n = 2; n < size; ++n) second[n] = 2 * t * second[n - 1] - second[n - 2];
    for (std::size_t n = 1; n < size; ++n) psi[n] = double(n) * second[n - 1] * scale;
    return psi;
  };
  basis.constant = unit(size, 0);
  return basis;
}

DepthBasis legendre(const PolynomialOptions& options) {
  check(options.span);
  const auto [first, last] = options.span;
  const double length = last - first, scale = 2 / length, offset = -1 - scale * first;
  const std::size_t size = options.degree + 1;
  const auto norm = [=](std::size_t n) { return std::sqrt((2 * double(n) + 1) / length); };
  const auto plain = [=](double t) {
    Values p(size, 1.0);
    if (size > 1) p[1] = t;
    for (std::size_t n = 2; n < size; ++n) {
      p[n] = ((2 * double(n) - 1) * t * p[n - 1] - (double(n) - 1) * p[n - 2]) / double(n);
    }
    return p;
  };
  DepthBasis basis{.name = "legendre", .size = size, .values = {}, .slopes = {}};
  basis.values = [=](double s) {
    Values psi = plain(scale * s + offset);
    for (std::size_t n = 0; n < size; ++n) psi[n] *= norm(n);
    return psi;
  };
  basis.slopes = [=](double s) {
    // P'_{n+1} = P'_{n-1} + (2n + 1) P_n
    const Values p = plain(scale * s + offset);
    Values slope(size, 0.0);
    for (std::size_t n = 1; n < size; ++n) {
      slope[n] = (n >= 2 ? slope[n - 2] : 0.0) + (2 * double(n) - 1) * p[n - 1];
    }
    for (std::size_t n = 0; n < size; ++n) slope[n] *= scale * norm(n);
    return slope;
  };
  basis.constant = unit(size, 0, 1 / norm(0));
  return basis;
}

DepthBasis polynomial(std::size_t degree) {
  const std::size_t size = degree + 1;
  DepthBasis basis{.name = "polynomial", .size = size, .values = {}, .slopes = {}};
  basis.values = [=](double s) {
    Values psi(size, 1.0);
    for (std::size_t n = 1; n < size; ++n) psi[n] = psi[n - 1] * s;
    return psi;
  };
  basis.slopes = [=](double s) {
    Values psi(size, 0.0);
    double power = 1;
    for (std::size_t n = 1; n < size; ++n, power *= s) psi[n] = double(n) * power;
    return psi;
  };
  basis.constant = unit(size, 0);
  return basis;
}

DepthBasis gaussian_radial(const RadialOptions& options) {
  return radial(
      "gaussian radial", options, [](double r) { return std::exp(-r * r / 2); },
      [](double r) { return -r * std::exp(-r * r / 2); });
}

DepthBasis multiquadric_radial(const RadialOptions& options) {
  return radial(
      "multiquadric radial", options, [](double r) { return std::sqrt(1 + r * r); },
      [](double r) { return r / std::sqrt(1 + r * r); });
}

DepthBasis piecewise_constant(const PieceOptions& options) {
  check(options.span);
  require(options.pieces >= 1, "a piecewise constant basis needs at least one piece, got 0");
  const Values points = knots(options.span, options.pieces);
  const std::size_t size = options.pieces;
  DepthBasis basis{.name = "piecewise constant", .size = size, .values = {}, .slopes = {}};
  basis.values = [=](double s) { return unit(size, piece_of(points, s)); };
  basis.slopes = [=](double) { return Values(size, 0.0); };
  basis.break_points = Values(points.begin() + 1, points.end() - 1);
  basis.constant = Values(size, 1.0);
  return basis;
}

DepthBasis piecewise_linear(const PieceOptions& options) {
  check(options.span);
  require(options.pieces >= 1, "a piecewise linear basis needs at least one piece, got 0");
  const Values points = knots(options.span, options.pieces);
  const std::size_t size = options.pieces + 1;
  DepthBasis basis{.name = "piecewise linear", .size = size, .values = {}, .slopes = {}};
  basis.values = [=](double s) {
    const std::size_t piece = piece_of(points, s);
    // Beyond the span the outermost values are held.
    const double part = std::clamp((s - points[piece]) / (points[piece + 1] - points[piece]), 0.0, 1.0);
    Values psi = unit(size, piece, 1 - part);
    psi[piece + 1] = part;
    return psi;
  };
  basis.slopes = [=](double s) {
    Values psi(size, 0.0);
    if (s < points.front() || s > points.back()) return psi;
    const std::size_t piece = piece_of(points, s);
    psi[piece + 1] = 1 / (points[piece + 1] - points[piece]);
    psi[piece] = -psi[piece + 1];
    return psi;
  };
  basis.break_points = Values(points.begin() + 1, points.end() - 1);
  basis.constant = Values(size, 1.0);
  return basis;
}

DepthBasis own_basis(std::string name, std::size_t size, std::function<Values(double)> values,
                     std::function<Values(double)> slopes, const DepthSpan& span) {
  check(span);
  require(size >= 1, "basis `", name, "` needs at least one function, got 0");
  require(bool(values), "basis `", name, "` needs a function of depth, got none");
  DepthBasis basis{.name = name, .size = size, .values = {}, .slopes = std::move(slopes)};
  basis.values = [=](double s) {
    Values psi = values(s);
    require(psi.size() == size, "basis `", name, "` must return ", size, " values, got ", psi.size());
    return psi;
  };
  if (!basis.slopes) {
    basis.slopes = [values = basis.values](double s) {
      const double h = 1e-3 * std::max(1.0, std::abs(s));  // fourth order: the error is of order h^4
      const Values a = values(s - 2 * h), b = values(s - h), c = values(s + h), d = values(s + 2 * h);
      Values slope(a.size());
      for (std::size_t j = 0; j < slope.size(); ++j)
        slope[j] = (8 * (c[j] - b[j]) - (d[j] - a[j])) / (12 * h);
      return slope;
    };
  }
  basis.constant = closest_to_one(basis, span);
  return basis;
}

DepthBasis torchdyn_fourier(std::size_t m) {
  require(m >= 1, "a Fourier basis needs at least one function, got 0");
  Values frequencies;
  for (std::size_t k = 0; k < m; ++k)
    frequencies.push_back(m == 1 ? 0.0 : double(m) * double(k) / double(m - 1));
  DepthBasis basis{.name = "torchdyn fourier", .size = 2 * m, .values = {}, .slopes = {}};
  basis.values = [=](double s) {
    Values psi;
    for (double n : frequencies) psi.push_back(std::cos(n * s));
    for (double n : frequencies) psi.push_back(std::sin(n * s));
    return psi;
  };
  basis.slopes = [=](double s) {
    Values psi;
    for (double n : frequencies) psi.push_back(-n * std::sin(n * s));
    for (double n : frequencies) psi.push_back(n * std::cos(n * s));
    return psi;
  };
  basis.constant = unit(basis.size, 0);  // its first frequency is 0
  return basis;
}

}  // namespace fathom
