/// A field that the caller computes: rate and vector-Jacobian product are functions on spans. Whatever a Session does with a program, it
/// does with these: every method, adaptive steps, discrete and continuous adjoint, gradients for bounds and saved depths, losses.
///   rate:     f(s, z; theta)
///   product:  a -> (df/dz)^T a,  (df/dtheta)^T a,  (df/ds) . a
///
///   CallbackField<double> decay{.features = 1, .parameters = 1};
///   decay.rate = [](const Evaluation<double>& e, std::span<double> rate) {
///     for (std::size_t i = 0; i < rate.size(); ++i) rate[i] = -e.parameters[0] * e.state[i];
///   };
///   Session<double> session(decay.field(), {.derivative = Derivative::none});
///
/// The functions get all samples at once, by the thread that calls the Session; what they throw comes out of it as a SolveFailure with
/// the exception nested, and as it is in a gradient. Spans are for the call alone. Both are copied into the field.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "fathom/program_field.hpp"

namespace fathom {

/// Where a field is evaluated.
template <class T> struct Evaluation {
  double depth = 0;
  std::int64_t samples = 0;
  std::span<const T> state;       ///< (samples, features)
  std::span<const T> parameters;  ///< (parameters)
  std::span<const T> input;       ///< (samples, inputs)
};

/// Where a vector-Jacobian product goes. All are zero before the call, to be added to.
template <class T> struct AdjointProduct {
  std::span<T> state;       ///< (samples, features)
  std::span<T> parameters;  ///< (parameters); empty: not wanted
  std::span<T> input;       ///< (samples, inputs); empty: not wanted
  std::span<T> depth;       ///< (samples): df/ds . a; empty: not wanted
};

/// T: the type of the Session that solves it.
template <class T> struct CallbackField {
  std::int64_t features = 0;
  std::int64_t parameters = 0;  ///< numbers, as one array
  std::int64_t inputs = 0;      ///< features of a control, one row a sample
  std::function<void(const Evaluation<T>&, std::span<T> rate)> rate = {};  ///< (samples, features)
  /// Without it the field can be solved, but not differentiated.
  std::function<void(const Evaluation<T>&, std::span<const T> adjoint, const AdjointProduct<T>&)> product =
      {};
  std::vector<double> break_points = {};  ///< depths where the field jumps

  ProgramField field() const;
};

}  // namespace fathom
