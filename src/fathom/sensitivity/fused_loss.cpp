#include "fathom/sensitivity/fused_loss.hpp"

#include <algorithm>

#include "fathom/fused/end_loss.hpp"
#include "fathom/sensitivity/fused_run.hpp"
#include "fathom/support/error.hpp"
#include "fathom/tensor/torch_version.hpp"

namespace fathom {

namespace {

/// Is this a gradient like the parameter's whose tensor and numbers nobody else knows of? Whoever had it meanwhile may have made
/// anything of it: another shape, other memory, a part of a graph.
bool can_be_used_again(const Tensor& gradient, const Tensor& parameter) {
  return is_unshared(gradient) && gradient.storage().nbytes() >= parameter.nbytes() &&
         gradient.storage_offset() == 0 && gradient.scalar_type() == parameter.scalar_type() &&
         gradient.sizes() == parameter.sizes() && gradient.is_contiguous();
}

/// Zeros for the parameters that are wanted, in the memory of `earlier` ones where that may be used.
template <class T>
std::vector<Tensor> zeros_for(const std::vector<Tensor>& parameters, const std::vector<bool>& wanted,
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
    zeros[i] =
        has_earlier ? std::move(earlier[i]) : unfilled(parameters[i].sizes(), parameters[i].scalar_type());
    std::fill_n(zeros[i].template data_ptr<T>(), zeros[i].numel(), T(0));
  }
  return zeros;
}

bool any(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

Wanted all_wanted_of(const VectorField& field) {
  Wanted wanted;
  for (const Tensor& source : field.sources.empty() ? field.parameters : field.sources)
    wanted.parameters.push_back(source.requires_grad());
  return wanted;
}

template <class T> class LossRun final : public FusedLossSolve {
 public:
  LossRun(const VectorField& field, const Tensor& start, std::int64_t batch) : run_(field, start, batch) {}

  /// Can it solve this one as well, in the same memory?
  bool fits(const LossRequest& request) const {
    return run_.engine && run_.problem.tiles.batch() == request.batch &&
           run_.threads == threads_for(request.batch) && &*run_.method == &*request.solver.method &&
           bool(way_back_) == request.wanted.of_solve &&
           are_alike(*run_.problem.program, *request.field.lowered.program) &&
           are_alike(end_->program(), *request.end.lowered.program);
  }

  /// With another start, and weights that have changed.
  void begin_again(const LossRequest& request) {
    run_.tensors = ProgramTensors(request.field);
    run_.start = request.start.variable_data().contiguous();
    run_.problem.read(run_.tensors.template spans<T>());
  }

  FusedLoss solve(const LossRequest& request) {
    const Solver& solver = request.solver;
    const double share = request.end.share;
    fused::EngineOptions options = engine_options(solver);
    if (request.wanted.of_solve) keep_for_gradient(request.how, run_.problem.threads, options);
    prepare_end(request.end);
    prepare_engine(options);
    if (request.wanted.of_solve) prepare_way_back(request);
    const ode::Plan plan{
        .method = solver.method, .steps = solver.steps, .break_points = request.field.break_points};
    report_ = std::make_shared<SolveReport>(ode::integrate(*run_.engine, plan, request.depths));
    report_->engine = "fused";
    run_.engine->follow_with(nullptr, 0);
    depths_ = request.depths;
    parameters_ = request.field.parameters;
    const bool has_followed = way_back_ && way_back_->has_followed();
    require(!way_back_ || has_followed || report_->accepted == 0, "a solve must end at its last depth");
    if (has_followed) {
      last_ = way_back_->finish();
      return {.value = end_->finish(share), .report = report_, .solve = {}};
    }
    const fused::Buffer<T>& state = run_.engine->packed_state();
    if (request.wanted.of_solve || request.wanted.of_head) last_.adjoint = fused::Buffer<T>(state.size());
    const double value = end_->evaluate(state.data(), run_.problem.rows(), share, last_.adjoint.data());
    return {.value = value, .report = report_, .solve = {}};
  }

  LossGradients pull_back(double scale, const LossGradientsWanted& wanted,
                          std::span<Tensor> earlier) override {
    const std::size_t of_field = std::min(parameters_.size(), earlier.size());
    LossGradients gradients{.start = {},
                            .field = zeros_for<T>(parameters_, wanted.field, earlier.first(of_field)),
                            .head = zeros_for<T>(head_, wanted.head, earlier.subspan(of_field))};
    if (wanted.start || any(wanted.field)) pull_back_to_start(scale, wanted, gradients);
    for (std::size_t i = 0; i < end_tensors_.size(); ++i) {
      if (head_place_of_[i] < 0 || !wanted.head[std::size_t(head_place_of_[i])]) continue;
      const double* from = end_->gradient().data() + end_->weights().tensor_begin(i);
      T* to = gradients.head[std::size_t(head_place_of_[i])].template data_ptr<T>();
      const std::int64_t size = end_tensors_[i].numel();
      for (std::int64_t n = 0; n < size; ++n) to[n] += T(scale * from[n]);
    }
    return gradients;
  }

  void forget_tensors() override {
    run_.tensors.let_go();
    run_.start.reset();
    for (auto* tensors : {&parameters_, &head_, &end_tensors_}) tensors->clear();
    report_ = {};
    last_ = {};
  }

  bool is_worth_keeping() const override {
    constexpr std::size_t most_bytes = std::size_t(16) << 20;
    if (!run_.engine || run_.problem.program->has_functions())
      return false;  // the next one would not be alike
    return run_.engine->bytes() + run_.problem.bytes() + end_->bytes() +
               (way_back_ ? way_back_->bytes() : 0) <=
           most_bytes;
  }

 private:
  void prepare_end(const EndProgram& end) {
    end_tensors_ = contiguous(end.lowered.tensors);
    head_ = end.parameters;
    head_place_of_ = places_of(end.lowered.tensors, end.parameters);
    if (end_) {
      end_->read(spans_of<T>(end_tensors_));
    } else {
      end_ = std::make_unique<fused::EndLoss<T>>(end.lowered.program, spans_of<T>(end_tensors_),
                                                 run_.problem.tiles, run_.problem.threads);
    }
  }

  void prepare_engine(const fused::EngineOptions& options) {
    run_.method = options.method;
    if (run_.engine) {
      run_.engine->begin_again(options, run_.start_numbers());
    } else {
      run_.engine = std::make_unique<fused::Engine<T>>(run_.problem, options, run_.start_numbers(), nullptr);
    }
  }

  void prepare_way_back(const LossRequest& request) {
    if (!way_back_) {
      way_back_ = std::make_unique<fused::LossWayBack<T>>(run_.problem, run_.method,
                                                          run_.engine->activation_layout(), *end_);
    }
    const Wanted all = all_wanted_of(request.field);
    way_back_->begin_solve(request.end.share, {.weights = run_.tensors.wants_weights(all),
                                               .inputs = run_.tensors.wants_inputs(all)});
    run_.engine->follow_with(way_back_.get(), request.depths.back());
  }

  /// From where the last step, which has been pulled back with the loss, began.
  void pull_back_to_start(double scale, const LossGradientsWanted& asked, LossGradients& gradients) {
    const Wanted wanted{.parameters = asked.field};
    const fused::Pass<T> back{.problem = &run_.problem,
                              .method = run_.method,
                              .records = &run_.engine->records(),
                              .layout = run_.engine->activation_layout(),
                              .start = run_.start_numbers(),
                              .depths = depths_,
                              .bound = depths_.size(),
                              .given = depths_.size(),
                              .end_adjoint = last_.adjoint.data(),
                              .end_scale = scale};
    fused::SweepResult<T> result = way_back_->pull_back(back, {.weights = run_.tensors.wants_weights(wanted),
                                                               .inputs = run_.tensors.wants_inputs(wanted),
                                                               .start = asked.start});
    const fused::SweepResult<T>& last = last_.gradients;
    for (std::size_t n = 0; n < last.weights.size(); ++n) result.weights[n] += scale * last.weights[n];
    for (std::size_t n = 0; n < std::min(last.inputs.size(), result.inputs.size()); ++n)
      result.inputs.data()[n] += T(scale) * last.inputs.data()[n];
    report_->backward_evaluations += result.evaluations + last.evaluations;
    if (asked.start) {
      gradients.start = torch::empty_like(run_.start);
      std::copy(result.start.begin(), result.start.end(), gradients.start.template data_ptr<T>());
    }
    run_.add_to(gradients.field, wanted, result.weights, result.inputs);
  }

  FusedRun<T> run_;
  std::vector<double> depths_;
  std::vector<Tensor> parameters_, head_, end_tensors_;
  std::vector<std::ptrdiff_t> head_place_of_;  // of each of end_tensors_
  std::unique_ptr<fused::EndLoss<T>> end_;
  std::unique_ptr<fused::LossWayBack<T>> way_back_;
  typename fused::LossWayBack<T>::Result last_;  // of it, to where the last step began
  std::shared_ptr<SolveReport> report_;
};

template <class T>
FusedLoss run_typed_loss(const LossRequest& request, std::unique_ptr<FusedLossSolve> kept) {
  std::unique_ptr<LossRun<T>> run;
  if (auto* earlier = dynamic_cast<LossRun<T>*>(kept.get()); earlier && earlier->fits(request)) {
    run.reset(earlier), kept.release();
    run->begin_again(request);
  } else {
    kept.reset();  // its memory is wanted now
    run = std::make_unique<LossRun<T>>(request.field, request.start, request.batch);
  }
  FusedLoss answer = run->solve(request);
  answer.solve = std::move(run);
  return answer;
}

}  // namespace

FusedLoss run_fused_loss(const LossRequest& request, std::unique_ptr<FusedLossSolve> kept) {
  const torch::NoGradGuard no_graph;
  return request.start.scalar_type() == torch::kFloat32 ? run_typed_loss<float>(request, std::move(kept))
                                                        : run_typed_loss<double>(request, std::move(kept));
}

}  // namespace fathom
