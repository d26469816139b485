/// An explicit Runge-Kutta method as data:
///   k_i = f(s + c_i h, z + h sum_j a_ij k_j),   z(s + h) = z + h sum_i b_i k_i,
///   z(s + t h) = z + h sum_i b_i(t) k_i  with  b_i(t) = sum_n dense[i][n] t^(n+1)   for t in [0, 1].
///
///   const ButcherTableau method = dopri5();
///   method.end_rate_stage();    // 6: its last stage is the first of the next step (FSAL)
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fathom::ode {

struct ButcherTableau {
  std::string name = {};
  int order = 0;           ///< p, of `b`
  int embedded_order = 0;  ///< of `b - error`; 0 when the method has no error estimate
  int dense_order = 0;     ///< of `b(t)`

  std::vector<double> c = {};  ///< (stages + dense stages)
  std::vector<std::vector<double>> a =
      {};                          ///< row i has i entries; rows beyond `stages()` serve dense output only
  std::vector<double> b = {};      ///< (stages)
  std::vector<double> error = {};  ///< b - b^, (stages) or empty
  /// A second, coarser b - b^ that damps the first: error = E^2 / sqrt(E^2 + 0.01 C^2), of order 2 E - C (dop853 only).
  std::vector<double> coarse_error = {};
  std::vector<std::vector<double>> dense = {};  ///< (stages + dense stages, degree)

  std::size_t stages() const { return b.size(); }
  std::size_t dense_stages() const { return c.size() - b.size(); }
  bool adaptive() const { return !error.empty(); }

  /// The exponent's denominator in step control: the estimated error behaves like h^control_order.
  int control_order() const;

  /// Of `error` alone: on z' = lambda z it estimates  error_constant (h lambda)^error_order z,  and higher powers of h.
  int error_order() const;
  double error_constant() const;

  /// The stage whose value is f at the step's end, found from the coefficients: c_i = 1 and a_i = b.
  std::optional<std::size_t> end_rate_stage() const;

  /// True when that stage is computed anyway, so that an accepted step gives the next one its first rate for free.
  bool first_same_as_last() const;

  /// b_i(t) for all stages and dense stages.
  std::vector<double> dense_weights(double t) const;
  void dense_weights(double t, std::span<double> weights) const;

  /// d b_i / dt.
  std::vector<double> dense_weight_rates(double t) const;
  void dense_weight_rates(double t, std::span<double> rates) const;
};

/// Completes a method that has no interpolant of its own by the cubic Hermite one through both ends and both rates;
/// the rate at the end becomes a dense stage unless the method has it already.
ButcherTableau with_hermite_output(ButcherTableau method);

/// Throws InvalidArgument when sizes disagree or a row sum differs from its c_i: what every method must satisfy.
void check_consistency(const ButcherTableau& method);

}  // namespace fathom::ode
