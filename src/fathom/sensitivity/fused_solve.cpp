#include "fathom/sensitivity/fused_solve.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "fathom/fused/engine.hpp"
#include "fathom/fused/sweep.hpp"
#include "fathom/sensitivity/stretches.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// A batch of one, or too few samples to fill two vectors a thread, is not worth a second thread.
int threads_for(std::int64_t batch) { return batch <= 16 ? 1 : at::get_num_threads(); }

/// Activations are kept for the way back while they stay in a core's second-level cache; beyond it, reading them back costs as
/// much as computing them again.
constexpr std::int64_t activation_budget = 8 * 1024 * 1024;

fused::EngineOptions engine_options(const Solver& solver) {
  fused::EngineOptions options{.method = solver.method};
  if (const auto* adaptive = std::get_if<AdaptiveSteps>(&solver.steps)) options.adaptive = *adaptive;
  return options;
}

template <class T> fused::Tensors<T> spans_of(const std::vector<Tensor>& tensors) {
  fused::Tensors<T> spans;
  for (const Tensor& tensor : tensors) spans.emplace_back(tensor.data_ptr<T>(), std::size_t(tensor.numel()));
  return spans;
}

std::vector<Tensor> contiguous(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) {
    result.push_back(tensor.is_contiguous() ? tensor : tensor.detach().contiguous());
  }
  return result;
}

template <class T> class Run final : public FusedSolve {
 public:
  Run(const VectorField& field, const Tensor& start, std::int64_t batch)
      : tensors_(contiguous(field.lowered.tensors)),
        start_(start.detach().contiguous()),
        problem_(field.lowered.program, spans_of<T>(tensors_), batch, threads_for(batch)) {
    for (const Tensor& tensor : field.lowered.tensors) {
      const auto found = std::find_if(field.parameters.begin(), field.parameters.end(),
                                      [&](const Tensor& parameter) { return parameter.is_same(tensor); });
      parameter_of_.push_back(found == field.parameters.end() ? -1 : found - field.parameters.begin());
    }
  }

  ForwardPass forward(const FlatField& flat, const std::vector<double>& depths, const Solver& solver,
                      const Sensitivity& sensitivity, bool differentiated) {
    ForwardPass pass{.field = flat, .solver = solver, .depths = depths, .given_depths = depths.size()};
    pass.start = start_;
    pass.states = torch::empty({std::int64_t(depths.size()), start_.numel()}, start_.options());
    fused::EngineOptions options = engine_options(solver);
    if (const auto* discrete = std::get_if<Discrete>(&sensitivity); discrete && differentiated) {
      const Keep keep = kept_for(*discrete);
      options.keeps_starts = true;
      options.keep_every = keep.every;
      options.keep_budget = keep.budget;
      if (keep.every == 1 && keep.budget == 0)
        options.activation_budget = activation_budget * problem_.threads;
    }
    method_ = options.method;
    engine_ = std::make_unique<fused::Engine<T>>(problem_, options, start_.data_ptr<T>(),
                                                 pass.states.data_ptr<T>());
    ode::Plan plan{.method = solver.method, .steps = solver.steps, .break_points = flat.break_points};
    if (solver.observer) {
      plan.observer = [&](const StepEvent& event) {
        Tensor state = torch::empty_like(start_);
        engine_->read_state(state.data_ptr<T>());
        return solver.observer(event, unpack(state, flat.parts, 0));
      };
    }
    pass.report = std::make_shared<SolveReport>(ode::integrate(*engine_, plan, depths));
    pass.report->engine = "fused";
    const std::size_t reached = finish_depths(pass, depths);
    if (reached < pass.depths.size()) engine_->save_state(reached);
    pass.states = pass.states.narrow(0, 0, std::int64_t(pass.depths.size()));
    for (const auto& record : engine_->records()) pass.records.push_back({.step = record.step});
    return pass;
  }

  Gradients pull_back(const ForwardPass& pass, const Sensitivity& how, const Tensor& grad_states,
                      const Wanted& wanted) override {
    if (const auto* adjoint = std::get_if<Adjoint>(&how))
      return pull_back(*adjoint, pass, grad_states, wanted);
    const Tensor adjoints = grad_states.contiguous();
    fused::Pass<T> back{.problem = &problem_,
                        .method = &method_,
                        .records = &engine_->records(),
                        .layout = engine_->activation_layout(),
                        .start = start_.data_ptr<T>(),
                        .depths = pass.depths,
                        .bound = pass.bound_depths,
                        .given = pass.given_depths};
    fused::SweepResult<T> result = fused::pull_back(
        back, adjoints.data_ptr<T>(),
        {.weights = wants_weights(wanted), .inputs = wants_inputs(wanted), .depths = wanted.depths});
    pass.report->backward_evaluations += result.evaluations;
    Gradients gradients = empty_gradients(pass, wanted);
    std::copy(result.start.begin(), result.start.end(), gradients.start.data_ptr<T>());
    if (wanted.depths) {
      std::copy(result.depths.begin(), result.depths.end(), gradients.depths.template data_ptr<double>());
    }
    fill(gradients, wanted, result.weights, result.inputs);
    return gradients;
  }

 private:
  /// G1: [y, a] integrated backwards from saved depth to saved depth.
  Gradients pull_back(const Adjoint& how, const ForwardPass& pass, const Tensor& grad_states,
                      const Wanted& wanted) {
    const torch::NoGradGuard no_graph;
    Gradients gradients = empty_gradients(pass, wanted);
    std::vector<double> weights(problem_.weights.gradient_size());
    fused::Buffer<T> inputs(problem_.inputs.size());
    const std::int64_t size = start_.numel();
    const auto stretch = [&](std::size_t place, double from, double to, const Solver& solver,
                             const Tensor& a) {
      const Tensor both = at::cat({pass.states[std::int64_t(place)], a});
      fused::EngineOptions options = engine_options(solver);
      options.adjoint = true;
      fused::Engine<T> engine(problem_, options, both.data_ptr<T>(), nullptr);
      Ends ends(engine);
      const ode::Plan plan{
          .method = solver.method, .steps = solver.steps, .break_points = pass.field.break_points};
      pass.report->backward_evaluations += ode::integrate(ends, plan, {from, to}).evaluations;
      engine.add_sums(weights, inputs);
      const Tensor end = torch::empty_like(both);
      engine.read_state(end.data_ptr<T>());
      return end.narrow(0, size, size).clone();
    };
    gradients.start =
        walk_back(pass, how.solver.value_or(pass.solver), grad_states, gradients.depths, stretch);
    fill(gradients, wanted, weights, inputs);
    return gradients;
  }

  /// An engine whose states nobody saves.
  struct Ends {
    explicit Ends(fused::Engine<T>& engine_) : engine(engine_) {}
    ode::StartNorms start_norms(const ode::Step& step) { return engine.start_norms(step); }
    double curvature(const ode::Step& probe) { return engine.curvature(probe); }
    ode::TrialError attempt(const ode::Step& step) { return engine.attempt(step); }
    void accept() { engine.accept(); }
    void save_state(std::size_t) {}
    void save_inside(std::size_t, double) {}
    void forget_rate() { engine.forget_rate(); }
    std::int64_t evaluations() const { return engine.evaluations(); }
    std::string offender() const { return engine.offender(); }
    fused::Engine<T>& engine;
  };

  bool is_input(std::size_t tensor) const {
    const auto& inputs = problem_.program->inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const fused::SampleInput& input) { return std::size_t(input.tensor) == tensor; });
  }

  bool is_wanted(std::size_t tensor, const Wanted& wanted) const {
    return parameter_of_[tensor] >= 0 && wanted.parameters[std::size_t(parameter_of_[tensor])];
  }

  bool wants_inputs(const Wanted& wanted) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (is_input(i) && is_wanted(i, wanted)) return true;
    }
    return false;
  }

  bool wants_weights(const Wanted& wanted) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!is_input(i) && is_wanted(i, wanted)) return true;
    }
    return false;
  }

  void fill(Gradients& gradients, const Wanted& wanted, const std::vector<double>& weights,
            const fused::Buffer<T>& inputs) const {
    for (const fused::SampleInput& input : problem_.program->inputs) {
      const std::size_t tensor = std::size_t(input.tensor);
      if (!is_wanted(tensor, wanted)) continue;
      fused::read_input(problem_, input, inputs,
                        gradients.parameters[std::size_t(parameter_of_[tensor])].data_ptr<T>());
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (is_input(i) || !is_wanted(i, wanted)) continue;
      const double* from = weights.data() + problem_.weights.tensor_begin(i);
      T* to = gradients.parameters[std::size_t(parameter_of_[i])].data_ptr<T>();
      for (std::int64_t n = 0; n < tensors_[i].numel(); ++n) to[n] += T(from[n]);
    }
  }

  std::vector<Tensor> tensors_;  // what the problem's spans point into
  Tensor start_;
  std::vector<std::ptrdiff_t> parameter_of_;  // of each tensor; -1: a constant
  fused::Problem<T> problem_;
  ode::ButcherTableau method_;
  std::unique_ptr<fused::Engine<T>> engine_;
};

template <class T>
FusedForward run_typed(const VectorField& field, const FlatField& flat, const Tensor& start,
                       const std::vector<double>& depths, const Solver& solver,
                       const Sensitivity& sensitivity, bool differentiated) {
  auto run = std::make_unique<Run<T>>(field, start, flat.parts.front().shape.front());
  ForwardPass pass = run->forward(flat, depths, solver, sensitivity, differentiated);
  return {.pass = std::move(pass), .solve = std::move(run)};
}

}  // namespace

std::string why_not_fused(const VectorField& field, const Tensor& z0, const Solver& solver,
                          const Sensitivity& sensitivity, bool differentiated) {
  if (!solver.fused) return "it is switched off";
  if (!field.lowered.program)
    return field.lowered.reason.empty() ? "the field is a function" : field.lowered.reason;
  if (solver.dense) return "the interpolant of the whole solve is asked for";
  if (!z0.device().is_cpu()) return "the state is not on the processor";
  if (z0.numel() == 0) return "the batch is empty";
  if (differentiated) {
    if (std::holds_alternative<Unrolled>(sensitivity)) return "Unrolled is a graph of tensors";
    if (std::holds_alternative<InterpolatedAdjoint>(sensitivity)) return "InterpolatedAdjoint has no kernels";
    if (const auto* adjoint = std::get_if<Adjoint>(&sensitivity);
        adjoint && adjoint->parameters_in_error_norm) {
      return "the adjoint's gradient block is in the error norm";
    }
  }
  for (const Tensor& tensor : field.lowered.tensors) {
    if (tensor.scalar_type() != z0.scalar_type()) return "state and parameters differ in type";
    if (!tensor.device().is_cpu()) return "a parameter is not on the processor";
  }
  for (const auto& input : field.lowered.program->inputs) {
    if (field.lowered.tensors[std::size_t(input.tensor)].size(0) != z0.size(0))
      return "the control has another batch";
  }
  return {};
}

FusedForward run_fused(const VectorField& field, const FlatField& flat, const Tensor& start,
                       const std::vector<double>& depths, const Solver& solver,
                       const Sensitivity& sensitivity, bool differentiated) {
  const torch::NoGradGuard no_graph;
  return start.scalar_type() == torch::kFloat32
             ? run_typed<float>(field, flat, start, depths, solver, sensitivity, differentiated)
             : run_typed<double>(field, flat, start, depths, solver, sensitivity, differentiated);
}

}  // namespace fathom
