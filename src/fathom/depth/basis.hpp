/// Functions of depth to build theta(s) from:  theta(s) = sum_j alpha_j psi_j(s).          (M3, M4)
///
///   DepthLinear(2, 32, fourier({.harmonics = 5}));     // Galerkin
///   DepthLinear(2, 32, piecewise_constant({.pieces = 4}));   // stacked: a Galerkin layer whose basis are indicators
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fathom/basis.hpp"

namespace fathom {

struct DepthBasis {
  std::string name;
  std::size_t size = 0;
  std::function<std::vector<double>(double s)> values;  ///< psi(s), (size)
  std::function<std::vector<double>(double s)> slopes;  ///< dpsi/ds, (size)
  std::vector<double> break_points = {};                ///< where psi or a slope of it jumps
  /// Coefficients c with sum_j c_j psi_j = 1, exactly where the basis contains the constants, closest otherwise.
  std::vector<double> constant = {};
  /// What these functions are, where they are of a known kind: functions cannot be compared, this can.
  std::optional<Basis> data = {};
};

struct FourierOptions {
  std::size_t harmonics = 5;
  double period = 1;
};
/// 1, cos(2 pi j s / T), sin(2 pi j s / T) for j = 1 .. harmonics, orthonormal on a period. Size 2 harmonics + 1.
DepthBasis fourier(const FourierOptions& options = {});

struct PolynomialOptions {
  std::size_t degree = 3;
  DepthSpan span = {};
};
/// T_n on the span mapped to [-1, 1], orthogonal with the weight 1 / sqrt(1 - t^2). Size degree + 1.
DepthBasis chebyshev(const PolynomialOptions& options = {});
/// P_n, orthonormal on the span. Size degree + 1.
DepthBasis legendre(const PolynomialOptions& options = {});
/// 1, s, s^2, ... (integer powers of depth itself). Size degree + 1.
DepthBasis polynomial(std::size_t degree);

struct RadialOptions {
  std::size_t centres = 5;  ///< spread evenly over the span, both ends included
  DepthSpan span = {};
  double width = 0;  ///< of one function; 0: the distance of the centres
  /// Divide by the sum of all, so that they add up to 1 everywhere. Without it the constants are not among the sums of radial
  /// functions: a fresh layer on five centres varies by about 2 % over the span.
  bool normalised = false;
};
/// exp(-((s - c_j) / w)^2 / 2)
DepthBasis gaussian_radial(const RadialOptions& options = {});
/// sqrt(1 + ((s - c_j) / w)^2)
DepthBasis multiquadric_radial(const RadialOptions& options = {});

struct PieceOptions {
  std::size_t pieces = 4;
  DepthSpan span = {};
};
/// Indicators of equal pieces; a break point at every joint. Beyond the span the outer pieces go on.
DepthBasis piecewise_constant(const PieceOptions& options = {});
/// Hats over pieces + 1 equally spaced knots: theta(s) as values on a grid, joined by straight lines.
DepthBasis piecewise_linear(const PieceOptions& options = {});

/// A user's own functions. Without `slopes` they are found by finite differences.
DepthBasis own_basis(std::string name, std::size_t size, std::function<std::vector<double>(double)> values,
                     std::function<std::vector<double>(double)> slopes = {}, const DepthSpan& span = {});

/// torchdyn's Fourier layers: cos(n_k s), sin(n_k s) with n = linspace(0, m, m), neither orthogonal nor harmonics; for
/// comparing parameter counts with published models.
DepthBasis torchdyn_fourier(std::size_t m);

}  // namespace fathom
