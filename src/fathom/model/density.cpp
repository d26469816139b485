#include "fathom/model/density.hpp"

#include <cmath>
#include <numbers>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// log N(z; mean, deviation), summed over the last axis.
Tensor log_normal(const Tensor& z, const Tensor& mean, const Tensor& deviation) {
  const double log_root = 0.5 * std::log(2 * std::numbers::pi);
  return (-0.5 * ((z - mean) / deviation).square() - deviation.log() - log_root).sum(-1);
}

}  // namespace

Density diagonal_normal(const Tensor& mean, const Tensor& deviation) {
  require(mean.dim() == 1 && mean.sizes() == deviation.sizes(),
          "a diagonal normal needs a mean and a deviation of shape ", "(features), got ", mean.sizes(),
          " and ", deviation.sizes());
  require((deviation > 0).all().item<bool>(), "the deviations of a normal must be positive");
  return {.log_prob = [=](const Tensor& z, const Tensor&) { return log_normal(z, mean, deviation); },
          .sample =
              [=](std::int64_t count, const Tensor&) {
                return mean + deviation * torch::randn({count, mean.size(0)}, mean.options());
              }};
}

Density standard_normal(std::int64_t features, torch::ScalarType type) {
  return diagonal_normal(torch::zeros({features}, type), torch::ones({features}, type));
}

Density normal_mixture(const Mixture& mixture) {
  const auto& [weights, means, deviations] = mixture;
  require(means.dim() == 2 && means.sizes() == deviations.sizes() && weights.dim() == 1 &&
              weights.size(0) == means.size(0),
          "a mixture needs weights (k), means (k, features) and deviations (k, features), got ",
          weights.sizes(), ", ", means.sizes(), " and ", deviations.sizes());
  require((weights > 0).all().item<bool>() && (deviations > 0).all().item<bool>(),
          "the weights and deviations of a mixture must be positive");
  const Tensor shares = weights / weights.sum();
  return {.log_prob =
              [=, m = means, d = deviations](const Tensor& z, const Tensor&) {
                return torch::logsumexp(log_normal(z.unsqueeze(1), m, d) + shares.log(), 1);
              },
          .sample =
              [=, m = means, d = deviations](std::int64_t count, const Tensor&) {
                const Tensor which = torch::multinomial(shares, count, /*replacement=*/true);
                return m.index_select(0, which) +
                       d.index_select(0, which) * torch::randn({count, m.size(1)}, m.options());
              }};
}

}  // namespace fathom
