#include "fathom/field/field.hpp"

#include <algorithm>

#include "fathom/field/fields.hpp"
#include "fathom/support/error.hpp"
#include "fathom/tensor/torch_version.hpp"

namespace fathom {

namespace {

std::shared_ptr<DepthModule> copy_of(const std::shared_ptr<DepthModule>& module,
                                     const torch::optional<torch::Device>& device) {
  return module ? std::dynamic_pointer_cast<DepthModule>(module->clone(device)) : nullptr;
}

/// [z, u] or z + u on the feature axis, which is the only one of a state without batch.
Tensor joined(const Tensor& z, const Tensor& u, ControlEntry entry) {
  const bool has_batch = z.dim() != 1;
  require(u.dim() == z.dim() && (!has_batch || u.size(0) == z.size(0)),
          "the control must have the batch of the state ", z.sizes(), ", got shape ", u.sizes());
  if (entry == ControlEntry::concatenation) return torch::cat({z, u}, has_batch ? 1 : 0);
  require(u.sizes() == z.sizes(), "a control that is added must have the shape of the state ", z.sizes(),
          ", got ", u.sizes(), "; embed it, or concatenate");
  return z + u;
}

void collect_parameters(const torch::nn::Module& module, std::vector<Tensor>& parameters) {
  for (const auto& own : own_parameters(module)) {
    if (own.value().defined()) parameters.push_back(own.value());
  }
  for (const auto& child : module.children()) collect_parameters(*child, parameters);
}

bool is_among(const std::vector<Tensor>& tensors, const Tensor& wanted) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const Tensor& tensor) { return tensor.is_same(wanted); });
}

/// Makes tensors that a function reads the module's parameters, unless they are already. Returns those that cannot be: what is
/// computed from other tensors has its gradient there.
std::vector<Tensor> adopt(torch::nn::Module& module, const std::string& name,
                          const std::vector<Tensor>& parameters) {
  std::vector<Tensor> known, computed;
  collect_parameters(module, known);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    require(parameters[i].defined(), "`parameters` must be tensors, got an undefined one at place ", i);
    if (is_among(known, parameters[i])) continue;
    known.push_back(parameters[i]);
    if (parameters[i].is_leaf())
      module.register_parameter(text(name, "_", i), parameters[i], parameters[i].requires_grad());
    else
      computed.push_back(parameters[i]);
  }
  return computed;
}

}  // namespace

std::shared_ptr<torch::nn::Module> FieldModule::clone(const torch::optional<torch::Device>&) const {
  throw Error(text("a field of type ", name(), " cannot be cloned; override clone() with `return filled(",
                   "std::make_shared<", name(), ">(...), device);`"));
}

std::shared_ptr<FieldModule> FieldModule::filled(std::shared_ptr<FieldModule> fresh,
                                                 const torch::optional<torch::Device>& device) const {
  const auto fill = [&](auto to, const auto& from) {
    for (const auto& item : from) {
      Tensor* tensor = to.find(item.key());
      require(tensor != nullptr && tensor->sizes() == item.value().sizes(), "the copy of a field must have ",
              item.key(), " of shape ", item.value().sizes(), ", got ",
              tensor ? text("shape ", tensor->sizes()) : "none");
      tensor->set_data(item.value().detach().clone().to(device.value_or(item.value().device())));
      tensor->set_requires_grad(item.value().requires_grad());
    }
  };
  fill(fresh->named_parameters(), named_parameters());
  fill(fresh->named_buffers(), named_buffers());
  fresh->train(is_training());
  return fresh;
}

std::vector<Tensor> parameters_of(const FieldModule& field) {
  std::vector<Tensor> parameters;
  parameters.reserve(16);
  collect_parameters(field, parameters);
  for (const Tensor& extra : field.extra_parameters()) parameters.push_back(extra);
  return parameters;
}

NetField::NetField(std::shared_ptr<DepthModule> net_) : net(register_module("net", std::move(net_))) {}

Tensor NetField::rate(const Tensor& s, const Tensor&, const Tensor& z) { return net->forward(s, z); }

std::shared_ptr<torch::nn::Module> NetField::clone(const torch::optional<torch::Device>& device) const {
  return std::make_shared<NetField>(copy_of(net, device));
}

ControlledField::ControlledField(std::shared_ptr<DepthModule> net_, ControlEntry entry_,
                                 std::shared_ptr<DepthModule> embedding_)
    : net(register_module("net", std::move(net_))), entry(entry_) {
  if (embedding_) embedding = register_module("embedding", std::move(embedding_));
}

Tensor ControlledField::rate(const Tensor& s, const Tensor& x, const Tensor& z) {
  require(x.defined(), "a controlled field needs a control, got none; pass the input or a condition");
  return net->forward(s, joined(z, embedding ? embedding->forward(s, x) : x, entry));
}

std::vector<double> ControlledField::break_points() const {
  std::vector<double> all = net->break_points();
  if (embedding) {
    const auto some = embedding->break_points();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::shared_ptr<torch::nn::Module> ControlledField::clone(
    const torch::optional<torch::Device>& device) const {
  return std::make_shared<ControlledField>(copy_of(net, device), entry, copy_of(embedding, device));
}

DrivenField::DrivenField(std::shared_ptr<DepthModule> net_, Signal signal_, ControlEntry entry_)
    : net(register_module("net", std::move(net_))), signal(std::move(signal_)), entry(entry_) {
  require(bool(signal.value), "a driven field needs a signal u(s), got none");
  extra = adopt(*this, "signal", signal.parameters);
}

Tensor DrivenField::rate(const Tensor& s, const Tensor&, const Tensor& z) {
  Tensor u = signal.value(s);
  // One signal for the whole batch may leave the batch axis out or have it of size 1.
  const bool has_batch = z.dim() >= 2;
  if (u.dim() == z.dim() - 1) u = u.unsqueeze(0);
  if (has_batch && u.dim() == z.dim() && u.size(0) == 1) {
    std::vector<std::int64_t> shape = u.sizes().vec();
    shape[0] = z.size(0);
    u = u.expand(shape);
  }
  return net->forward(s, joined(z, u.to(z.options()), entry));
}

std::vector<double> DrivenField::break_points() const {
  std::vector<double> all = net->break_points();
  all.insert(all.end(), signal.break_points.begin(), signal.break_points.end());
  return all;
}

std::shared_ptr<torch::nn::Module> DrivenField::clone(const torch::optional<torch::Device>& device) const {
  if (!signal.parameters.empty())
    throw Error(
        "a field driven by a signal with parameters cannot be cloned: they belong to the signal's function; "
        "write the field as a FieldModule");
  return std::make_shared<DrivenField>(copy_of(net, device), signal, entry);
}

HigherOrderField::HigherOrderField(Field field_, std::int64_t order_, std::int64_t states_)
    : field(register_module("field", std::move(field_))), order(order_), states(states_) {
  require(order >= 1, "the order of a field must be at least 1, got ", order);
  require(states >= 0 && states % order == 0, "the ", states, " features of order ", order,
          " must divide into ", order, " equal blocks");
}

Tensor HigherOrderField::rate(const Tensor& s, const Tensor& x, const Tensor& z) {
  require(z.dim() >= 2, "a field of order ", order, " needs a batch and a feature axis, got shape ",
          z.sizes());
  const std::int64_t features = z.size(1), ordered = states == 0 ? features : states;
  require(features >= ordered && ordered % order == 0, "a field of order ", order, " needs ",
          states == 0 ? text("a number of features that is a multiple of ", order)
                      : text("at least ", states, " features"),
          ", got ", features);
  const std::int64_t block = ordered / order;
  const Tensor last = field->rate(s, x, z);
  require(last.dim() == z.dim() && last.size(1) == features - ordered + block, "the field of order ", order,
          " must return ", features - ordered + block, " features for a state of ", features, ", got shape ",
          last.sizes());
  return torch::cat({z.narrow(1, block, ordered - block), last}, 1);
}

std::shared_ptr<torch::nn::Module> HigherOrderField::clone(
    const torch::optional<torch::Device>& device) const {
  return std::make_shared<HigherOrderField>(field->clone_field(device), order, states);
}

ReflectionField::ReflectionField(double start)
    : theta(register_parameter("theta", torch::scalar_tensor(start))) {}

Tensor ReflectionField::rate(const Tensor&, const Tensor& x, const Tensor& z) {
  require(x.defined(), "the linear reflection needs its input as control, got none");
  return -theta * (z + x);
}

std::shared_ptr<torch::nn::Module> ReflectionField::clone(
    const torch::optional<torch::Device>& device) const {
  auto copy = std::make_shared<ReflectionField>(0.0);
  copy->theta.set_data(theta.detach().clone().to(device.value_or(theta.device())));
  return copy;
}

ApproximationField::ApproximationField(std::shared_ptr<DepthModule> net_, std::int64_t inputs_)
    : net(register_module("net", std::move(net_))), inputs(inputs_) {
  require(inputs >= 1, "the approximation needs at least one input feature, got ", inputs);
}

Tensor ApproximationField::rate(const Tensor& s, const Tensor&, const Tensor& z) {
  require(z.dim() >= 2 && z.size(1) > inputs, "the approximation needs ", inputs,
          " input features and those of its answer, got shape ", z.sizes());
  const Tensor input = z.narrow(1, 0, inputs);
  return torch::cat({torch::zeros_like(input), net->forward(s, input)}, 1);
}

std::shared_ptr<torch::nn::Module> ApproximationField::clone(
    const torch::optional<torch::Device>& device) const {
  return std::make_shared<ApproximationField>(copy_of(net, device), inputs);
}

FunctionField::FunctionField(OwnField field_) : field(std::move(field_)) {
  require(bool(field.rate), "an own field needs a `rate` function, got none");
  for (std::size_t i = 0; i < field.modules.size(); ++i) {
    require(field.modules[i].ptr() != nullptr, "`modules` must not be empty, got an empty one at place ", i);
    register_module(text("module_", i), field.modules[i].ptr());
  }
  extra = adopt(*this, "parameter", field.parameters);
}

Tensor FunctionField::rate(const Tensor& s, const Tensor& x, const Tensor& z) {
  require(!field.controlled || x.defined(),
          "this field needs a control, got none; pass the input or a condition");
  return field.rate(s, x, z);
}

std::shared_ptr<torch::nn::Module> FunctionField::clone(const torch::optional<torch::Device>&) const {
  throw Error(
      "a field made of a function cannot be cloned: its tensors belong to the function; write it as a "
      "FieldModule");
}

Field autonomous(const Net& net) { return std::make_shared<NetField>(net.module()); }
Field depth_varying(const Net& net) { return std::make_shared<NetField>(net.module()); }
Field controlled(const Net& net, const ControlOptions& options) {
  return std::make_shared<ControlledField>(net.module(), options.entry, options.embedding);
}
Field driven(const Net& net, const Signal& signal, ControlEntry entry) {
  return std::make_shared<DrivenField>(net.module(), signal, entry);
}
Field higher_order(const Field& field, std::int64_t order) {
  return std::make_shared<HigherOrderField>(field, order, 0);
}
Field higher_order(const Field& field, const SelectiveOrder& selective) {
  require(selective.states > 0, "a selective order needs at least one state of that order, got ",
          selective.states);
  return std::make_shared<HigherOrderField>(field, selective.order, selective.states);
}
Field linear_reflection(double theta) { return std::make_shared<ReflectionField>(theta); }
Field approximation(const Net& net, std::int64_t inputs) {
  return std::make_shared<ApproximationField>(net.module(), inputs);
}
Field own_field(const OwnField& field) { return std::make_shared<FunctionField>(field); }

}  // namespace fathom
