#include "fathom/sensitivity/backward_field.hpp"

#include <algorithm>

namespace fathom {

BackwardField::BackwardField(const ForwardPass& pass, std::vector<bool> wanted_parameters,
                             const Interpolant* interpolant, bool parameters_in_error_norm)
    : pass_(pass),
      wanted_(std::move(wanted_parameters)),
      size_(pass.field.size()),
      interpolant_(interpolant) {
  flat_.break_points = pass.field.break_points;
  const auto add = [&](const char* what) {
    for (const Part& part : pass.field.parts) flat_.parts.push_back({what + part.name, part.shape});
  };
  if (!interpolant_) add("on the way back, ");
  add("adjoint of ");
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (!wanted_[i]) continue;
    const std::string name = "gradient of parameter " + std::to_string(i);
    flat_.parts.push_back({name, pass.field.parameters[i].sizes().vec(), parameters_in_error_norm});
  }
  flat_.rate = [this](const Tensor& s, const Tensor& y) { return rate(s.item<double>(), y); };
}

Tensor BackwardField::join(const Tensor& y, const Tensor& a, const std::vector<Tensor>& parameters) const {
  std::vector<Tensor> values;
  if (!interpolant_) values.push_back(y);
  values.push_back(a);
  // Parameters may be of another type than the state; their block is carried in the state's.
  for (const Tensor& gradient : parameters) {
    if (gradient.defined()) values.push_back(gradient.to(a.scalar_type()));
  }
  return pack(values);
}

std::vector<Tensor> BackwardField::parameters_of(const Tensor& flat) const {
  std::vector<Tensor> gradients(wanted_.size());
  std::size_t place = (interpolant_ ? 1 : 2) * pass_.field.parts.size();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (wanted_[i]) gradients[i] = unpack(flat, flat_.parts, place++);
  }
  return gradients;
}

Tensor BackwardField::rate(double depth, const Tensor& flat) const {
  const Tensor y = interpolant_ ? interpolant_->flat(depth) : flat.narrow(-1, 0, size_);
  const Product product = vector_jacobian(pass_.field, depth, y, -adjoint_of(flat), wanted_);
  return join(product.rate, product.state, product.parameters);
}

}  // namespace fathom
