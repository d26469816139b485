#include "fathom/model/regularizers.hpp"

#include "fathom/depth/depth_layers.hpp"
#include "fathom/field/rate_of.hpp"
#include "fathom/model/products.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

Tensor squares_by_sample(const Tensor& values) {
  return values.dim() <= 1 ? values.square() : values.square().flatten(1).sum(1);
}

/// sqrt with a slope of 0 where it would be infinite: a sample at rest has no direction to be pushed in.
Tensor norm_by_sample(const Tensor& values) {
  const Tensor squares = squares_by_sample(values);
  const Tensor moving = squares > 0;
  return torch::where(moving, torch::where(moving, squares, torch::ones_like(squares)).sqrt(),
                      torch::zeros_like(squares));
}

}  // namespace

RunningLoss path_length() {
  return {
      [](const Tensor&, const Tensor&, const Tensor&, const Tensor& rate) { return norm_by_sample(rate); },
      RunningLoss::Kind::path_length};
}

RunningLoss kinetic_energy() {
  return {
      [](const Tensor&, const Tensor&, const Tensor&, const Tensor& rate) { return squares_by_sample(rate); },
      RunningLoss::Kind::kinetic_energy};
}

RunningLoss tracking(const DepthBasis& target) {
  const auto distance = [target](const Tensor& s, const Tensor&, const Tensor& z, const Tensor&) {
    require(z.dim() == 2 && z.size(1) == std::int64_t(target.size), "the target `", target.name, "` has ",
            target.size, " features, but the state has shape ", z.sizes());
    return squares_by_sample(z - evaluate(target, s, z.options()));
  };
  return {distance, RunningLoss::Kind::tracking, target};
}

RunningLoss jacobian_norm(const Field& field, const Tensor& probe) {
  return [=](const Tensor& s, const Tensor& x, const Tensor& z, const Tensor&) {
    require(probe.sizes() == z.sizes(), "the probe must have the shape of the state ", z.sizes(), ", got ",
            probe.sizes());
    const auto rate = [&](const Tensor& at) { return rate_of(*field, s, x, at); };
    return squares_by_sample(vector_jacobian_product(rate, z, probe));
  };
}

Tensor terminal_speed(NeuralOdeImpl& ode, const Tensor& x, const Tensor& final_state) {
  return norm_by_sample(ode.rate(ode.options().last, x, final_state));
}

}  // namespace fathom
