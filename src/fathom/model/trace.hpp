/// The divergence of a field, tr df/dz, for each sample: what a flow integrates.
#pragma once

#include "fathom/field/field.hpp"

namespace fathom {

/// By one vector-Jacobian product for each of d features: any field, cost d + 1 evaluations.
Tensor exact_divergence(const Field& field, const Tensor& s, const Tensor& x, const Tensor& z);

/// e^T df/dz e for a probe e with E[e e^T] = I: any field, cost 2 evaluations, unbiased.          (Hutchinson)
Tensor estimated_divergence(const Field& field, const Tensor& s, const Tensor& x, const Tensor& z,
                            const Tensor& probe);

/// Can `mlp_divergence` follow this field? Chains of linear layers, depth and the usual activations can.
bool is_plain_mlp(const Field& field);

/// Tangents pushed through the layers beside the values: exact, cost about d + 1 matrix products a layer, and no pass
/// backwards. Only for fields that `is_plain_mlp`.
Tensor mlp_divergence(const Field& field, const Tensor& s, const Tensor& x, const Tensor& z);

}  // namespace fathom
