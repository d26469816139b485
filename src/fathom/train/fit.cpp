#include "fathom/train/fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <memory>

#include "fathom/ode/failure.hpp"
#include "fathom/sensitivity/backward.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/not_finite.hpp"
#include "fathom/train/checkpoint.hpp"
#include "fathom/train/optimizer.hpp"
#include "fathom/train/progress.hpp"

namespace fathom {

namespace {

constexpr double slower = 0.5;  // the learning rate's factor after a failure ...
constexpr double recovery =
    1.05;  // ... and its growth with every iteration that goes well: 14 make up for one failure

using Loss = std::function<Tensor(std::int64_t)>;

void check(const FitOptions& options) {
  require(options.iterations >= 1, "`iterations` must be at least 1, got ", options.iterations);
  require(options.learning_rate > 0, "`learning_rate` must be positive, got ", options.learning_rate);
  require(options.weight_decay >= 0, "`weight_decay` must not be negative, got ", options.weight_decay);
  require(options.weight_decay == 0 || options.optimizer != Optimizer::lbfgs,
          "lbfgs has no weight decay, got ", options.weight_decay, "; add it to the loss");
  require(options.momentum >= 0 && options.momentum < 1, "`momentum` must be in [0, 1), got ",
          options.momentum);
  require(options.momentum == 0 || options.optimizer == Optimizer::sgd,
          "`momentum` is of sgd only, the other optimisers have their own; got ", options.momentum);
  require(options.largest_gradient >= 0, "`largest_gradient` must not be negative, got ",
          options.largest_gradient);
  require(options.time_budget >= 0, "`time_budget` must not be negative, got ", options.time_budget);
  require(options.validation.every >= 1, "`validation.every` must be at least 1, got ",
          options.validation.every);
  require(options.failure_limit >= 1, "`failure_limit` must be at least 1, got ", options.failure_limit);
  check(options.schedule);
}

void check_trainable(const torch::nn::Module& model) {
  const std::vector<Tensor> parameters = model.parameters();
  require(
      !parameters.empty(), "a model of type ", model.name(),
      " has no parameters to train; register them, or give them to own_field() in `modules` or `parameters`");
  require(std::any_of(parameters.begin(), parameters.end(),
                      [](const Tensor& parameter) { return parameter.requires_grad(); }),
          "none of the ", parameters.size(),
          " parameters of the model wants a gradient; call `requires_grad_()` on those to train");
}

/// Whether a program is at fault and not a step, so that no other step would mend it.
bool is_mistake(const Error& error) {
  const auto* failure = dynamic_cast<const ode::SolveFailure*>(&error);
  const bool is_number = dynamic_cast<const NotFinite*>(&error);  // a weight or a state left the numbers
  return (dynamic_cast<const InvalidArgument*>(&error) && !is_number) ||
         (failure && failure->reason == ode::FailureReason::field_threw);
}

class Fitting {
 public:
  Fitting(torch::nn::Module& model, const Loss& loss, const FitOptions& options)
      : model_(model),
        loss_(loss),
        options_(options),
        parameters_(model.parameters()),
        optimizer_(make_optimizer(parameters_, options)),
        progress_(options.title, options.iterations, options.quiet) {
    if (options_.checkpoint.resume && std::filesystem::exists(options_.checkpoint.file)) {
      state_ = resume_from(options_.checkpoint.file, model_);
      restore(*optimizer_, state_.optimizer);
    }
    earlier_seconds_ = state_.seconds;
    progress_.start_at(state_.iteration);
  }

  bool goes_on() {
    const bool impatient =
        options_.validation.patience > 0 && !state_.best.empty() &&
        state_.iteration - state_.best_iteration >= options_.validation.patience * options_.validation.every;
    if (stopped_)
      history_.end = FitEnd::stopped_by_observer;
    else if (impatient)
      history_.end = FitEnd::no_improvement;
    else if (state_.iteration >= options_.iterations)
      history_.end = FitEnd::iterations_done;
    else if (options_.time_budget > 0 && state_.seconds >= options_.time_budget)
      history_.end = FitEnd::out_of_time;
    else
      return true;
    return false;
  }

  void iterate() {
    record_ = {.iteration = state_.iteration + 1, .learning_rate = learning_rate()};
    set_learning_rate(*optimizer_, record_.learning_rate);
    start_ = copies_of(tensors_of(model_));
    try {
      record_.loss = optimizer_->step([this] { return loss_with_gradients(); }).item<double>();
      state_.before = std::move(start_);
      state_.caution = std::min(1.0, recovery * state_.caution);
      state_.failures_in_a_row = 0;
    } catch (const Error& failure) {
      const bool is_data =
          dynamic_cast<const NotFinite*>(&failure) && state_.before.empty();  // no step was taken yet
      if (is_mistake(failure) || is_data) throw;
      take_back(failure);
    }
    state_.iteration += 1;
  }

  void validate() {
    if (!options_.validation.figures || !is_validation_due()) return;
    const auto say = [&](const Error& failure) {
      progress_.say(text("validation after iteration ", state_.iteration, ": ", failure.what()));
    };
    try {
      record_.validation = options_.validation.figures();
      require(!record_.validation.empty(), "a validation must give at least one figure");
    } catch (const ode::SolveFailure& failure) {
      if (is_mistake(failure)) throw;
      return say(failure);
    } catch (const NotFinite& failure) { return say(failure); }
    shown_ = record_.validation;
    const double figure = record_.validation.front().second;
    // NaN is never the best: no later figure would compare below it.
    if (figure < state_.best_figure || (state_.best.empty() && !std::isnan(figure))) {
      state_.best_figure = figure;
      state_.best_iteration = state_.iteration;
      state_.best = copies_of(tensors_of(model_));
    }
  }

  void tell() {
    state_.seconds = earlier_seconds_ + elapsed();
    record_.seconds = state_.seconds;
    history_.losses.push_back(record_.loss);
    history_.evaluations.push_back(record_.evaluations);
    history_.backward_evaluations.push_back(record_.backward_evaluations);
    progress_.update(record_.iteration, figures());
    if (options_.observer && !options_.observer(record_)) stopped_ = true;
  }

  void save_if_due() {
    if (options_.checkpoint.file.empty() || elapsed() - saved_ < options_.checkpoint.every_seconds) return;
    save();
  }

  FitHistory finish() {
    if (!options_.checkpoint.file.empty()) save();
    if (!state_.best.empty()) {
      assign(tensors_of(model_), state_.best);
      history_.best_iteration = state_.best_iteration;
    }
    history_.iteration = state_.iteration;
    history_.failures = state_.failures;
    history_.seconds = state_.seconds;
    return std::move(history_);
  }

 private:
  Tensor loss_with_gradients() {
    for (Tensor& parameter : parameters_) parameter.mutable_grad().reset();  // cheaper than clearing
    const Tensor value = loss_(state_.iteration);
    const auto figure = value.item<double>();
    if (!std::isfinite(figure)) {
      throw Error(text("the loss became ", figure, " in iteration ", state_.iteration + 1,
                       "; lower `learning_rate` or check the data for NaN"));
    }
    require(value.requires_grad(),
            "the loss must depend on a parameter that wants a gradient; is it computed ",
            "without graph, or from another model?");
    backward(value);
    if (options_.largest_gradient > 0)
      torch::nn::utils::clip_grad_norm_(parameters_, options_.largest_gradient);
    if (options_.report) {
      const ode::SolveReport work = options_.report();
      record_.evaluations += work.evaluations;
      record_.backward_evaluations += work.backward_evaluations;
    }
    return value.detach();
  }

  /// Back to before the last step that went well: it led here. Moments may be NaN by now, so the optimiser starts afresh.
  void take_back(const Error& failure) {
    record_.loss = NAN;
    state_.failures += 1;
    state_.failures_in_a_row += 1;
    if (state_.failures_in_a_row >= options_.failure_limit) {
      throw Error(text("training gave up after ", state_.failures_in_a_row,
                       " failed iterations in a row, the last for this: ", failure.what()));
    }
    state_.caution *= slower;
    assign(tensors_of(model_), state_.before.empty() ? start_ : state_.before);
    optimizer_ = make_optimizer(parameters_, options_);
    progress_.say(
        text("iteration ", state_.iteration + 1, " taken back, learning rate halved: ", failure.what()));
  }

  double learning_rate() const {
    return options_.learning_rate * state_.caution *
           rate_factor(options_.schedule, state_.iteration, options_.iterations);
  }

  bool is_validation_due() const {
    return state_.iteration % options_.validation.every == 0 || state_.iteration == options_.iterations;
  }

  void save() {
    state_.optimizer = state_of(*optimizer_);
    write_checkpoint(options_.checkpoint.file, state_, model_);
    saved_ = elapsed();
  }

  /// Of this sitting.
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

  std::string figures() const {
    std::ostringstream out;
    out << std::setprecision(4) << "loss " << record_.loss;
    for (const auto& [name, value] : shown_) out << "  " << name << " " << value;
    if (options_.report) out << "  NFE " << record_.evaluations << "+" << record_.backward_evaluations;
    return out.str();
  }

  torch::nn::Module& model_;
  const Loss& loss_;
  const FitOptions& options_;
  std::vector<Tensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  Progress progress_;
  FitState state_;
  FitHistory history_;
  FitRecord record_;           // of the present iteration
  std::vector<Tensor> start_;  // tensors_of(model) when it began
  Figures shown_;              // of the last validation
  bool stopped_ = false;
  double earlier_seconds_ = 0;
  double saved_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

FitHistory fit(torch::nn::Module& model, const Loss& loss, const FitOptions& options) {
  check(options);
  check_trainable(model);
  Fitting fitting(model, loss, options);
  while (fitting.goes_on()) {
    fitting.iterate();
    fitting.validate();
    fitting.tell();
    fitting.save_if_due();
  }
  return fitting.finish();
}

std::int64_t parameter_count(const torch::nn::Module& model) {
  std::int64_t count = 0;
  for (const Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace fathom
