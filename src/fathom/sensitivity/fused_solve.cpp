#include "fathom/sensitivity/fused_solve.hpp"

#include <algorithm>

#include "fathom/sensitivity/fused_run.hpp"
#include "fathom/sensitivity/stretches.hpp"

namespace fathom {

namespace {

template <class T> class SolveRun final : public FusedSolve {
 public:
  SolveRun(const VectorField& field, const Tensor& start, std::int64_t batch) : run_(field, start, batch) {}

  ForwardPass forward(const FlatField& flat, const std::vector<double>& depths, const Solver& solver,
                      const Sensitivity& sensitivity, bool differentiated) {
    ForwardPass pass{.field = flat, .solver = solver, .depths = depths, .given_depths = depths.size()};
    pass.start = run_.start;
    pass.states = torch::empty({std::int64_t(depths.size()), run_.start.numel()}, run_.start.options());
    fused::EngineOptions options = engine_options(solver);
    if (const auto* discrete = std::get_if<Discrete>(&sensitivity); discrete && differentiated)
      keep_for_gradient(*discrete, run_.problem.threads, options);
    run_.method = options.method;
    run_.engine = std::make_unique<fused::Engine<T>>(run_.problem, options, run_.start_numbers(),
                                                     pass.states.data_ptr<T>());
    ode::Plan plan{.method = solver.method, .steps = solver.steps, .break_points = flat.break_points};
    if (solver.observer) {
      plan.observer = [&](const StepEvent& event) {
        Tensor state = torch::empty_like(run_.start);
        run_.engine->read_state(state.data_ptr<T>());
        return solver.observer(event, unpack(state, flat.parts, 0));
      };
    }
    pass.report = std::make_shared<SolveReport>(ode::integrate(*run_.engine, plan, depths));
    pass.report->engine = "fused";
    const std::size_t reached = finish_depths(pass, depths);
    if (reached < pass.depths.size()) run_.engine->save_state(reached);
    pass.states = pass.states.narrow(0, 0, std::int64_t(pass.depths.size()));
    for (const auto& record : run_.engine->records()) pass.records.push_back({.step = record.step});
    return pass;
  }

  Gradients pull_back(const ForwardPass& pass, const Sensitivity& how, const Tensor& grad_states,
                      const Wanted& wanted) override {
    if (const auto* adjoint = std::get_if<Adjoint>(&how))
      return pull_back(*adjoint, pass, grad_states, wanted);
    const Tensor adjoints = grad_states.contiguous();
    fused::Pass<T> back{.problem = &run_.problem,
                        .method = run_.method,
                        .records = &run_.engine->records(),
                        .layout = run_.engine->activation_layout(),
                        .start = run_.start_numbers(),
                        .depths = pass.depths,
                        .bound = pass.bound_depths,
                        .given = pass.given_depths};
    fused::SweepResult<T> result = fused::pull_back(back, adjoints.data_ptr<T>(),
                                                    {.weights = run_.tensors.wants_weights(wanted),
                                                     .inputs = run_.tensors.wants_inputs(wanted),
                                                     .depths = wanted.depths});
    pass.report->backward_evaluations += result.evaluations;
    Gradients gradients = empty_gradients(pass, wanted);
    std::copy(result.start.begin(), result.start.end(), gradients.start.data_ptr<T>());
    if (wanted.depths) {
      std::copy(result.depths.begin(), result.depths.end(), gradients.depths.template data_ptr<double>());
    }
    run_.add_to(gradients.parameters, wanted, result.weights, result.inputs);
    return gradients;
  }

 private:
  /// G1: [y, a] integrated backwards from saved depth to saved depth.
  Gradients pull_back(const Adjoint& how, const ForwardPass& pass, const Tensor& grad_states,
                      const Wanted& wanted) {
    const torch::NoGradGuard no_graph;
    Gradients gradients = empty_gradients(pass, wanted);
    std::vector<double> weights(run_.problem.weights.gradient_size());
    fused::Buffer<T> inputs(run_.problem.inputs.size());
    const std::int64_t size = run_.start.numel();
    const auto stretch = [&](std::size_t place, double from, double to, const Solver& solver,
                             const Tensor& a) {
      const Tensor both = at::cat({pass.states[std::int64_t(place)], a});
      fused::EngineOptions options = engine_options(solver);
      options.adjoint = true;
      fused::Engine<T> engine(run_.problem, options, both.data_ptr<T>(), nullptr);
      const ode::Plan plan{
          .method = solver.method, .steps = solver.steps, .break_points = pass.field.break_points};
      pass.report->backward_evaluations += ode::integrate(engine, plan, {from, to}).evaluations;
      engine.add_sums(weights, inputs);
      const Tensor end = torch::empty_like(both);
      engine.read_state(end.data_ptr<T>());
      return end.narrow(0, size, size).clone();
    };
    gradients.start =
        walk_back(pass, how.solver.value_or(pass.solver), grad_states, gradients.depths, stretch);
    run_.add_to(gradients.parameters, wanted, weights, inputs);
    return gradients;
  }

  FusedRun<T> run_;
};

template <class T>
FusedForward run_typed(const VectorField& field, const FlatField& flat, const Tensor& start,
                       const std::vector<double>& depths, const Solver& solver,
                       const Sensitivity& sensitivity, bool differentiated) {
  auto run = std::make_unique<SolveRun<T>>(field, start, flat.parts.front().shape.front());
  ForwardPass pass = run->forward(flat, depths, solver, sensitivity, differentiated);
  return {.pass = std::move(pass), .solve = std::move(run)};
}

bool is_among(const std::vector<Tensor>& tensors, const Tensor& wanted) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const Tensor& tensor) { return tensor.is_same(wanted); });
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
    if (differentiated && tensor.requires_grad() && !is_among(field.parameters, tensor))
      return "a weight is computed from other tensors";
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
