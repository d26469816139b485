#include "fathom/model/neural_ode.hpp"

#include <algorithm>

#include "fathom/field/rate_of.hpp"
#include "fathom/model/inputs.hpp"
#include "fathom/model/one_by_one.hpp"
#include "fathom/sensitivity/end_loss.hpp"
#include "fathom/sensitivity/fused_solve.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

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
    : field_(std::move(field)), options_(std::move(options)), kept_(std::make_shared<KeptLoss>()) {
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
  return run_from_start(z0, depths, control.defined() ? control : x, scale, solver);
}

Solution NeuralOdeImpl::run_from_start(const Tensor& z0, const std::vector<double>& depths,
                                       const Tensor& control, const Tensor& scale, const Solver& solver) {
  const bool one_by_one = options_.steps_per_sample && z0.dim() > 0 && z0.size(0) > 1;
  return one_by_one ? run_one_by_one(z0, depths, control, scale, solver)
                    : run_from(z0, depths, control, scale, solver);
}

Solution NeuralOdeImpl::run_one_by_one(const Tensor& z0, const std::vector<double>& depths,
                                       const Tensor& control, const Tensor& scale, const Solver& solver) {
  require(
      !solver.dense && !solver.observer,
      "with `steps_per_sample` there is no one solve to keep dense or to observe; solve the samples apart");
  const bool has_control = control.dim() > 0 && control.size(0) == z0.size(0);
  require(has_control || !field_->is_controlled(), "the control must have the batch of the state ",
          z0.sizes(), ", got shape ", control.sizes());
  const auto sample = [&](std::int64_t i) {
    const auto row = [i](const Tensor& all) { return all.defined() ? all.narrow(0, i, 1) : all; };
    return run_from(row(z0), depths, has_control ? row(control) : control, row(scale), solver);
  };
  ApartSolution apart = solve_one_by_one(vector_field_of(z0, control, scale, solver), z0, depths, solver,
                                         options_.sensitivity, sample);
  reports_.set(std::move(apart.reports));
  return std::move(apart.solution);
}

VectorField NeuralOdeImpl::vector_field_of(const Tensor& z0, const Tensor& control, const Tensor& scale,
                                           const Solver& solver) {
  VectorField vector_field{.rate = {}, .parameters = parameters_of(*field_)};
  vector_field.sources = vector_field.parameters;
  Tensor seen_control = control;
  if (field_->is_controlled() || !options_.running_losses.empty()) {
    seen_control = add_input(vector_field, seen_control, options_.sensitivity);
  }
  LowerOptions lowering{.control = seen_control, .losses = options_.running_losses};
  if (!scale.defined()) {
    vector_field.break_points = field_->break_points();
    vector_field.rate = [field = field_, seen_control](const Tensor& s, const Tensor& z) {
      return rate_of(*field, s, seen_control, z);
    };
    if (!options_.running_losses.empty())
      vector_field.running_loss = joined(options_.running_losses, seen_control);
  } else {
    // dz/dtau = g f(g tau): every sample walks its own depth on one grid of tau. Break points lie at another tau for each
    // sample, so no step can land on all of them.
    const Tensor seen_scale = add_input(vector_field, scale, options_.sensitivity);
    lowering.scale = seen_scale;
    vector_field.rate = [field = field_, seen_control, seen_scale](const Tensor& tau, const Tensor& z) {
      const Tensor rate = rate_of(*field, seen_scale.to(torch::kFloat64) * tau, seen_control, z);
      return rate * depth_like(seen_scale, rate).to(rate.scalar_type());
    };
    if (!options_.running_losses.empty()) {
      const auto loss = joined(options_.running_losses, seen_control);
      vector_field.running_loss = [=, field = field_](const Tensor& tau, const Tensor& z, const Tensor&) {
        const Tensor s = seen_scale.to(torch::kFloat64) * tau;
        const Tensor value = loss(s, z, rate_of(*field, s, seen_control, z));
        return value * depth_like(seen_scale, value).to(value.scalar_type());
      };
    }
  }
  if (solver.fused) vector_field.lowered = memo_.lower(field_, z0, lowering);
  vector_field.running_terms = std::max<std::int64_t>(1, std::int64_t(options_.running_losses.size()));
  return vector_field;
}

Solution NeuralOdeImpl::run_from(const Tensor& z0, const std::vector<double>& depths, const Tensor& control,
                                 const Tensor& scale, const Solver& solver) {
  const VectorField vector_field = vector_field_of(z0, control, scale, solver);
  Solution solution = fathom::solve(vector_field, z0, depths, solver, options_.sensitivity);
  reports_.set({solution.shared_report});
  return solution;
}

Tensor NeuralOdeImpl::loss(const Tensor& x, const Tensor& y, const Answer& answer) {
  const bool is_label = answer.loss == AnswerLoss::cross_entropy;
  const bool fits =
      y.defined() && (is_label ? y.dim() == 1 && y.scalar_type() == torch::kInt64 : y.dim() >= 1);
  if (!fits) {
    const std::string given = y.defined() ? text("shape ", y.sizes(), " ", y.scalar_type()) : "none";
    throw InvalidArgument(text(
        "the loss needs ", is_label ? "int64 labels, one a sample" : "a target a sample", ", got ", given));
  }
  require(x.dim() >= 1 && x.size(0) == y.size(0), "the loss needs one target a sample, got shape ", y.sizes(),
          " for inputs ", x.sizes());
  const Tensor z0 = options_.input_layer.is_empty() ? x : options_.input_layer.forward(x);
  DepthModule* head = answer.head ? answer.head->module().get() : nullptr;
  if (const Tensor fused = fused_loss(z0, x, y, head, answer.loss); fused.defined()) return fused;
  Tensor z = run_from_start(z0, {options_.first, options_.last}, x, {}, options_.solver).states[-1];
  if (head) z = head->forward(torch::scalar_tensor(options_.last, torch::kFloat64), z);
  if (is_label) {
    require(z.dim() == 2, "the cross entropy needs scores of shape (batch, labels), got ", z.sizes());
    check_labels(y, z.size(1));
    return torch::nn::functional::cross_entropy(z, y);
  }
  require(z.sizes() == y.sizes(), "the answer has shape ", z.sizes(), " and its target ", y.sizes(),
          "; give both the same");
  return torch::mse_loss(z, y);
}

Tensor NeuralOdeImpl::fused_loss(const Tensor& z0, const Tensor& x, const Tensor& y, DepthModule* head,
                                 AnswerLoss loss) {
  const bool is_label = loss == AnswerLoss::cross_entropy;
  const auto type = z0.scalar_type();
  const bool fits = z0.dim() == 2 && y.size(0) == z0.size(0) && y.device().is_cpu() && !y.requires_grad() &&
                    (is_label ? y.dim() == 1 : y.dim() == 2 && y.scalar_type() == type);
  if (!fits || !options_.running_losses.empty()) return {};
  const std::optional<VectorField> field = field_in_one_piece(z0, x);
  if (!field) return {};
  EndProgram end{.lowered = memo_.lower_answer(head, z0, y, loss)};
  if (!end.lowered.program) return {};
  for (const Tensor& tensor : end.lowered.tensors) {
    if (tensor.scalar_type() != type || !tensor.device().is_cpu()) return {};
    if (tensor.requires_grad()) end.parameters.push_back(tensor);
  }
  end.share = 1 / double(is_label ? y.size(0) : y.numel());
  return loss_in_one_piece(*field, z0, end);
}

Tensor NeuralOdeImpl::running_loss(const Tensor& x) {
  require(!options_.running_losses.empty(), "the model has no running loss; give it one in `running_losses`");
  require(x.dim() >= 1 && x.size(0) > 0, "the running loss is a mean over samples, got inputs ", x.sizes());
  const Tensor z0 = options_.input_layer.is_empty() ? x : options_.input_layer.forward(x);
  const double share = 1 / double(z0.size(0));
  if (const std::optional<VectorField> field = field_in_one_piece(z0, x))
    return loss_in_one_piece(
        *field, z0, {.lowered = lower_running_losses(z0.size(1), field->running_terms), .share = share});
  return run_from_start(z0, {options_.first, options_.last}, x, {}, options_.solver).running_loss[-1].sum() *
         share;
}

std::optional<VectorField> NeuralOdeImpl::field_in_one_piece(const Tensor& z0, const Tensor& x) {
  const auto* discrete = std::get_if<Discrete>(&options_.sensitivity);
  const auto is_computed = [](const Tensor& tensor) { return tensor.grad_fn() != nullptr; };
  const auto type = z0.scalar_type();
  const bool has_kernels = type == torch::kFloat32 || type == torch::kFloat64;
  if (!discrete || !has_kernels || z0.dim() != 2 || options_.steps_per_sample || options_.solver.observer)
    return {};
  VectorField field = vector_field_of(z0, x, {}, options_.solver);
  if (!why_not_fused(field, z0, options_.solver, *discrete, true).empty()) return {};
  if (std::any_of(field.parameters.begin(), field.parameters.end(), is_computed)) return {};
  return field;
}

Tensor NeuralOdeImpl::loss_in_one_piece(const VectorField& field, const Tensor& z0, const EndProgram& end) {
  const EndLossResult result = solve_for_loss(field, z0, {options_.first, options_.last}, options_.solver,
                                              std::get<Discrete>(options_.sensitivity), end, kept_);
  reports_.set({result.report});
  return result.loss;
}

Tensor NeuralOdeImpl::rate(double s, const Tensor& x, const Tensor& z) {
  return rate_of(*field_, torch::scalar_tensor(s, torch::kFloat64), x, z);
}

std::shared_ptr<torch::nn::Module> NeuralOdeImpl::clone(const torch::optional<torch::Device>& device) const {
  NeuralOdeOptions options = options_;
  if (!options.input_layer.is_empty()) options.input_layer = options_.input_layer.clone(device);
  auto copy = std::make_shared<NeuralOdeImpl>(field_->clone_field(device), std::move(options));
  copy->train(is_training());
  return copy;
}

}  // namespace fathom
