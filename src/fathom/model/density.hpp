/// Base densities of flows.
///
///   standard_normal(2);   diagonal_normal(mean, deviation);   normal_mixture({.weights = w, .means = m, .deviations = d})
#pragma once

#include <cstdint>
#include <functional>

#include "fathom/depth/depth_module.hpp"

namespace fathom {

/// Two functions; a user's own density is a value of this type. The condition is undefined where there is none.
struct Density {
  std::function<Tensor(const Tensor& z, const Tensor& condition)> log_prob;   ///< (batch, d) -> (batch)
  std::function<Tensor(std::int64_t count, const Tensor& condition)> sample;  ///< -> (count, d)
};

/// N(mean, diag(deviation^2)); both (d).
Density diagonal_normal(const Tensor& mean, const Tensor& deviation);
Density standard_normal(std::int64_t features, torch::ScalarType type = torch::kFloat32);

struct Mixture {
  Tensor weights;     ///< (k), positive; normalised here
  Tensor means;       ///< (k, d)
  Tensor deviations;  ///< (k, d)
};
Density normal_mixture(const Mixture& mixture);

}  // namespace fathom
