#include "fathom/data/toy_sets.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

using torch::Tensor;

void check_samples(std::int64_t samples) {
  require(samples >= 0, "the number of samples must not be negative, got ", samples);
}

void check_classes(std::int64_t classes) {
  require(classes >= 1, "the number of classes must be positive, got ", classes);
}

void check_spread(const char* name, double value) {
  require(value >= 0 && std::isfinite(value), "the ", name, " must be finite and not negative, got ", value);
}

/// 0 ... 0 1 ... 1 2 ...: the sizes of two classes differ by at most one.
Tensor balanced_labels(std::int64_t samples, std::int64_t classes) {
  return (torch::arange(samples, torch::kInt64) * classes).div(std::max<std::int64_t>(samples, 1), "floor");
}

Tensor on_circle(const Tensor& angles) { return torch::stack({angles.cos(), angles.sin()}, 1); }

/// Everything is drawn and computed in float64, so that a set is the same picture whatever the rounding of float32.
Labelled with_noise(const Tensor& points, const Tensor& labels, double noise,
                    const at::Generator& generator) {
  const Tensor moved = points + noise * torch::randn(points.sizes(), generator, torch::kFloat64);
  return {moved.to(torch::kFloat32), labels};
}

}  // namespace

Labelled nested_spirals(const SpiralsOptions& options) {
  check_samples(options.samples);
  check_classes(options.classes);
  check_spread("noise", options.noise);
  require(options.inner_radius >= 0 && options.outer_radius > options.inner_radius,
          "the spirals need 0 <= inner_radius < outer_radius, got ", options.inner_radius, " and ",
          options.outer_radius);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  const Tensor labels = balanced_labels(options.samples, options.classes);
  const Tensor t = torch::rand({options.samples}, generator, torch::kFloat64);
  const Tensor r = options.inner_radius + (options.outer_radius - options.inner_radius) * t;
  const Tensor a = 2 * std::numbers::pi * (options.turns * t + labels / double(options.classes));
  return with_noise(r.unsqueeze(1) * on_circle(a), labels, options.noise, generator);
}

Labelled half_moons(const MoonsOptions& options) {
  check_samples(options.samples);
  check_spread("noise", options.noise);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  const Tensor labels = balanced_labels(options.samples, 2);
  const Tensor upper =
      on_circle(std::numbers::pi * torch::rand({options.samples}, generator, torch::kFloat64));
  const Tensor lower = torch::tensor({1.0, 0.5}, torch::kFloat64) - upper;
  return with_noise(torch::where((labels == 0).unsqueeze(1), upper, lower), labels, options.noise, generator);
}

Labelled gaussians(const GaussiansOptions& options) {
  check_samples(options.samples);
  check_classes(options.classes);
  check_spread("radius", options.radius);
  check_spread("deviation", options.deviation);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  const Tensor labels = balanced_labels(options.samples, options.classes);
  const Tensor angles = 2 * std::numbers::pi * labels.to(torch::kFloat64) / double(options.classes);
  return with_noise(options.radius * on_circle(angles), labels, options.deviation, generator);
}

Labelled concentric_spheres(const SpheresOptions& options) {
  check_samples(options.samples);
  check_spread("noise", options.noise);
  require(options.dimensions >= 1, "the number of dimensions must be positive, got ", options.dimensions);
  require(!options.radii.empty(), "the spheres need at least one radius, got none");
  for (double radius : options.radii)
    require(radius > 0 && std::isfinite(radius), "a sphere's radius must be positive, got ", radius);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  const Tensor labels = balanced_labels(options.samples, std::int64_t(options.radii.size()));
  const Tensor radii = torch::tensor(options.radii, torch::kFloat64).index_select(0, labels);
  // A Gaussian vector has no preferred direction.
  const Tensor directions = torch::nn::functional::normalize(
      torch::randn({options.samples, options.dimensions}, generator, torch::kFloat64));
  return with_noise(radii.unsqueeze(1) * directions, labels, options.noise, generator);
}

}  // namespace fathom
