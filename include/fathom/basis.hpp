/// Functions of depth to build theta(s) from, as data: they can be compared, saved and sent elsewhere.
///   theta(s) = sum_j alpha_j psi_j(s)
///
///   const Basis basis{.kind = BasisKind::fourier, .size = 5};       // 1, cos, sin, ..., up to five periods on [0, 1]
///   function_count(basis);                                          // 11
///
/// What the kinds are is told by the functions of depth/basis.hpp that have their names.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fathom {

/// The span of depths that a basis is laid out over; it can be evaluated beyond.
struct DepthSpan {
  double first = 0;
  double last = 1;
  bool operator==(const DepthSpan&) const = default;
};

enum class BasisKind {
  fourier,     ///< size: harmonics
  chebyshev,   ///< size: degree
  legendre,    ///< size: degree
  polynomial,  ///< size: degree
  gaussian,    ///< size: centres
  multiquadric,
  piecewise_constant,  ///< size: pieces
  piecewise_linear
};

struct Basis {
  BasisKind kind = BasisKind::fourier;
  std::int32_t size = 5;  ///< see BasisKind
  DepthSpan span = {};    ///< of a Fourier basis: one period
  bool operator==(const Basis&) const = default;
};

/// How many functions it has.
std::int32_t function_count(const Basis& basis);
/// psi_j(s) and dpsi_j/ds, (function_count). Allocate nothing.
void evaluate(const Basis& basis, double s, std::span<double> values);
void evaluate_slopes(const Basis& basis, double s, std::span<double> slopes);
/// Where a function or a slope of it jumps.
std::vector<double> break_points(const Basis& basis);
/// Coefficients c with sum_j c_j psi_j = 1, or closest to it.
std::vector<double> constant_coefficients(const Basis& basis);

}  // namespace fathom
