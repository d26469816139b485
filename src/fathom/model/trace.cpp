#include "fathom/model/trace.hpp"

#include "fathom/field/fields.hpp"
#include "fathom/field/known_layers.hpp"
#include "fathom/field/rate_of.hpp"
#include "fathom/model/products.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// The value and its derivative of an elementwise layer; an undefined slope when the layer is not known.
struct Slope {
  Tensor value;
  Tensor slope;
};

Slope activate(const torch::nn::Module& layer, const Tensor& h) {
  if (exactly<torch::nn::TanhImpl>(layer)) {
    const Tensor y = h.tanh();
    return {y, 1 - y.square()};
  }
  if (exactly<torch::nn::SigmoidImpl>(layer)) {
    const Tensor y = h.sigmoid();
    return {y, y * (1 - y)};
  }
  if (exactly<torch::nn::ReLUImpl>(layer)) return {h.relu(), (h > 0).to(h.scalar_type())};
  if (exactly<torch::nn::SiLUImpl>(layer)) {
    const Tensor gate = h.sigmoid();
    return {h * gate, gate * (1 + h * (1 - gate))};
  }
  if (const auto* softplus = exactly<torch::nn::SoftplusImpl>(layer)) {
    const double beta = softplus->options.beta(), threshold = softplus->options.threshold();
    const Tensor scaled = h * beta;
    // torch's softplus is the identity beyond its threshold, and its slope there 1.
    const Tensor slope = torch::where(scaled > threshold, torch::ones_like(h), scaled.sigmoid());
    return {torch::softplus(h, beta, threshold), slope};
  }
  if (const auto* elu = exactly<torch::nn::ELUImpl>(layer)) {
    const double alpha = elu->options.alpha();
    return {torch::elu(h, alpha), torch::where(h > 0, torch::ones_like(h), alpha * h.clamp_max(0).exp())};
  }
  return {};
}

bool is_known(const torch::nn::Module& layer) {
  if (exactly<torch::nn::LinearImpl>(layer) || exactly<DepthLinearImpl>(layer) ||
      exactly<DepthConcatImpl>(layer))
    return true;
  return activate(layer, torch::zeros({1})).value.defined();
}

std::shared_ptr<DepthSequentialImpl> chain_of(const Field& field) {
  if (const auto* plain = exactly<NetField>(*field)) {
    return std::dynamic_pointer_cast<DepthSequentialImpl>(plain->net);
  }
  if (const auto* controlled = exactly<ControlledField>(*field)) {
    return std::dynamic_pointer_cast<DepthSequentialImpl>(controlled->net);
  }
  return nullptr;
}

Tensor control_of(const Field& field, const Tensor& s, const Tensor& x) {
  const auto* controlled = exactly<ControlledField>(*field);
  if (!controlled) return {};
  require(x.defined(), "a controlled field needs a control, got none; pass a condition");
  return controlled->embedding ? controlled->embedding->forward(s, x) : x;
}

/// Values (batch, h) and tangents dh/dz (batch or 1, h, d), layer by layer.
class Tangents {
 public:
  Tangents(Tensor start, std::int64_t features) : h_(std::move(start)) {
    t_ = torch::eye(features, h_.options()).unsqueeze(0);
  }

  /// Inputs that do not depend on z.
  void append(const Tensor& constant) {
    h_ = torch::cat({h_, constant}, 1);
    t_ = torch::cat({t_, torch::zeros({t_.size(0), constant.size(1), t_.size(2)}, t_.options())}, 1);
  }

  void through(torch::nn::Module& layer, const Tensor& s) {
    if (auto* linear = exactly<torch::nn::LinearImpl>(layer)) return through(linear->weight, linear->bias);
    if (auto* varying = exactly<DepthLinearImpl>(layer)) {
      const Tensor psi = evaluate(varying->basis(), s, varying->weight.options());
      return through(torch::tensordot(psi, varying->weight, {0}, {0}),
                     varying->bias.defined() ? torch::tensordot(psi, varying->bias, {0}, {0}) : Tensor{});
    }
    if (exactly<DepthConcatImpl>(layer)) return append(s.to(h_.options()).expand({h_.size(0), 1}));
    const Slope next = activate(layer, h_);
    h_ = next.value;
    t_ = t_ * next.slope.unsqueeze(2);
  }

  Tensor trace() const { return t_.diagonal(0, 1, 2).sum(-1).expand({h_.size(0)}); }

 private:
  void through(const Tensor& weight, const Tensor& bias) {
    h_ = torch::linear(h_, weight, bias);
    t_ = torch::matmul(weight, t_);
  }

  Tensor h_, t_;
};

}  // namespace

Tensor exact_divergence(const Field& field, const Tensor& s, const Tensor& x, const Tensor& z) {
  require(z.dim() == 2, "an exact divergence needs a state of shape (batch, features), got ", z.sizes());
  const auto rate = [&](const Tensor& at, const Tensor&) { return rate_of(*field, s, x, at); };
  return jacobians(rate, z, {}).state.diagonal(0, 1, 2).sum(-1);
}

Tensor estimated_divergence(const Field& field, const Tensor& s, const Tensor& x, const Tensor& z,
                            const Tensor& probe) {
  const auto rate = [&](const Tensor& at) { return rate_of(*field, s, x, at); };
  return (vector_jacobian_product(rate, z, probe) * probe).flatten(1).sum(1);
}

bool is_plain_mlp(const Field& field) {
  const auto chain = chain_of(field);
  if (!chain) return false;
  for (const auto& layer : chain->layers()) {
    if (!is_known(*layer)) return false;
  }
  return true;
}

Tensor mlp_divergence(const Field& field, const Tensor& s, const Tensor& x, const Tensor& z) {
  const auto chain = chain_of(field);
  const auto* controlled = exactly<ControlledField>(*field);
  const bool added = controlled && controlled->entry == ControlEntry::addition;
  const Tensor u = control_of(field, s, x);
  Tangents tangents(added ? z + u : z, z.size(1));
  if (controlled && !added) tangents.append(u);
  for (const auto& layer : chain->layers()) tangents.through(*layer, s);
  return tangents.trace();
}

}  // namespace fathom
