#include "fathom/train/model.hpp"

#include "fathom/field/mlp.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

torch::ScalarType type_of(const ModelSpec& spec) {
  return spec.precision == Precision::float32 ? torch::kFloat32 : torch::kFloat64;
}

Solver solver_of(const ModelSpec& spec) {
  return {.method = method_of(spec.solver), .steps = steps_of(spec.solver)};
}

/// z(0) = [positions, velocities]
class StartImpl : public torch::nn::Module {
 public:
  StartImpl(const ModelSpec& spec, torch::nn::Linear input, torch::nn::Linear velocity)
      : augmentation_(spec.augmentation),
        velocities_(spec.state_features() - spec.positions()),
        input_(std::move(input)),
        velocity_(std::move(velocity)) {}

  Tensor forward(const Tensor& x) {
    const auto zeros = [&](std::int64_t features) {
      return torch::zeros({x.size(0), features}, x.options().requires_grad(false));
    };
    std::vector<Tensor> parts;
    if (augmentation_.kind != AugmentationKind::input) parts.push_back(x);
    if (augmentation_.kind == AugmentationKind::zero) parts.push_back(zeros(augmentation_.size));
    if (!input_.is_empty()) parts.push_back(input_->forward(x));
    if (velocities_ > 0) parts.push_back(velocity_.is_empty() ? zeros(velocities_) : velocity_->forward(x));
    return parts.size() == 1 ? parts.front() : torch::cat(parts, 1);
  }

 private:
  AugmentationSpec augmentation_;
  std::int64_t velocities_;
  torch::nn::Linear input_, velocity_;  // registered by the model, which owns the names
};
TORCH_MODULE(Start);

void check_batch(const Tensor& x, std::int64_t features) {
  require(x.dim() == 2 && x.size(1) == features, "the model needs ", features, " columns, got shape ",
          x.sizes());
}

}  // namespace

ModelImpl::ModelImpl(ModelSpec spec, const Sensitivity& sensitivity) : spec_(std::move(spec)) {
  check(spec_);
  field_ = build_field();
  if (spec_.task == Task::density) {
    flow_ = Flow(field_, standard_normal(spec_.input_features(), type_of(spec_)),
                 FlowOptions{.last = spec_.span.last,
                             .solver = solver_of(spec_),
                             .sensitivity = sensitivity,
                             .steps_per_sample = spec_.solver.steps_per_sample});
  } else {
    torch::nn::Linear input = nullptr, velocity = nullptr;
    const std::int64_t inputs = spec_.input_features(),
                       velocities = spec_.state_features() - spec_.positions();
    const AugmentationKind kind = spec_.augmentation.kind;
    if (kind == AugmentationKind::input || kind == AugmentationKind::partial)
      input = register_module("input", torch::nn::Linear(inputs, spec_.augmentation.size));
    if (spec_.augmentation.velocities == Velocities::learned)
      velocity = register_module("velocity", torch::nn::Linear(inputs, velocities));
    ode_ = NeuralOde(field_,
                     NeuralOdeOptions{.first = spec_.span.first,
                                      .last = spec_.span.last,
                                      .solver = solver_of(spec_),
                                      .sensitivity = sensitivity,
                                      .steps_per_sample = spec_.solver.steps_per_sample,
                                      .input_layer = torch::nn::AnyModule(Start(spec_, input, velocity))});
  }
  if (spec_.head == HeadKind::linear)
    head_ = register_module("head", torch::nn::Linear(spec_.state_features(), spec_.outputs()));
  to(type_of(spec_));
}

Field ModelImpl::build_field() {
  const FieldSpec& field = spec_.field;
  // The layers are registered here under names that files keep, whatever the modules around them are called.
  const auto named = register_module("field", std::make_shared<torch::nn::Module>("field"));
  DepthSequential net;
  const auto add = [&](std::size_t place, auto layer) {
    net->push_back(layer);
    named->register_module(std::to_string(place + 1), layer);
  };
  const std::vector<LayerSize> layers = field_layers(spec_);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto [inputs, outputs] = layers[i];
    switch (field.depth.kind) {
      case DepthKind::concat: net->push_back(DepthConcat()); [[fallthrough]];
      case DepthKind::invariant: add(i, torch::nn::Linear(inputs, outputs)); break;
      case DepthKind::galerkin:
      case DepthKind::stacked: add(i, DepthLinear(inputs, outputs, basis_of(spec_))); break;
      case DepthKind::hyper: add(i, HyperLinear(inputs, outputs, field.depth.size)); break;
    }
    if (i + 1 < layers.size()) append(net, field.activation);
  }
  Field result = depth_varying(net);
  if (field.control != ControlKind::none) {
    const bool added = field.control == ControlKind::addition;
    result = controlled(net, {.entry = added ? ControlEntry::addition : ControlEntry::concatenation});
  }
  return field.order > 1 ? higher_order(result, field.order) : result;
}

Tensor ModelImpl::forward(const Tensor& x) {
  check_batch(x, spec_.input_features());
  return spec_.task == Task::density ? flow_->log_prob(x) : answer(ode_->forward(x));
}

Tensor ModelImpl::loss(const Tensor& x, const Tensor& targets, AnswerLoss loss) {
  check_batch(x, spec_.input_features());
  const bool is_whole_state = spec_.outputs() == spec_.state_features();
  if (!head_.is_empty()) return ode()->loss(x, targets, {.head = head_, .loss = loss});
  if (is_whole_state) return ode()->loss(x, targets, {.loss = loss});
  const Tensor answer = forward(x);
  require(loss != AnswerLoss::mse || answer.sizes() == targets.sizes(), "the answer has shape ",
          answer.sizes(), " and its target ", targets.sizes(), "; give both the same");
  return loss == AnswerLoss::mse ? torch::mse_loss(answer, targets)
                                 : torch::nn::functional::cross_entropy(answer, targets);
}

Tensor ModelImpl::trajectory(const Tensor& x, const std::vector<double>& depths) {
  check_batch(x, spec_.input_features());
  return answer(ode()->trajectory(x, depths));
}

Tensor ModelImpl::answer(const Tensor& state) {
  return head_.is_empty() ? state.narrow(-1, 0, spec_.outputs()) : head_->forward(state);
}

Tensor ModelImpl::predict(const Tensor& inputs) {
  const torch::NoGradGuard no_graph;
  check_batch(inputs, spec_.input_features());
  require(spec_.task != Task::series, "a series is forecast from a state and times, not predicted");
  const Tensor out = forward(standardised(inputs, spec_.input_scale).to(type_of(spec_))).to(torch::kFloat64);
  if (spec_.task == Task::classification) return torch::softmax(out, 1);
  if (spec_.task == Task::regression) return unstandardised(out, spec_.target_scale);
  double volume = 0;  // of the standardised unit cube in the units of the data
  for (double deviation : spec_.input_scale.deviation) volume += std::log(deviation);
  return out - volume;
}

Tensor ModelImpl::forecast(const Tensor& columns, const std::vector<double>& times) {
  const torch::NoGradGuard no_graph;
  require(spec_.task == Task::series, "only the model of a series can forecast; this one is for ",
          name_of(spec_.task));
  std::vector<double> depths;
  for (double time : times) depths.push_back((time - spec_.time.origin) / spec_.time.unit);
  const Tensor start = standardised(columns, spec_.input_scale).to(type_of(spec_));
  return unstandardised(trajectory(start, depths).to(torch::kFloat64), spec_.input_scale);
}

Tensor ModelImpl::sample(std::int64_t count) {
  const torch::NoGradGuard no_graph;
  return unstandardised(flow()->sample(count).to(torch::kFloat64), spec_.input_scale);
}

NeuralOde& ModelImpl::ode() {
  require(!ode_.is_empty(), "the model of a density has a flow, not an ode");
  return ode_;
}

Flow& ModelImpl::flow() {
  require(!flow_.is_empty(), "only the model of a density can be sampled; this one is for ",
          name_of(spec_.task));
  return flow_;
}

SolveReport ModelImpl::report() const { return flow_.is_empty() ? ode_->report() : flow_->report(); }

std::shared_ptr<torch::nn::Module> ModelImpl::clone(const torch::optional<torch::Device>& device) const {
  const torch::NoGradGuard no_graph;
  const Sensitivity sensitivity =
      flow_.is_empty() ? ode_.ptr()->options().sensitivity : flow_.ptr()->options().sensitivity;
  auto copy = std::make_shared<ModelImpl>(spec_, sensitivity);
  const auto from = parameters(), to = copy->parameters();
  for (std::size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  if (device) copy->to(*device);
  copy->train(is_training());
  return copy;
}

Model build_model(const ModelSpec& spec, const Sensitivity& sensitivity) { return Model(spec, sensitivity); }

namespace {

Tensor row_of(const std::vector<double>& values) { return torch::tensor(values, torch::kFloat64); }

}  // namespace

Tensor standardised(const Tensor& values, const Standardisation& scale) {
  const Tensor wide = values.to(torch::kFloat64);
  return scale.mean.empty() ? wide : (wide - row_of(scale.mean)) / row_of(scale.deviation);
}

Tensor unstandardised(const Tensor& values, const Standardisation& scale) {
  const Tensor wide = values.to(torch::kFloat64);
  return scale.mean.empty() ? wide : wide * row_of(scale.deviation) + row_of(scale.mean);
}

}  // namespace fathom
