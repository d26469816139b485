#include <ATen/Parallel.h>

#include "fathom/fused/apart.hpp"
#include "fathom/sensitivity/fused_solve.hpp"
#include "fathom/sensitivity/program_tensors.hpp"
#include "fathom/sensitivity/stretches.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

template <class T> class RunApart final : public FusedSolve {
 public:
  RunApart(const VectorField& field, const Tensor& start, std::int64_t batch)
      : tensors_(with_own_inputs(field)),
        program_(field.lowered.program),
        start_(start.variable_data().clone()),
        apart_(program_, tensors_.spans<T>(), batch, at::get_num_threads()) {}

  ForwardPass forward(const FlatField& flat, const std::vector<double>& depths, const Solver& solver,
                      const Discrete& how, bool differentiated) {
    ForwardPass pass{.field = flat,
                     .solver = solver,
                     .depths = depths,
                     .bound_depths = depths.size(),
                     .given_depths = depths.size()};
    pass.start = start_;
    pass.states = torch::empty({std::int64_t(depths.size()), start_.numel()}, start_.options());
    fused::EngineOptions options = engine_options(solver);
    if (differentiated) keep_for_gradient(how, at::get_num_threads(), options);
    const ode::Plan plan{.method = solver.method, .steps = solver.steps, .break_points = flat.break_points};
    auto reports = apart_.solve({.options = options, .plan = plan, .depths = depths}, start_.data_ptr<T>(),
                                pass.states.data_ptr<T>());
    for (SolveReport& one : reports) {
      one.engine = "fused";
      reports_.push_back(std::make_shared<SolveReport>(std::move(one)));
    }
    pass.report = reports_.front();
    return pass;
  }

  const std::vector<std::shared_ptr<SolveReport>>& reports() const { return reports_; }

  Gradients pull_back(const ForwardPass& pass, const Sensitivity&, const Tensor& grad_states,
                      const Wanted& wanted) override {
    const Tensor adjoints = grad_states.contiguous();
    Gradients gradients = empty_gradients(pass, wanted);
    typename fused::Apart<T>::Wanted asked{
        .weights = tensors_.wants_weights(wanted), .start = gradients.start.data_ptr<T>(), .inputs = {}};
    for (const fused::SampleInput& input : program_->inputs) {
      const auto place = tensors_.wanted_place(input, wanted);
      asked.inputs.push_back(place ? gradients.parameters[*place].template data_ptr<T>() : nullptr);
    }
    const auto result = apart_.pull_back(adjoints.data_ptr<T>(), asked);
    for (std::size_t i = 0; i < reports_.size(); ++i)
      reports_[i]->backward_evaluations += result.evaluations[i];
    tensors_.add(result.weights, apart_.weights(), wanted, gradients.parameters);
    return gradients;
  }

 private:
  static ProgramTensors with_own_inputs(const VectorField& field) {
    ProgramTensors tensors(field);
    tensors.own_inputs();
    return tensors;
  }

  ProgramTensors tensors_;
  std::shared_ptr<const fused::Program> program_;
  Tensor start_;
  fused::Apart<T> apart_;
  std::vector<std::shared_ptr<SolveReport>> reports_;  // of each sample
};

template <class T>
FusedForward run_typed(const VectorField& field, const FlatField& flat, const Tensor& start,
                       const std::vector<double>& depths, const Solver& solver, const Discrete& how,
                       bool differentiated) {
  auto run = std::make_unique<RunApart<T>>(field, start, flat.parts.front().shape.front());
  ForwardPass pass = run->forward(flat, depths, solver, how, differentiated);
  auto reports = run->reports();
  return {.pass = std::move(pass), .solve = std::move(run), .reports = std::move(reports)};
}

}  // namespace

FusedForward run_fused_apart(const VectorField& field, const FlatField& flat, const Tensor& start,
                             const std::vector<double>& depths, const Solver& solver, const Discrete& how,
                             bool differentiated) {
  const torch::NoGradGuard no_graph;
  return start.scalar_type() == torch::kFloat32
             ? run_typed<float>(field, flat, start, depths, solver, how, differentiated)
             : run_typed<double>(field, flat, start, depths, solver, how, differentiated);
}

}  // namespace fathom
