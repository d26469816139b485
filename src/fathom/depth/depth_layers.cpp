#include "fathom/depth/depth_layers.hpp"

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// Copies the values of one module's parameters into another of the same shape.
template <class Module>
std::shared_ptr<torch::nn::Module> with_parameters_of(const torch::nn::Module& source,
                                                      std::shared_ptr<Module> copy,
                                                      const torch::optional<torch::Device>& device) {
  const torch::NoGradGuard no_graph;
  const auto from = source.parameters(), to = copy->parameters();
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i].set_data(from[i].detach().clone().to(device.value_or(from[i].device())));
    to[i].set_requires_grad(from[i].requires_grad());
  }
  copy->train(source.is_training());
  return copy;
}

void check_features(const Tensor& h, std::int64_t inputs, std::int64_t axes, const char* layer) {
  require(h.dim() == axes && h.size(1) == inputs, layer, " needs ", inputs, " features on axis 1 of ", axes,
          " axes, got shape ", h.sizes());
}

}  // namespace

Tensor evaluate(const DepthBasis& basis, const Tensor& s, const at::TensorOptions& options) {
  const Tensor depths = s.detach().to(torch::kCPU, torch::kFloat64).contiguous().view(-1);
  const auto count = depths.numel(), size = std::int64_t(basis.size);
  const auto tabulate = [&](const std::function<std::vector<double>(double)>& functions) {
    Tensor table = torch::empty({count, size}, torch::kFloat64);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::vector<double> row = functions(depths.data_ptr<double>()[i]);
      std::copy(row.begin(), row.end(), table.data_ptr<double>() + i * size);
    }
    return table;
  };
  std::vector<std::int64_t> shape = s.sizes().vec();
  shape.push_back(size);
  Tensor psi = tabulate(basis.values).view(shape);
  if (s.requires_grad()) {
    const Tensor slopes = tabulate(basis.slopes).view(shape);
    psi = psi + slopes * (s - s.detach()).unsqueeze(-1).to(torch::kCPU);
  }
  return psi.to(options.device(), c10::typeMetaToScalarType(options.dtype()));
}

Tensor DepthConcatImpl::forward(const Tensor& s, const Tensor& h) {
  require(h.dim() >= 2, "DepthConcat needs a batch and a feature axis, got shape ", h.sizes());
  std::vector<std::int64_t> shape = h.sizes().vec();
  shape[1] = 1;
  return torch::cat({h, depth_like(s, h).to(h.options()).expand(shape)}, 1);
}

std::shared_ptr<torch::nn::Module> DepthConcatImpl::clone(const torch::optional<torch::Device>&) const {
  return std::make_shared<DepthConcatImpl>();
}

GalerkinLayer::GalerkinLayer(DepthBasis basis) : basis_(std::move(basis)) {
  require(basis_.size >= 1 && bool(basis_.values),
          "a depth-varying layer needs a basis with at least one function, got ", basis_.size);
  require(basis_.constant.size() == basis_.size, "basis `", basis_.name, "` needs ", basis_.size,
          " coefficients of the constant 1, got ", basis_.constant.size(), "; make it with own_basis()");
}

void GalerkinLayer::register_like(const Tensor& constant_weight, const Tensor& constant_bias) {
  const auto spread = [&](const Tensor& constant) {
    std::vector<Tensor> coefficients;
    for (double share : basis_.constant) coefficients.push_back(constant.detach() * share);
    return torch::stack(coefficients);
  };
  weight = register_parameter("weight", spread(constant_weight));
  if (constant_bias.defined()) bias = register_parameter("bias", spread(constant_bias));
}

Theta GalerkinLayer::theta(double s) const {
  const Tensor psi = evaluate(basis_, torch::scalar_tensor(s, torch::kFloat64), weight.options());
  return {torch::tensordot(psi, weight, {0}, {0}),
          bias.defined() ? torch::tensordot(psi, bias, {0}, {0}) : Tensor{}};
}

Tensor GalerkinLayer::evaluate_layer(const Tensor& s, const Tensor& h) const {
  check_depth(s, h);
  const Tensor psi = evaluate(basis_, s, weight.options());
  if (s.dim() == 0) {
    return apply(h, torch::tensordot(psi, weight, {0}, {0}),
                 bias.defined() ? torch::tensordot(psi, bias, {0}, {0}) : Tensor{});
  }
  // A depth for each sample: the layers of all basis functions at once, then each sample's own mixture of them.
  const Tensor all = apply(h, weight.flatten(0, 1), bias.defined() ? bias.flatten(0, 1) : Tensor{});
  const std::int64_t size = std::int64_t(basis_.size);
  std::vector<std::int64_t> mixture(std::size_t(all.dim()) + 1, 1);
  mixture[0] = all.size(0), mixture[1] = size;
  return (all.unflatten(1, {size, all.size(1) / size}) * psi.view(mixture)).sum(1);
}

DepthLinearImpl::DepthLinearImpl(std::int64_t inputs_, std::int64_t outputs_, DepthBasis basis,
                                 bool with_bias)
    : GalerkinLayer(std::move(basis)), inputs(inputs_), outputs(outputs_) {
  const torch::nn::Linear constant(torch::nn::LinearOptions(inputs, outputs).bias(with_bias));
  register_like(constant->weight, constant->bias);
}

Tensor DepthLinearImpl::forward(const Tensor& s, const Tensor& h) {
  check_features(h, inputs, 2, "DepthLinear");
  return evaluate_layer(s, h);
}

Tensor DepthLinearImpl::apply(const Tensor& h, const Tensor& w, const Tensor& b) const {
  return torch::linear(h, w, b);
}

std::shared_ptr<torch::nn::Module> DepthLinearImpl::clone(
    const torch::optional<torch::Device>& device) const {
  return with_parameters_of(*this, std::make_shared<DepthLinearImpl>(inputs, outputs, basis_, bias.defined()),
                            device);
}

DepthConv2dImpl::DepthConv2dImpl(std::int64_t inputs_, std::int64_t outputs_, DepthBasis basis,
                                 DepthConv2dOptions options)
    : GalerkinLayer(std::move(basis)), inputs(inputs_), outputs(outputs_), options_(options) {
  const torch::nn::Conv2d constant(
      torch::nn::Conv2dOptions(inputs, outputs, options.kernel).bias(options.bias));
  register_like(constant->weight, constant->bias);
}

Tensor DepthConv2dImpl::forward(const Tensor& s, const Tensor& h) {
  check_features(h, inputs, 4, "DepthConv2d");
  return evaluate_layer(s, h);
}

Tensor DepthConv2dImpl::apply(const Tensor& h, const Tensor& w, const Tensor& b) const {
  return torch::conv2d(h, w, b, options_.stride, options_.padding);
}

std::shared_ptr<torch::nn::Module> DepthConv2dImpl::clone(
    const torch::optional<torch::Device>& device) const {
  return with_parameters_of(*this, std::make_shared<DepthConv2dImpl>(inputs, outputs, basis_, options_),
                            device);
}

HyperLinearImpl::HyperLinearImpl(std::int64_t inputs_, std::int64_t outputs_, std::int64_t hidden)
    : inputs(inputs_),
      outputs(outputs_),
      hidden_(hidden),
      first_(1, hidden),
      second_(hidden, outputs_ * (inputs_ + 1)) {
  register_module("first", first_);
  register_module("second", second_);
  // The network starts as a constant, the parameters of a fresh linear layer; its last weights are small, not zero, so
  // that its first layer learns too.
  const torch::NoGradGuard no_graph;
  const torch::nn::Linear constant(inputs, outputs);
  second_->bias.copy_(torch::cat({constant->weight.flatten(), constant->bias}));
  second_->weight.mul_(1e-3);
}

Tensor HyperLinearImpl::parameters_at(const Tensor& s) {
  const Tensor column = s.to(first_->weight.options()).reshape({-1, 1});
  return second_->forward(torch::tanh(first_->forward(column)));
}

Tensor HyperLinearImpl::forward(const Tensor& s, const Tensor& h) {
  check_features(h, inputs, 2, "HyperLinear");
  check_depth(s, h);
  const Tensor theta = parameters_at(s);
  const Tensor w = theta.slice(1, 0, inputs * outputs), b = theta.slice(1, inputs * outputs);
  if (s.dim() == 0) return torch::linear(h, w.view({outputs, inputs}), b.view({outputs}));
  return torch::baddbmm(b.unsqueeze(2), w.view({-1, outputs, inputs}), h.unsqueeze(2)).squeeze(2);
}

Theta HyperLinearImpl::theta(double s) {
  const Tensor flat = parameters_at(torch::scalar_tensor(s, torch::kFloat64)).view(-1);
  return {flat.slice(0, 0, inputs * outputs).view({outputs, inputs}), flat.slice(0, inputs * outputs)};
}

std::shared_ptr<torch::nn::Module> HyperLinearImpl::clone(
    const torch::optional<torch::Device>& device) const {
  return with_parameters_of(*this, std::make_shared<HyperLinearImpl>(inputs, outputs, hidden_), device);
}

}  // namespace fathom
