#include "fathom/depth/named_basis.hpp"

namespace fathom {

template <> const NameTable<BasisKind>& names<BasisKind>() {
  static const NameTable<BasisKind> table = {{BasisKind::fourier, "fourier"},
                                             {BasisKind::chebyshev, "chebyshev"},
                                             {BasisKind::legendre, "legendre"},
                                             {BasisKind::polynomial, "polynomial"},
                                             {BasisKind::gaussian, "gaussian"},
                                             {BasisKind::multiquadric, "multiquadric"},
                                             {BasisKind::piecewise_constant, "piecewise-constant"},
                                             {BasisKind::piecewise_linear, "piecewise-linear"}};
  return table;
}

DepthBasis named_basis(BasisKind kind, std::size_t size, const DepthSpan& span) {
  switch (kind) {
    case BasisKind::fourier: return fourier({.harmonics = size, .period = span.last - span.first});
    case BasisKind::chebyshev: return chebyshev({.degree = size, .span = span});
    case BasisKind::legendre: return legendre({.degree = size, .span = span});
    case BasisKind::polynomial: return polynomial(size);
    case BasisKind::gaussian: return gaussian_radial({.centres = size, .span = span});
    case BasisKind::multiquadric: return multiquadric_radial({.centres = size, .span = span});
    case BasisKind::piecewise_constant: return piecewise_constant({.pieces = size, .span = span});
    case BasisKind::piecewise_linear: return piecewise_linear({.pieces = size, .span = span});
  }
  throw InvalidArgument("a basis of unknown kind");
}

std::size_t basis_size(BasisKind kind, std::size_t size) {
  return std::size_t(function_count({.kind = kind, .size = std::int32_t(size)}));
}

std::vector<double> break_points(const Basis& basis) {
  return named_basis(basis.kind, std::size_t(basis.size), basis.span).break_points;
}

std::vector<double> constant_coefficients(const Basis& basis) {
  return named_basis(basis.kind, std::size_t(basis.size), basis.span).constant;
}

}  // namespace fathom
