#include "fathom/depth/basis.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>

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

/// Point n of pieces + 1 from first to last; the ends are exact.
double knot(const DepthSpan& span, std::size_t pieces, std::size_t n) {
  return n == pieces ? span.last : span.first + (span.last - span.first) * double(n) / double(pieces);
}

/// The piece that holds s; the outer ones reach to infinity. A joint belongs to the piece on its right.
std::size_t piece_of(const DepthSpan& span, std::size_t pieces, double s) {
  std::size_t piece = 0;
  while (piece + 1 < pieces && s >= knot(span, pieces, piece + 1)) ++piece;
  return piece;
}

/// Where pieces meet.
Values joints(const DepthSpan& span, std::size_t pieces) {
  Values points;
  for (std::size_t n = 1; n < pieces; ++n) points.push_back(knot(span, pieces, n));
  return points;
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
  basis.data = {};
  return basis;
}

/// Radial functions on equally spaced centres.
struct Radial {
  double (*function)(double) = nullptr;
  double (*slope)(double) = nullptr;
  std::size_t centres = 1;
  DepthSpan span = {};
  double width = 0;

  static double usual_width(std::size_t centres, const DepthSpan& span) {
    return (span.last - span.first) / double(std::max<std::size_t>(1, centres - 1));
  }
  double centre(std::size_t n) const {
    return centres == 1 ? span.first + (span.last - span.first) / 2 : knot(span, centres - 1, n);
  }
  void values(double s, std::span<double> psi) const {
    for (std::size_t n = 0; n < centres; ++n) psi[n] = function((s - centre(n)) / width);
  }
  void slopes(double s, std::span<double> psi) const {
    for (std::size_t n = 0; n < centres; ++n) psi[n] = slope((s - centre(n)) / width) / width;
  }
};

Radial gaussian_of(std::size_t centres, const DepthSpan& span, double width) {
  return {[](double r) { return std::exp(-r * r / 2); }, [](double r) { return -r * std::exp(-r * r / 2); },
          centres, span, width};
}

Radial multiquadric_of(std::size_t centres, const DepthSpan& span, double width) {
  return {[](double r) { return std::sqrt(1 + r * r); }, [](double r) { return r / std::sqrt(1 + r * r); },
          centres, span, width};
}

Radial radial_of(const Basis& basis) {
  const std::size_t centres = std::size_t(basis.size);
  const double width = Radial::usual_width(centres, basis.span);
  return basis.kind == BasisKind::gaussian ? gaussian_of(centres, basis.span, width)
                                           : multiquadric_of(centres, basis.span, width);
}

/// The same in the form of functions, with a name.
DepthBasis functions_of(std::string name, const Basis& data) {
  DepthBasis basis{.name = std::move(name),
                   .size = std::size_t(function_count(data)),
                   .values = {},
                   .slopes = {},
                   .data = data};
  basis.values = [data, size = basis.size](double s) {
    Values psi(size);
    evaluate(data, s, psi);
    return psi;
  };
  basis.slopes = [data, size = basis.size](double s) {
    Values psi(size);
    evaluate_slopes(data, s, psi);
    return psi;
  };
  return basis;
}

using MakeRadial = Radial (*)(std::size_t centres, const DepthSpan& span, double width);

DepthBasis radial(const char* name, BasisKind kind, const RadialOptions& options, MakeRadial make) {
  check(options.span);
  require(options.centres >= 1, "a radial basis needs at least one centre, got 0");
  require(options.width >= 0, "the width of a radial basis must be positive, got ", options.width);
  DepthBasis basis = functions_of(name, {kind, std::int32_t(options.centres), options.span});
  if (options.width > 0) {
    const Radial own = make(options.centres, options.span, options.width);
    basis.values = [own](double s) {
      Values psi(own.centres);
      own.values(s, psi);
      return psi;
    };
    basis.slopes = [own](double s) {
      Values psi(own.centres);
      own.slopes(s, psi);
      return psi;
    };
    basis.data = {};
  }
  if (options.normalised) return shares_of(basis, options.span);
  basis.constant = closest_to_one(basis, options.span);
  return basis;
}

/// T_n by their recurrence, in t on [-1, 1]; with 2 t in place of t at n = 1, U_n.
void chebyshev_values(double t, double at_one, std::span<double> psi) {
  std::fill(psi.begin(), psi.end(), 1.0);
  if (psi.size() > 1) psi[1] = at_one;
  for (std::size_t n = 2; n < psi.size(); ++n) psi[n] = 2 * t * psi[n - 1] - psi[n - 2];
}

void legendre_values(double t, std::span<double> p) {
  std::fill(p.begin(), p.end(), 1.0);
  if (p.size() > 1) p[1] = t;
  for (std::size_t n = 2; n < p.size(); ++n)
    p[n] = ((2 * double(n) - 1) * t * p[n - 1] - (double(n) - 1) * p[n - 2]) / double(n);
}

double legendre_norm(std::size_t n, double length) { return std::sqrt((2 * double(n) + 1) / length); }

/// Of a span, to [-1, 1].
struct Mapped {
  explicit Mapped(const DepthSpan& span)
      : scale(2 / (span.last - span.first)), offset(-1 - scale * span.first) {}
  double scale, offset;
  double operator()(double s) const { return scale * s + offset; }
};

}  // namespace

std::int32_t function_count(const Basis& basis) {
  switch (basis.kind) {
    case BasisKind::fourier: return 2 * basis.size + 1;
    case BasisKind::chebyshev:
    case BasisKind::legendre:
    case BasisKind::polynomial:
    case BasisKind::piecewise_linear: return basis.size + 1;
    case BasisKind::gaussian:
    case BasisKind::multiquadric:
    case BasisKind::piecewise_constant: return basis.size;
  }
  throw InvalidArgument("a basis of unknown kind");
}

void evaluate(const Basis& basis, double s, std::span<double> psi) {
  const std::size_t pieces = std::size_t(basis.size);
  switch (basis.kind) {
    case BasisKind::fourier: {
      const double period = basis.span.last - basis.span.first, base = 2 * std::numbers::pi / period;
      const double wave = std::sqrt(2 / period);
      psi[0] = 1 / std::sqrt(period);
      for (std::size_t j = 1; j <= pieces; ++j) {
        psi[2 * j - 1] = wave * std::cos(base * double(j) * s);
        psi[2 * j] = wave * std::sin(base * double(j) * s);
      }
      return;
    }
    case BasisKind::chebyshev: {
      const double t = Mapped(basis.span)(s);
      return chebyshev_values(t, t, psi);
    }
    case BasisKind::legendre: {
      legendre_values(Mapped(basis.span)(s), psi);
      const double length = basis.span.last - basis.span.first;
      for (std::size_t n = 0; n < psi.size(); ++n) psi[n] *= legendre_norm(n, length);
      return;
    }
    case BasisKind::polynomial:
      psi[0] = 1;
      for (std::size_t n = 1; n < psi.size(); ++n) psi[n] = psi[n - 1] * s;
      return;
    case BasisKind::gaussian:
    case BasisKind::multiquadric: return radial_of(basis).values(s, psi);
    case BasisKind::piecewise_constant:
      std::fill(psi.begin(), psi.end(), 0.0);
      psi[piece_of(basis.span, pieces, s)] = 1;
      return;
    case BasisKind::piecewise_linear: {
      const std::size_t piece = piece_of(basis.span, pieces, s);
      const double from = knot(basis.span, pieces, piece), to = knot(basis.span, pieces, piece + 1);
      // Beyond the span the outermost values are held.
      const double part = std::clamp((s - from) / (to - from), 0.0, 1.0);
      std::fill(psi.begin(), psi.end(), 0.0);
      psi[piece] = 1 - part;
      psi[piece + 1] = part;
      return;
    }
  }
  throw InvalidArgument("a basis of unknown kind");
}

void evaluate_slopes(const Basis& basis, double s, std::span<double> psi) {
  const std::size_t pieces = std::size_t(basis.size);
  switch (basis.kind) {
    case BasisKind::fourier: {
      const double period = basis.span.last - basis.span.first, base = 2 * std::numbers::pi / period;
      const double wave = std::sqrt(2 / period);
      psi[0] = 0;
      for (std::size_t j = 1; j <= pieces; ++j) {
        const double frequency = base * double(j);
        psi[2 * j - 1] = -wave * frequency * std::sin(frequency * s);
        psi[2 * j] = wave * frequency * std::cos(frequency * s);
      }
      return;
    }
    case BasisKind::chebyshev: {
      // dT_n/dt = n U_{n-1}, from the last so that each reads what is still U.
      const Mapped mapped(basis.span);
      const double t = mapped(s);
      chebyshev_values(t, 2 * t, psi);
      for (std::size_t n = psi.size(); n-- > 1;) psi[n] = double(n) * psi[n - 1] * mapped.scale;
      psi[0] = 0;
      return;
    }
    case BasisKind::legendre: {
      // P'_{n+1} = P'_{n-1} + (2n + 1) P_n, with P_{n-1} and P_n along the way.
      const Mapped mapped(basis.span);
      const double t = mapped(s), length = basis.span.last - basis.span.first;
      double before = 0, here = 1;  // P_{n-2}, P_{n-1}
      psi[0] = 0;
      for (std::size_t n = 1; n < psi.size(); ++n) {
        psi[n] = (n >= 2 ? psi[n - 2] : 0.0) + (2 * double(n) - 1) * here;
        const double next =
            n == 1 ? t : ((2 * double(n) - 1) * t * here - (double(n) - 1) * before) / double(n);
        before = here, here = next;
      }
      for (std::size_t n = 0; n < psi.size(); ++n) psi[n] *= mapped.scale * legendre_norm(n, length);
      return;
    }
    case BasisKind::polynomial: {
      double power = 1;
      psi[0] = 0;
      for (std::size_t n = 1; n < psi.size(); ++n, power *= s) psi[n] = double(n) * power;
      return;
    }
    case BasisKind::gaussian:
    case BasisKind::multiquadric: return radial_of(basis).slopes(s, psi);
    case BasisKind::piecewise_constant: std::fill(psi.begin(), psi.end(), 0.0); return;
    case BasisKind::piecewise_linear: {
      std::fill(psi.begin(), psi.end(), 0.0);
      if (s < basis.span.first || s > basis.span.last) return;
      const std::size_t piece = piece_of(basis.span, pieces, s);
      psi[piece + 1] = 1 / (knot(basis.span, pieces, piece + 1) - knot(basis.span, pieces, piece));
      psi[piece] = -psi[piece + 1];
      return;
    }
  }
  throw InvalidArgument("a basis of unknown kind");
}

DepthBasis fourier(const FourierOptions& options) {
  require(options.period > 0 && std::isfinite(options.period),
          "the period of a Fourier basis must be positive, got ", options.period);
  DepthBasis basis =
      functions_of("fourier", {BasisKind::fourier, std::int32_t(options.harmonics), {0, options.period}});
  basis.constant = unit(basis.size, 0, 1 / (1 / std::sqrt(options.period)));
  return basis;
}

DepthBasis chebyshev(const PolynomialOptions& options) {
  check(options.span);
  DepthBasis basis =
      functions_of("chebyshev", {BasisKind::chebyshev, std::int32_t(options.degree), options.span});
  basis.constant = unit(basis.size, 0);
  return basis;
}

DepthBasis legendre(const PolynomialOptions& options) {
  check(options.span);
  DepthBasis basis =
      functions_of("legendre", {BasisKind::legendre, std::int32_t(options.degree), options.span});
  basis.constant = unit(basis.size, 0, 1 / legendre_norm(0, options.span.last - options.span.first));
  return basis;
}

DepthBasis polynomial(std::size_t degree) {
  DepthBasis basis = functions_of("polynomial", {BasisKind::polynomial, std::int32_t(degree), {}});
  basis.constant = unit(basis.size, 0);
  return basis;
}

DepthBasis gaussian_radial(const RadialOptions& options) {
  return radial("gaussian radial", BasisKind::gaussian, options, gaussian_of);
}

DepthBasis multiquadric_radial(const RadialOptions& options) {
  return radial("multiquadric radial", BasisKind::multiquadric, options, multiquadric_of);
}

DepthBasis piecewise_constant(const PieceOptions& options) {
  check(options.span);
  require(options.pieces >= 1, "a piecewise constant basis needs at least one piece, got 0");
  DepthBasis basis = functions_of(
      "piecewise constant", {BasisKind::piecewise_constant, std::int32_t(options.pieces), options.span});
  basis.break_points = joints(options.span, options.pieces);
  basis.constant = Values(basis.size, 1.0);
  return basis;
}

DepthBasis piecewise_linear(const PieceOptions& options) {
  check(options.span);
  require(options.pieces >= 1, "a piecewise linear basis needs at least one piece, got 0");
  DepthBasis basis = functions_of("piecewise linear",
                                  {BasisKind::piecewise_linear, std::int32_t(options.pieces), options.span});
  basis.break_points = joints(options.span, options.pieces);
  // The slope jumps at the ends as well, since values are held beyond them.
  basis.break_points.insert(basis.break_points.begin(), options.span.first);
  basis.break_points.push_back(options.span.last);
  basis.constant = Values(basis.size, 1.0);
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
