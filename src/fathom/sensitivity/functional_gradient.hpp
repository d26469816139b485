/// The gradient of a loss with respect to parameters that are functions of depth (G2):
///   delta ell / delta theta(s) = a(s) df/dtheta(s),   ell = L(z(S)) + int l ds,   a' = -a df/dz - dl/dz,   a(S) = dL/dz(S)
///
///   const auto gradient = functional_gradient(field, z0, {0.0, 1.0}, loss, {0.0, 0.1, 0.2});
///   gradient.values[0][2];    // at depth 0.2, for the first parameter
///
/// Its integral over depth is the gradient for a theta that is the same at all depths; its projection on psi_j is the
/// gradient for a coefficient of the basis function psi_j (G3).
#pragma once

#include <functional>
#include <vector>

#include "fathom/tensor/solver.hpp"

namespace fathom {

struct FunctionalGradient {
  std::vector<double> depths;
  Tensor adjoint;              ///< (depths, shape of z0)
  std::vector<Tensor> values;  ///< for each parameter of the field: (depths, its shape)
};

/// `span` is the start and the end of the solve, `at` the depths to read, in any order. A running loss of the field counts
/// with weight 1, summed over the batch; `terminal_loss` maps z(S) to a scalar and may be empty.
FunctionalGradient functional_gradient(const VectorField& field, const Tensor& z0,
                                       const std::vector<double>& span,
                                       const std::function<Tensor(const Tensor&)>& terminal_loss,
                                       const std::vector<double>& at, const Solver& solver = {});

}  // namespace fathom
