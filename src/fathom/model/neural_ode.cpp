#include "fathom/model/neural_ode.hpp"

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

bool keeps_graph(const Sensitivity& sensitivity) { return std::holds_alternative<Unrolled>(sensitivity); }

/// Adds a tensor that the field reads besides its weights. It may be the output of other layers, even of this very module:
/// the field then sees a copy that is a leaf, and its gradient goes on to the original.
Tensor add_input(VectorField& field, const Tensor& input, const Sensitivity& sensitivity) {
  if (!input.defined() || !input.requires_grad()) return input;
  const Tensor seen = keeps_graph(sensitivity) ? input : input.detach().requires_grad_();
  field.parameters.push_back(seen);
  field.sources.push_back(input);
  return seen;
}

std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)> joined(
    const std::vector<RunningLoss>& losses, const Tensor& x) {
  if (losses.size() == 1) {
    return [loss = losses[0], x](const Tensor& s, const Tensor& z, const Tensor& rate) {
      return loss(s, x, z, rate);
    };
  }
  return [losses, x](const Tensor& s, const Tensor& z, const Tensor& rate) {
    std::vector<Tensor> values;
    for (const RunningLoss& loss : losses) values.push_back(loss(s, x, z, rate));
    return torch::stack(values, -1);
  };
}

}  // namespace

NeuralOdeImpl::NeuralOdeImpl(Field field, NeuralOdeOptions options)
    : field_(std::move(field)), options_(std::move(options)), report_(std::make_shared<SolveReport>()) {
  require(field_ != nullptr, "a NeuralOde needs a field, got none");
  register_module("field", field_);
  if (!options_.input_layer.is_empty()) register_module("input_layer", options_.input_layer.ptr());
}

Tensor NeuralOdeImpl::forward(const Tensor& x) { return solve(x).states[-1]; }

Tensor NeuralOdeImpl::forward_with(const Tensor& x, const Tensor& control) {
  return solve(x, {}, control).states[-1];
}

Tensor NeuralOdeImpl::trajectory(const Tensor& x, const std::vector<double>& depths) {
  return solve(x, depths).states;
}

Interpolant NeuralOdeImpl::dense(const Tensor& x) {
  const torch::NoGradGuard no_graph;
  Solver dense_solver = options_.solver;
  dense_solver.dense = true;
  return run(x, {options_.first, options_.last}, {}, {}, dense_solver).interpolant;
}

Solution NeuralOdeImpl::solve(const Tensor& x, const std::vector<double>& depths, const Tensor& control) {
  return run(x, depths.empty() ? std::vector<double>{options_.first, options_.last} : depths, control, {},
             options_.solver);
}

Solution NeuralOdeImpl::solve_scaled(const Tensor& x, const Tensor& scale,
                                     const std::vector<double>& fractions, const Tensor& control) {
  require(scale.defined() && scale.dim() == 1 && x.dim() >= 1 && scale.size(0) == x.size(0),
          "depths of the samples must be one value a sample, got ",
          scale.defined() ? text(scale.sizes()) : "none");
  const double smallest = scale.numel() == 0 ? 0.0 : scale.detach().min().item<double>();
  require(smallest >= 0, "the depth of a sample must not be negative, got ", smallest,
          "; let its network end in an absolute value or softplus");
  return run(x, fractions, control, scale, options_.solver);
}

Solution NeuralOdeImpl::run(const Tensor& x, const std::vector<double>& depths, const Tensor& control,
                            const Tensor& scale, const Solver& solver) {
  const bool has_input_layer = !options_.input_layer.is_empty();
  const Tensor z0 = has_input_layer ? options_.input_layer.forward(x) : x;
  VectorField vector_field{.rate = {}, .parameters = field_->parameters()};
  for (const Tensor& extra : field_->extra_parameters()) vector_field.parameters.push_back(extra);
  vector_field.sources = vector_field.parameters;
  Tensor seen_control = control.defined() ? control : x;
  if (field_->is_controlled() || !options_.running_losses.empty()) {
    seen_control = add_input(vector_field, seen_control, options_.sensitivity);
  }
  if (!scale.defined()) {
    vector_field.break_points = field_->break_points();
    vector_field.rate = [field = field_, seen_control](const Tensor& s, const Tensor& z) {
      return field->rate(s, seen_control, z);
    };
    if (!options_.running_losses.empty())
      vector_field.running_loss = joined(options_.running_losses, seen_control);
  } else {
    // dz/dtau = g f(g tau): every sample walks its own depth on one grid of tau. Break points lie at another tau for each
    // sample, so no step can land on all of them.
    const Tensor seen_scale = add_input(vector_field, scale, options_.sensitivity);
    vector_field.rate = [field = field_, seen_control, seen_scale](const Tensor& tau, const Tensor& z) {
      const Tensor rate = field->rate(seen_scale.to(torch::kFloat64) * tau, seen_control, z);
      return rate * depth_like(seen_scale, rate).to(rate.scalar_type());
    };
    if (!options_.running_losses.empty()) {
      const auto loss = joined(options_.running_losses, seen_control);
      vector_field.running_loss = [=, field = field_](const Tensor& tau, const Tensor& z, const Tensor&) {
        const Tensor s = seen_scale.to(torch::kFloat64) * tau;
        const Tensor value = loss(s, z, field->rate(s, seen_control, z));
        return value * depth_like(seen_scale, value).to(value.scalar_type());
      };
    }
  }
  vector_field.running_terms = std::max<std::int64_t>(1, std::int64_t(options_.running_losses.size()));
  Solution solution = fathom::solve(vector_field, z0, depths, solver, options_.sensitivity);
  report_ = solution.shared_report;
  return solution;
}

Tensor NeuralOdeImpl::rate(double s, const Tensor& x, const Tensor& z) {
  return field_->rate(torch::scalar_tensor(s, torch::kFloat64), x, z);
}

const SolveReport& NeuralOdeImpl::report() const { return *report_; }

std::shared_ptr<torch::nn::Module> NeuralOdeImpl::clone(const torch::optional<torch::Device>& device) const {
  NeuralOdeOptions options = options_;
  if (!options.input_layer.is_empty()) options.input_layer = options_.input_layer.clone(device);
  auto copy = std::make_shared<NeuralOdeImpl>(field_->clone_field(device), std::move(options));
  copy->train(is_training());
  return copy;
}

}  // namespace fathom
