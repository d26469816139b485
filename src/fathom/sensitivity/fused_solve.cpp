#include "fathom/sensitivity/fused_solve.hpp"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cmath>

#include "fathom/fused/end_loss.hpp"
#include "fathom/fused/engine.hpp"
#include "fathom/fused/sweep.hpp"
#include "fathom/sensitivity/program_tensors.hpp"
#include "fathom/sensitivity/stretches.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// Is this a gradient like the parameter's whose tensor and numbers nobody else knows of? Whoever had it meanwhile may have made
/// anything of it: another shape, other memory, a part of a graph.
bool can_be_used_again(const Tensor& gradient, const Tensor& parameter) {
  if (!gradient.defined() || gradient.use_count() != 1 || gradient.weak_use_count() != 1 ||
      !gradient.has_storage() || gradient.unsafeGetTensorImpl()->autograd_meta() || gradient.is_inference())
    return false;
  const c10::Storage& numbers = gradient.storage();
  const bool is_own = numbers.use_count() == 1 && numbers.allocator() == c10::GetCPUAllocator();
  return is_own && numbers.nbytes() >= parameter.nbytes() && gradient.storage_offset() == 0 &&
         gradient.scalar_type() == parameter.scalar_type() && gradient.sizes() == parameter.sizes() &&
         gradient.is_contiguous();
}

template <class T> class Run final : public FusedSolve {
 public:
  Run(const VectorField& field, const Tensor& start, std::int64_t batch)
      : tensors_(field),
        start_(start.variable_data().contiguous()),
        threads_(threads_for(batch)),
        problem_(field.lowered.program, tensors_.spans<T>(), batch, threads_) {}

  /// Can loss() be called once more, with these?
  bool fits(const VectorField& field, std::int64_t batch, const Solver& solver, const EndProgram& end,
            const LossWanted& wanted) const {
    if (!engine_ || problem_.tiles.batch() != batch || threads_ != threads_for(batch) ||
        &*method_ != &*solver.method || bool(way_back_) != wanted.of_solve ||
        bool(end_) != bool(end.lowered.program))
      return false;
    return are_alike(*problem_.program, *field.lowered.program) &&
           (!end_ || are_alike(end_->program(), *end.lowered.program));
  }

  /// With another start, and weights that have changed.
  void begin_again(const VectorField& field, const Tensor& start) {
    tensors_ = ProgramTensors(field);
    start_ = start.variable_data().contiguous();
    problem_.read(tensors_.template spans<T>());
  }

  bool lets_go() override {
    constexpr std::size_t most_bytes = std::size_t(16) << 20;
    tensors_.let_go();
    for (auto* tensors : {&parameters_, &head_, &end_tensors_}) tensors->clear();
    start_.reset();
    report_ = {};
    last_ = {};
    if (!engine_ || problem_.program->has_functions()) return false;  // the next one would not be alike
    return engine_->bytes() + problem_.bytes() + (end_ ? end_->bytes() : 0) +
               (way_back_ ? way_back_->bytes() : 0) <=
           most_bytes;
  }

  ForwardPass forward(const FlatField& flat, const std::vector<double>& depths, const Solver& solver,
                      const Sensitivity& sensitivity, bool differentiated) {
    ForwardPass pass{.field = flat, .solver = solver, .depths = depths, .given_depths = depths.size()};
    pass.start = start_;
    pass.states = torch::empty({std::int64_t(depths.size()), start_.numel()}, start_.options());
    fused::EngineOptions options = engine_options(solver);
    if (const auto* discrete = std::get_if<Discrete>(&sensitivity); discrete && differentiated)
      keep_for_gradient(*discrete, problem_.threads, options);
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

  FusedLoss loss(const VectorField& field, const std::vector<double>& depths, const Solver& solver,
                 const Discrete& how, const EndProgram& end, const LossWanted& wanted) {
    depths_ = depths;
    fused::EngineOptions options = engine_options(solver);
    if (wanted.of_solve) keep_for_gradient(how, problem_.threads, options);
    method_ = options.method;
    if (end.lowered.program) {
      end_tensors_ = contiguous(end.lowered.tensors);
      head_ = end.parameters;
      head_place_of_ = places_of(end.lowered.tensors, end.parameters);
      if (end_) {
        end_->read(spans_of<T>(end_tensors_));
      } else {
        end_ = std::make_unique<fused::EndLoss<T>>(end.lowered.program, spans_of<T>(end_tensors_),
                                                   problem_.tiles, problem_.threads);
      }
    }
    if (engine_) {
      engine_->begin_again(options, start_.data_ptr<T>());
    } else {
      engine_ = std::make_unique<fused::Engine<T>>(problem_, options, start_.data_ptr<T>(), nullptr);
    }
    if (wanted.of_solve) {
      const Wanted all = wanted_of(field);
      if (!way_back_) {
        way_back_ = std::make_unique<fused::LossWayBack<T>>(problem_, method_, engine_->activation_layout(),
                                                            end_.get());
      }
      way_back_->begin_solve(end.share,
                             {.weights = tensors_.wants_weights(all), .inputs = tensors_.wants_inputs(all)});
      engine_->follow_with(way_back_.get(), depths.back());
    }
    const ode::Plan plan{.method = solver.method, .steps = solver.steps, .break_points = field.break_points};
    FusedLoss answer{.report = std::make_shared<SolveReport>(ode::integrate(*engine_, plan, depths))};
    answer.report->engine = "fused";
    engine_->follow_with(nullptr, 0);
    const fused::Buffer<T>& state = engine_->packed_state();
    const bool has_followed = way_back_ && way_back_->has_followed();
    require(!way_back_ || has_followed || answer.report->accepted == 0, "a solve must end at its last depth");
    if (has_followed) {
      last_ = way_back_->finish();
      answer.value = end_ ? end_->finish(end.share) : sum_running_losses(state.data(), end.share);
    } else {
      if (wanted.of_solve || wanted.of_head) last_.adjoint = fused::Buffer<T>(state.size());
      answer.value = end_ ? end_->evaluate(state.data(), problem_.rows(), end.share, last_.adjoint.data())
                          : sum_running_losses(state.data(), end.share);
    }
    report_ = answer.report;
    parameters_ = field.parameters;
    return answer;
  }

  LossGradients pull_back_loss(double scale, bool wants_start, const std::vector<bool>& wanted_of_field,
                               const std::vector<bool>& wanted_of_head, std::span<Tensor> earlier) override {
    const std::size_t of_field = std::min(parameters_.size(), earlier.size());
    LossGradients gradients{.start = {},
                            .field = zeros_for(parameters_, wanted_of_field, earlier.first(of_field)),
                            .head = zeros_for(head_, wanted_of_head, earlier.subspan(of_field))};
    if (wants_start || any(wanted_of_field))
      pull_back_to_start(scale, wants_start, {.parameters = wanted_of_field}, gradients);
    for (std::size_t i = 0; i < end_tensors_.size(); ++i) {
      if (head_place_of_[i] < 0 || !wanted_of_head[std::size_t(head_place_of_[i])]) continue;
      const double* from = end_->gradient().data() + end_->weights().tensor_begin(i);
      T* to = gradients.head[std::size_t(head_place_of_[i])].data_ptr<T>();
      const std::int64_t size = end_tensors_[i].numel();
      for (std::int64_t n = 0; n < size; ++n) to[n] += T(scale * from[n]);
    }
    return gradients;
  }

  Gradients pull_back(const ForwardPass& pass, const Sensitivity& how, const Tensor& grad_states,
                      const Wanted& wanted) override {
    if (const auto* adjoint = std::get_if<Adjoint>(&how))
      return pull_back(*adjoint, pass, grad_states, wanted);
    const Tensor adjoints = grad_states.contiguous();
    fused::Pass<T> back{.problem = &problem_,
                        .method = method_,
                        .records = &engine_->records(),
                        .layout = engine_->activation_layout(),
                        .start = start_.data_ptr<T>(),
                        .depths = pass.depths,
                        .bound = pass.bound_depths,
                        .given = pass.given_depths};
    fused::SweepResult<T> result = fused::pull_back(back, adjoints.data_ptr<T>(),
                                                    {.weights = tensors_.wants_weights(wanted),
                                                     .inputs = tensors_.wants_inputs(wanted),
                                                     .depths = wanted.depths});
    pass.report->backward_evaluations += result.evaluations;
    Gradients gradients = empty_gradients(pass, wanted);
    std::copy(result.start.begin(), result.start.end(), gradients.start.data_ptr<T>());
    if (wanted.depths) {
      std::copy(result.depths.begin(), result.depths.end(), gradients.depths.template data_ptr<double>());
    }
    add_to(gradients.parameters, wanted, result.weights, result.inputs);
    return gradients;
  }

 private:
  /// Of all samples, each with its share.
  double sum_running_losses(const T* states, double share) const {
    const fused::Tiles& tiles = problem_.tiles;
    double sum = 0;
    for (std::int64_t tile = 0; tile < tiles.count(); ++tile) {
      for (std::int32_t row = problem_.program->features(); row < problem_.rows(); ++row) {
        const T* losses =
            states + tiles.begin(tile, problem_.rows()) + std::size_t(row) * std::size_t(tiles.width(tile));
        for (std::int32_t i = 0; i < tiles.samples(tile); ++i) sum += double(losses[i]);
      }
    }
    return share * sum;
  }

  /// From where the last step, which has been pulled back with the loss, began.
  void pull_back_to_start(double scale, bool wants_start, const Wanted& wanted, LossGradients& gradients) {
    const fused::Pass<T> back{.problem = &problem_,
                              .method = method_,
                              .records = &engine_->records(),
                              .layout = engine_->activation_layout(),
                              .start = start_.data_ptr<T>(),
                              .depths = depths_,
                              .bound = depths_.size(),
                              .given = depths_.size(),
                              .end_adjoint = last_.adjoint.data(),
                              .end_scale = scale};
    fused::SweepResult<T> result = way_back_->pull_back(back, {.weights = tensors_.wants_weights(wanted),
                                                               .inputs = tensors_.wants_inputs(wanted),
                                                               .start = wants_start});
    const fused::SweepResult<T>& last = last_.gradients;
    for (std::size_t n = 0; n < last.weights.size(); ++n) result.weights[n] += scale * last.weights[n];
    for (std::size_t n = 0; n < std::min(last.inputs.size(), result.inputs.size()); ++n)
      result.inputs.data()[n] += T(scale) * last.inputs.data()[n];
    report_->backward_evaluations += result.evaluations + last.evaluations;
    if (wants_start) {
      gradients.start = torch::empty_like(start_);
      std::copy(result.start.begin(), result.start.end(), gradients.start.template data_ptr<T>());
    }
    add_to(gradients.field, wanted, result.weights, result.inputs);
  }

  static bool any(const std::vector<bool>& flags) {
    return std::find(flags.begin(), flags.end(), true) != flags.end();
  }

  static std::vector<Tensor> zeros_for(const std::vector<Tensor>& parameters, const std::vector<bool>& wanted,
                                       std::span<Tensor> earlier) {
    std::vector<Tensor> zeros(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!wanted[i]) continue;
      if (!parameters[i].device().is_cpu() ||
          parameters[i].scalar_type() != c10::CppTypeToScalarType<T>::value) {
        zeros[i] = torch::zeros_like(parameters[i],
                                     torch::MemoryFormat::Contiguous);  // the program does not read it
        continue;
      }
      // Made and filled here: two calls through torch's dispatcher less for each of them.
      const bool has_earlier = i < earlier.size() && can_be_used_again(earlier[i], parameters[i]);
      zeros[i] = has_earlier ? std::move(earlier[i])
                             : at::detail::empty_cpu(parameters[i].sizes(), parameters[i].scalar_type());
      std::fill_n(zeros[i].template data_ptr<T>(), zeros[i].numel(), T(0));
    }
    return zeros;
  }

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
    add_to(gradients.parameters, wanted, weights, inputs);
    return gradients;
  }

  static Wanted wanted_of(const VectorField& field) {
    Wanted wanted;
    for (const Tensor& source : field.sources.empty() ? field.parameters : field.sources)
      wanted.parameters.push_back(source.requires_grad());
    return wanted;
  }

  void add_to(std::vector<Tensor>& parameters, const Wanted& wanted, const std::vector<double>& weights,
              const fused::Buffer<T>& inputs) const {
    for (const fused::SampleInput& input : problem_.program->inputs) {
      if (const auto place = tensors_.wanted_place(input, wanted))
        fused::read_input(problem_, input, inputs, parameters[*place].template data_ptr<T>());
    }
    tensors_.add(weights, problem_.weights, wanted, parameters);
  }

  ProgramTensors tensors_;  // what the problem's spans point into
  Tensor start_;            // not the caller's own, whose shape may change; the numbers are
  int threads_;             // that were free to work on it
  fused::Problem<T> problem_;
  ode::Method method_;
  std::unique_ptr<fused::Engine<T>> engine_;

  // With a loss at the end.
  std::vector<double> depths_;
  std::vector<Tensor> parameters_, head_, end_tensors_;
  std::vector<std::ptrdiff_t> head_place_of_;  // of each of end_tensors_
  std::unique_ptr<fused::EndLoss<T>> end_;
  std::unique_ptr<fused::LossWayBack<T>> way_back_;
  typename fused::LossWayBack<T>::Result last_;  // of it, to where the last step began
  std::shared_ptr<SolveReport> report_;
};

template <class T>
FusedForward run_typed(const VectorField& field, const FlatField& flat, const Tensor& start,
                       const std::vector<double>& depths, const Solver& solver,
                       const Sensitivity& sensitivity, bool differentiated) {
  auto run = std::make_unique<Run<T>>(field, start, flat.parts.front().shape.front());
  ForwardPass pass = run->forward(flat, depths, solver, sensitivity, differentiated);
  return {.pass = std::move(pass), .solve = std::move(run)};
}

template <class T>
FusedLoss run_loss_typed(const VectorField& field, const Tensor& start, std::int64_t batch,
                         const std::vector<double>& depths, const Solver& solver, const Discrete& how,
                         const EndProgram& end, const LossWanted& wanted, std::unique_ptr<FusedSolve> kept) {
  std::unique_ptr<Run<T>> run;
  if (auto* earlier = dynamic_cast<Run<T>*>(kept.get());
      earlier && earlier->fits(field, batch, solver, end, wanted)) {
    run.reset(earlier), kept.release();
    run->begin_again(field, start);
  } else {
    kept.reset();  // its memory is wanted now
    run = std::make_unique<Run<T>>(field, start, batch);
  }
  FusedLoss answer = run->loss(field, depths, solver, how, end, wanted);
  answer.solve = std::move(run);
  return answer;
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

FusedLoss run_fused_loss(const VectorField& field, const Tensor& start, std::int64_t batch,
                         const std::vector<double>& depths, const Solver& solver, const Discrete& how,
                         const EndProgram& end, const LossWanted& wanted, std::unique_ptr<FusedSolve> kept) {
  const torch::NoGradGuard no_graph;
  return start.scalar_type() == torch::kFloat32
             ? run_loss_typed<float>(field, start, batch, depths, solver, how, end, wanted, std::move(kept))
             : run_loss_typed<double>(field, start, batch, depths, solver, how, end, wanted, std::move(kept));
}

}  // namespace fathom
