/// Products with the Jacobian of a rate that can themselves be differentiated, for losses inside a solve.
#pragma once

#include <functional>

#include "fathom/depth/depth_module.hpp"

namespace fathom {

/// v df/dz at z, of the shape of z; carries a graph where the caller's z and weights do.
Tensor vector_jacobian_product(const std::function<Tensor(const Tensor&)>& rate, const Tensor& z,
                               const Tensor& v);

/// df/dz and df/du, (batch, features, features): by one product for each feature. `u` may be undefined.
struct Jacobians {
  Tensor rate;     ///< (batch, features)
  Tensor state;    ///< df/dz
  Tensor control;  ///< df/du, undefined without u
};
Jacobians jacobians(const std::function<Tensor(const Tensor& z, const Tensor& u)>& rate, const Tensor& z,
                    const Tensor& u);

}  // namespace fathom
