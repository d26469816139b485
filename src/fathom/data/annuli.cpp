#include "fathom/data/annuli.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <numbers>

#include "fathom/support/error.hpp"

namespace fathom {

Labelled concentric_annuli(const AnnuliOptions& options) {
  require(options.samples >= 0, "the number of samples must not be negative, got ", options.samples);
  require(options.inner_radius > 0 && options.outer_radius > options.inner_radius,
          "the rings need 0 < inner_radius < outer_radius, got ", options.inner_radius, " and ",
          options.outer_radius);
  require(options.noise >= 0, "the noise must not be negative, got ", options.noise);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  const std::int64_t outer = options.samples / 2, inner = options.samples - outer;
  const torch::Tensor labels = torch::cat({-torch::ones({inner}), torch::ones({outer})});
  const torch::Tensor radii = torch::where(labels < 0, torch::full_like(labels, options.inner_radius),
                                           torch::full_like(labels, options.outer_radius));
  const torch::Tensor angles = 2 * std::numbers::pi * torch::rand({options.samples}, generator);
  const torch::Tensor circle = torch::stack({angles.cos(), angles.sin()}, 1) * radii.unsqueeze(1);
  return {circle + options.noise * torch::randn({options.samples, 2}, generator), labels};
}

}  // namespace fathom
