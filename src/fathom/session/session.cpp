#include "fathom/session.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "fathom/session/layers.hpp"
#include "fathom/session/loss_program.hpp"
#include "fathom/session/per_sample.hpp"
#include "fathom/session/workspace.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

using session::LossCall;
using session::LossProgram;
using session::PerSample;
using session::Workspace;

void check(const SolveOptions& options) {
  require(options.threads >= 1, "`threads` must be at least 1, got ", options.threads);
  require(options.checkpoint_every >= 1, "`checkpoint_every` must be at least 1, got ",
          options.checkpoint_every);
  require(options.memory_budget >= 0, "`memory_budget` must not be negative, got ", options.memory_budget);
}

template <class T>
void check_view(const View<T>& view, std::int64_t rows, std::int64_t columns, const char* what) {
  if (view && view.rows == rows && view.columns == columns) return;  // before any text is made
  throw InvalidArgument(text("`", what, "` must be ", rows, " x ", columns, ", got ",
                             view ? text(view.rows, " x ", view.columns) : "none"));
}

std::vector<double> joined(std::vector<double> one, const std::vector<double>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

}  // namespace

std::vector<Parameter> head_parameters(std::int64_t features, const std::vector<Layer>& layers) {
  return session::parameters_of(layers, features);
}

template <class T> class Session<T>::Implementation {
 public:
  Implementation(ProgramField field, SolveOptions options)
      : field_(std::move(field)),
        options_(std::move(options)),
        break_points_(joined(field_.break_points(), options_.break_points)),
        is_read_(field_.parameters().size(), false),
        tensors_(field_.parameters().size() + field_.inputs().size()) {
    check(options_);
    for (const fused::Matrix& matrix : field_.program()->matrices) {
      is_read_[std::size_t(matrix.weight)] = true;
      if (matrix.bias >= 0) is_read_[std::size_t(matrix.bias)] = true;
    }
  }

  SolveReport solve(const Data<T>& data, std::span<const double> depths, View<T> states, View<T> running) {
    const auto call = call_of(data, depths);
    const std::int64_t points = std::int64_t(depths.size()), batch = data.start.rows;
    check_view(states, points, batch * field_.features(), "states");
    if (running) check_view(running, points, batch * field_.running_losses(), "running");
    Workspace<T>& work = workspace_for(batch);
    forget_solve();
    const bool keeps = options_.derivative != Derivative::none;
    const bool in_place = field_.running_losses() == 0;
    if (!in_place) saved_.resize(depths.size() * work.state_size());
    const SolveReport& report = work.solve(call, keeps, in_place ? states.data : saved_.data());
    if (!in_place) divide_saved(work.reached_depths(), work.state_size(), states, running);
    solved_ = keeps ? &work : nullptr;
    depths_ = depths.size();
    last_ = &work;
    return report;
  }

  SolveReport solve(const Data<T>& data, const RaggedDepths& depths, View<T> states, View<T> running) {
    const auto call = ragged_call_of(data, depths);
    const std::int64_t points = std::int64_t(call.depths.size());
    check_view(states, points, field_.features(), "states");
    if (running) check_view(running, points, field_.running_losses(), "running");
    forget_solve();
    PerSample<T>& work = per_sample();
    const bool keeps = options_.derivative != Derivative::none;
    const SolveReport& report = work.solve(call, keeps);
    for (std::int64_t p = 0; p < points; ++p) {
      const T* from = work.saved().data() + p * (states.columns + field_.running_losses());
      std::copy_n(from, states.columns, states.data + p * states.columns);
      if (running) std::copy_n(from + states.columns, running.columns, running.data + p * running.columns);
    }
    has_solved_ragged_ = keeps;
    is_last_ragged_ = true;
    return report;
  }

  void backward(View<const T> states, View<const T> running, const Gradient<T>& gradient) {
    if (has_solved_ragged_) return ragged_backward(states, running, gradient);
    require(solved_ != nullptr, "backward() needs a solve() before it, with a derivative that is not `none`");
    Workspace<T>& work = *solved_;
    const std::int64_t batch = work.batch(), points = std::int64_t(depths_);
    check_view(states, points, batch * field_.features(), "states");
    if (running) check_view(running, points, batch * field_.running_losses(), "running");
    check_gradient(gradient, batch, depths_);
    require(gradient.head.empty(), "only a loss has a head whose gradient may be wanted");
    const T* adjoints = states.data;
    if (field_.running_losses() > 0) {
      join_adjoints(work.state_size(), states, running);
      adjoints = saved_.data();
    }
    write(work, work.pull_back(adjoints, wanted_of(gradient)), gradient);
    last_ = &work;
  }

  double loss(const Data<T>& data, std::span<const double> depths, const Loss<T>& loss,
              const Gradient<T>* gradient) {
    const auto call = call_of(data, depths);
    const std::int64_t batch = data.start.rows;
    const std::size_t given = depths.size();
    if (gradient) {
      check_gradient(*gradient, batch, given);
      require(options_.derivative != Derivative::none, "a gradient needs another derivative than `none`");
    }
    const bool at_end = loss_program_.read(
        loss, field_, {.batch = batch, .all = batch * std::int64_t(given), .of_point = batch});
    check_head_gradient(loss, gradient);
    const std::array<double, 2> bounds = {depths.front(), depths.back()};
    typename Workspace<T>::Call solve = call;
    if (at_end) solve.depths = bounds;
    typename Workspace<T>::Wanted wanted;
    if (gradient) wanted = {.head = !gradient->head.empty(), .of_solve = wanted_of(*gradient)};
    Workspace<T>& work = workspace_for(batch);
    forget_solve();
    last_ = &work;
    const double value = work.loss(solve, loss_program_.call(), wanted) + loss_program_.constant();
    if (!gradient) return value;
    if (work.gradient()) write(work, *work.gradient(), *gradient, at_end);
    if (wanted.head) loss_program_.write_gradient(work.end_loss(), gradient->head);
    return value;
  }

  double loss(const Data<T>& data, const RaggedDepths& depths, const Loss<T>& loss,
              const Gradient<T>* gradient) {
    const auto call = ragged_call_of(data, depths);
    if (gradient) {
      check_gradient(*gradient, call.batch, call.depths.size());
      require(options_.derivative != Derivative::none, "a gradient needs another derivative than `none`");
    }
    loss_program_.read(loss, field_, {.batch = call.batch, .all = std::int64_t(call.depths.size())});
    check_head_gradient(loss, gradient);
    typename Workspace<T>::Wanted wanted;
    if (gradient) wanted = {.head = !gradient->head.empty(), .of_solve = wanted_of(*gradient)};
    forget_solve();
    PerSample<T>& work = per_sample();
    const double value = work.loss(call, loss_program_.call(), wanted) + loss_program_.constant();
    is_last_ragged_ = true;
    if (!gradient) return value;
    write(work, wanted.of_solve, *gradient);
    if (wanted.head) loss_program_.write_gradient(work.end_loss(), gradient->head);
    return value;
  }

  std::span<const SolveReport> sample_reports() const {
    return is_last_ragged_ ? per_sample_->reports() : std::span<const SolveReport>();
  }

  const SolveReport& report() const {
    if (is_last_ragged_) return per_sample_->report();
    require(last_ != nullptr, "a Session has a report after a solve() or loss()");
    return last_->report();
  }

  std::size_t bytes() const {
    std::size_t bytes = saved_.capacity() * sizeof(T) + (per_sample_ ? per_sample_->bytes() : 0);
    for (const auto& work : workspaces_) bytes += work->bytes();
    return bytes;
  }

  const ProgramField& field() const { return field_; }
  const SolveOptions& options() const { return options_; }

 private:
  typename Workspace<T>::Call call_of(const Data<T>& data, std::span<const double> depths) {
    require(depths.size() >= 2, "`depths` needs a start and an end, got ", depths.size(), " value(s)");
    read_data(data);
    return {.tensors = tensors_, .start = data.start.data, .depths = depths, .parameters = parameters_};
  }

  typename PerSample<T>::Call ragged_call_of(const Data<T>& data, const RaggedDepths& depths) {
    require(options_.derivative != Derivative::adjoint && !options_.observer,
            "samples with depths of their own need the derivative `discrete` or `none`, and no observer");
    read_data(data);
    const std::int64_t batch = data.start.rows;
    require(std::int64_t(depths.counts.size()) == batch, "`counts` needs a number of depths for each of the ",
            batch, " samples, got ", depths.counts.size());
    std::int64_t left = std::int64_t(depths.depths.size());
    for (const std::int64_t count : depths.counts) {
      require(count >= 2 && count <= left, "each sample needs a start and an end among the ",
              depths.depths.size(), " depths of all, got a count of ", count);
      left -= count;
    }
    require(left == 0, "`depths` has ", left, " more than the counts of all samples together");
    return {.tensors = tensors_,
            .start = data.start.data,
            .batch = batch,
            .depths = depths.depths,
            .counts = depths.counts};
  }

  /// Checks the numbers of a call, of which the parameters and inputs are then in `tensors_`.
  void read_data(const Data<T>& data) {
    const std::int64_t batch = data.start.rows;
    require(batch >= 1, "a solve needs at least one sample, got ", batch);
    check_view(data.start, batch, field_.features(), "start");
    require(std::int64_t(data.parameters.size()) == field_.parameter_count(), "`parameters` must be the ",
            field_.parameter_count(), " numbers of the field, got ", data.parameters.size());
    require(data.inputs.size() == field_.inputs().size(), "the field has ", field_.inputs().size(),
            " input(s), got ", data.inputs.size());
    std::size_t place = 0, tensor = 0;
    for (const Parameter& parameter : field_.parameters()) {
      const std::size_t size = std::size_t(parameter.size());
      tensors_[tensor++] = data.parameters.subspan(place, size);
      place += size;
    }
    for (std::size_t i = 0; i < data.inputs.size(); ++i) {
      check_view(data.inputs[i], batch, field_.inputs()[i], "inputs");
      tensors_[tensor++] = {data.inputs[i].data, data.inputs[i].size()};
    }
    if (!data.parameters_unchanged) ++parameters_;
  }

  void forget_solve() {
    solved_ = nullptr;
    has_solved_ragged_ = is_last_ragged_ = false;
  }

  PerSample<T>& per_sample() {
    if (!per_sample_) per_sample_ = std::make_unique<PerSample<T>>(field_.program(), options_, break_points_);
    return *per_sample_;
  }

  void ragged_backward(View<const T> states, View<const T> running, const Gradient<T>& gradient) {
    PerSample<T>& work = *per_sample_;
    const std::int64_t points = std::int64_t(work.points()), features = field_.features(),
                       losses = field_.running_losses();
    check_view(states, points, features, "states");
    if (running) check_view(running, points, losses, "running");
    check_gradient(gradient, work.batch(), work.points());
    require(gradient.head.empty(), "only a loss has a head whose gradient may be wanted");
    saved_.assign(std::size_t(points * (features + losses)), T(0));
    for (std::int64_t p = 0; p < points; ++p) {
      T* to = saved_.data() + p * (features + losses);
      std::copy_n(states.data + p * features, features, to);
      if (running) std::copy_n(running.data + p * losses, losses, to + features);
    }
    work.pull_back(saved_, wanted_of(gradient));
    write(work, wanted_of(gradient), gradient);
    is_last_ragged_ = true;
  }

  void check_head_gradient(const Loss<T>& loss, const Gradient<T>* gradient) const {
    require(
        gradient == nullptr || gradient->head.empty() || gradient->head.size() == loss.head_parameters.size(),
        "the gradient of the head needs ", loss.head_parameters.size(), " numbers, got ",
        gradient ? gradient->head.size() : 0);
  }

  /// Of the last few batch sizes: an epoch often ends with a smaller one. The latest comes last.
  Workspace<T>& workspace_for(std::int64_t batch) {
    constexpr std::size_t most = 4;
    const auto found = std::find_if(workspaces_.begin(), workspaces_.end(),
                                    [&](const auto& work) { return work->batch() == batch; });
    if (found != workspaces_.end()) {
      std::rotate(found, found + 1, workspaces_.end());
      return *workspaces_.back();
    }
    if (workspaces_.size() == most) {
      if (last_ == workspaces_.front().get()) last_ = nullptr;
      workspaces_.erase(workspaces_.begin());
    }
    workspaces_.push_back(std::make_unique<Workspace<T>>(field_.program(), tensors_, batch, options_,
                                                         break_points_, parameters_));
    return *workspaces_.back();
  }

  void check_gradient(const Gradient<T>& gradient, std::int64_t batch, std::size_t depths) const {
    if (gradient.start) check_view(gradient.start, batch, field_.features(), "gradient.start");
    const std::size_t parameters = std::size_t(field_.parameter_count());
    require(gradient.parameters.empty() || gradient.parameters.size() == parameters,
            "the gradient of the parameters needs ", parameters, " numbers, got ",
            gradient.parameters.size());
    require(gradient.depths.empty() || gradient.depths.size() == depths, "the gradient of the depths needs ",
            depths, " numbers, got ", gradient.depths.size());
    require(gradient.inputs.size() <= field_.inputs().size(), "the field has ", field_.inputs().size(),
            " input(s), got gradients for ", gradient.inputs.size());
    for (std::size_t i = 0; i < gradient.inputs.size(); ++i) {
      if (gradient.inputs[i]) check_view(gradient.inputs[i], batch, field_.inputs()[i], "gradient.inputs");
    }
  }

  static fused::SweepWanted wanted_of(const Gradient<T>& gradient) {
    return {.weights = !gradient.parameters.empty(),
            .inputs = std::any_of(gradient.inputs.begin(), gradient.inputs.end(),
                                  [](const auto& view) { return bool(view); }),
            .depths = !gradient.depths.empty(),
            .start = bool(gradient.start)};
  }

  /// `at_end`: of a solve with the two bounds alone, whatever depths there are between.
  void write(const Workspace<T>& work, const fused::SweepResult<T>& found, const Gradient<T>& gradient,
             bool at_end = false) const {
    const auto& problem = work.problem();
    if (gradient.start) std::copy_n(found.start.begin(), gradient.start.size(), gradient.start.data);
    if (!gradient.depths.empty() && at_end) {
      std::fill(gradient.depths.begin(), gradient.depths.end(), 0.0);
      gradient.depths.front() = found.depths.front();
      gradient.depths.back() = found.depths.back();
    } else if (!gradient.depths.empty()) {
      std::copy(found.depths.begin(), found.depths.end(), gradient.depths.begin());
    }
    for (const fused::SampleInput& input : problem.program->inputs) {
      const std::size_t place = std::size_t(input.tensor) - field_.parameters().size();
      if (place < gradient.inputs.size() && gradient.inputs[place])
        fused::read_input(problem, input, found.inputs, gradient.inputs[place].data);
    }
    write_parameters(problem.weights, found.weights, gradient.parameters);
  }

  void write(const PerSample<T>& work, const fused::SweepWanted& wanted, const Gradient<T>& gradient) const {
    if (!wanted.start && !wanted.weights && !wanted.inputs && !wanted.depths) return;
    const auto& found = work.gradient();
    if (gradient.start) std::copy_n(found.start.begin(), gradient.start.size(), gradient.start.data);
    std::copy(found.depths.begin(), found.depths.end(), gradient.depths.begin());
    const auto& inputs = field_.program()->inputs;
    for (std::size_t n = 0; n < inputs.size(); ++n) {
      const std::size_t place = std::size_t(inputs[n].tensor) - field_.parameters().size();
      if (place < gradient.inputs.size() && gradient.inputs[place])
        std::copy(found.inputs[n].begin(), found.inputs[n].end(), gradient.inputs[place].data);
    }
    write_parameters(work.weights(), found.weights, gradient.parameters);
  }

  void write_parameters(const fused::Weights<T>& weights, const std::vector<double>& found,
                        std::span<T> gradient) const {
    if (gradient.empty()) return;
    T* to = gradient.data();
    for (std::size_t i = 0; i < is_read_.size(); ++i) {
      const std::size_t size = tensors_[i].size();
      const double* from = found.data() + weights.tensor_begin(i);
      for (std::size_t n = 0; n < size; ++n) to[n] = is_read_[i] ? T(from[n]) : T(0);
      to += size;
    }
  }

  /// A saved state has the features of all samples, then their running losses.
  void divide_saved(std::size_t points, std::size_t size, View<T> states, View<T> running) const {
    const std::size_t features = std::size_t(states.columns);
    for (std::size_t p = 0; p < points; ++p) {
      const T* from = saved_.data() + p * size;
      std::copy_n(from, features, states.data + p * features);
      if (running) std::copy_n(from + features, size - features, running.data + p * (size - features));
    }
  }
  void join_adjoints(std::size_t size, View<const T> states, View<const T> running) {
    const std::size_t features = std::size_t(states.columns), points = std::size_t(states.rows);
    saved_.assign(points * size, T(0));
    for (std::size_t p = 0; p < points; ++p) {
      T* to = saved_.data() + p * size;
      std::copy_n(states.data + p * features, features, to);
      if (running) std::copy_n(running.data + p * (size - features), size - features, to + features);
    }
  }

  ProgramField field_;
  SolveOptions options_;
  std::vector<double> break_points_;
  std::vector<bool> is_read_;     // of each parameter: does the program read it?
  fused::Tensors<T> tensors_;     // of the call under way: parameters, then inputs
  std::size_t depths_ = 0;        // of the last solve
  std::uint64_t parameters_ = 1;  // version of the parameters of the last call
  std::vector<std::unique_ptr<Workspace<T>>> workspaces_;
  Workspace<T>* solved_ = nullptr;  // has what backward() needs
  Workspace<T>* last_ = nullptr;    // has the last report
  std::vector<T> saved_;            // (depths, state size), where there are running losses
  LossProgram<T> loss_program_;
  std::unique_ptr<PerSample<T>> per_sample_;  // of ragged batches
  bool has_solved_ragged_ = false;            // has it what backward() needs?
  bool is_last_ragged_ = false;               // has it the last report?
};

template <class T>
Session<T>::Session(ProgramField field, SolveOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(field), std::move(options))) {}
template <class T> Session<T>::Session(Session&&) noexcept = default;
template <class T> Session<T>& Session<T>::operator=(Session&&) noexcept = default;
template <class T> Session<T>::~Session() = default;

template <class T> const ProgramField& Session<T>::field() const { return implementation_->field(); }
template <class T> const SolveOptions& Session<T>::options() const { return implementation_->options(); }

template <class T>
SolveReport Session<T>::solve(const Data<T>& data, std::span<const double> depths, View<T> states,
                              View<T> running) {
  return implementation_->solve(data, depths, states, running);
}

template <class T>
SolveReport Session<T>::solve(const Data<T>& data, const RaggedDepths& depths, View<T> states,
                              View<T> running) {
  return implementation_->solve(data, depths, states, running);
}

template <class T>
double Session<T>::loss(const Data<T>& data, const RaggedDepths& depths, const Loss<T>& loss,
                        const Gradient<T>* gradient) {
  return implementation_->loss(data, depths, loss, gradient);
}

template <class T> std::span<const SolveReport> Session<T>::sample_reports() const {
  return implementation_->sample_reports();
}

template <class T>
void Session<T>::backward(View<const T> states, View<const T> running, const Gradient<T>& gradient) {
  implementation_->backward(states, running, gradient);
}

template <class T>
double Session<T>::loss(const Data<T>& data, std::span<const double> depths, const Loss<T>& loss,
                        const Gradient<T>* gradient) {
  return implementation_->loss(data, depths, loss, gradient);
}

template <class T> const SolveReport& Session<T>::report() const { return implementation_->report(); }
template <class T> std::size_t Session<T>::bytes() const { return implementation_->bytes(); }

template class Session<float>;
template class Session<double>;

}  // namespace fathom
