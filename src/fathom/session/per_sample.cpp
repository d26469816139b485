#include "fathom/session/per_sample.hpp"

#include <algorithm>
#include <chrono>

#include "fathom/fused/options.hpp"
#include "fathom/support/error.hpp"

namespace fathom::session {

namespace {

SolveReport report_of(const std::vector<SolveReport>& reports) {
  SolveReport report = ode::sum_of(reports);
  report.last_step = reports.back().last_step;
  report.reached = reports.back().reached;
  report.engine = "fused";
  return report;
}

}  // namespace

template <class T>
PerSample<T>::PerSample(std::shared_ptr<const fused::Program> program, const SolveOptions& options,
                        std::vector<double> break_points)
    : program_(std::move(program)), options_(options) {
  request_.plan = {.method = options.method, .steps = options.steps, .break_points = std::move(break_points)};
}

template <class T> void PerSample<T>::copy(const Call& call) {
  batch_ = call.batch;
  numbers_.resize(call.tensors.size());
  tensors_.resize(call.tensors.size());
  for (std::size_t n = 0; n < call.tensors.size(); ++n) {
    numbers_[n].assign(call.tensors[n].begin(), call.tensors[n].end());
    tensors_[n] = numbers_[n];
  }
  const std::size_t features = std::size_t(program_->features()) * std::size_t(batch_);
  start_.assign(call.start, call.start + features);
  start_.resize(std::size_t(program_->state_rows) * std::size_t(batch_), T(0));
  request_.depths.assign(call.depths.begin(), call.depths.end());
  request_.own_begins.assign(1, 0);
  for (const std::int64_t count : call.counts)
    request_.own_begins.push_back(request_.own_begins.back() + std::size_t(count));
}

template <class T> const SolveReport& PerSample<T>::solve(const Call& call, bool keeps) {
  has_kept_ = false;
  copy(call);
  request_.options = fused::engine_options(options_.method, options_.steps);
  if (keeps)
    fused::keep_for_gradient({options_.checkpoint_every, options_.memory_budget}, options_.threads,
                             request_.options);
  saved_.resize(points() * std::size_t(program_->state_rows));
  apart_.reset();  // before there is another one
  apart_ = std::make_unique<fused::Apart<T>>(program_, tensors_, batch_, options_.threads);
  const auto began = std::chrono::steady_clock::now();
  reports_ = apart_->solve(request_, start_.data(), saved_.data());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  for (SolveReport& one : reports_) one.engine = "fused";
  report_ = report_of(reports_);
  report_.seconds = taken.count();
  has_kept_ = keeps;
  return report_;
}

template <class T>
auto PerSample<T>::pull_back(std::span<const T> adjoints, const fused::SweepWanted& wanted)
    -> const Gradient& {
  require(has_kept_, "a gradient needs a solve that kept what it takes");
  const std::size_t batch = std::size_t(batch_);
  typename fused::Apart<T>::Wanted asked{.weights = wanted.weights};
  // Apart scatters whole states, of which the caller gets the features.
  gradient_.start.resize(wanted.start ? start_.size() : 0);
  if (wanted.start) asked.start = gradient_.start.data();
  gradient_.inputs.resize(program_->inputs.size());
  for (std::size_t n = 0; n < program_->inputs.size(); ++n) {
    gradient_.inputs[n].resize(wanted.inputs ? batch * std::size_t(program_->inputs[n].rows.count) : 0);
    asked.inputs.push_back(wanted.inputs ? gradient_.inputs[n].data() : nullptr);
  }
  gradient_.depths.resize(wanted.depths ? points() : 0);
  if (wanted.depths) asked.depths = gradient_.depths.data();
  auto found = apart_->pull_back(adjoints.data(), asked);
  gradient_.weights = std::move(found.weights);
  for (std::size_t i = 0; i < reports_.size(); ++i) {
    reports_[i].backward_evaluations += found.evaluations[i];
    report_.backward_evaluations += found.evaluations[i];
  }
  return gradient_;
}

/// sum_k weights_k sum over samples of running loss k at the last point.
template <class T> double PerSample<T>::running_losses(std::span<const double> weights, bool with_adjoints) {
  const std::size_t rows = std::size_t(program_->state_rows), features = std::size_t(program_->features());
  double sum = 0;
  for (std::int64_t sample = 0; sample < batch_; ++sample) {
    const std::size_t at = last_point(sample) * rows + features;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      sum += weights[k] * double(saved_[at + k]);
      if (with_adjoints) adjoints_[at + k] = T(weights[k]);
    }
  }
  return sum;
}

template <class T>
double PerSample<T>::loss(const Call& call, const LossCall<T>& loss,
                          const typename Workspace<T>::Wanted& wanted) {
  const fused::SweepWanted& of_solve = wanted.of_solve;
  const bool pulls = of_solve.start || of_solve.weights || of_solve.inputs || of_solve.depths;
  solve(call, pulls);
  const std::size_t rows = std::size_t(program_->state_rows), features = std::size_t(program_->features());
  const std::size_t count = loss.shares.size();  // of points with targets
  const auto point_of = [&](std::size_t n) { return loss.at_end ? last_point(std::int64_t(n)) : n; };
  answers_.resize(count * features);
  for (std::size_t n = 0; n < count; ++n)
    std::copy_n(saved_.data() + point_of(n) * rows, features, answers_.data() + n * features);
  const fused::Tiles one(1, 1, 1);
  renew(end_loss_, loss, one, /*threads=*/1);
  end_loss_->read(*loss.tensors, std::int64_t(count));
  const bool wants_adjoints = pulls || wanted.head;
  answer_adjoints_.resize(wants_adjoints ? answers_.size() : 0);
  const double value = end_loss_->evaluate_points(answers_.data(), std::int32_t(features), loss.shares,
                                                  wants_adjoints ? answer_adjoints_.data() : nullptr);
  adjoints_.assign(pulls ? saved_.size() : 0, T(0));
  for (std::size_t n = 0; pulls && n < count; ++n)
    std::copy_n(answer_adjoints_.data() + n * features, features, adjoints_.data() + point_of(n) * rows);
  const double running = running_losses(loss.running, pulls);
  if (pulls) pull_back(adjoints_, of_solve);
  return value + running;
}

template <class T> std::size_t PerSample<T>::bytes() const {
  std::size_t numbers = start_.capacity() + saved_.capacity() + adjoints_.capacity() + answers_.capacity() +
                        answer_adjoints_.capacity();
  for (const std::vector<T>& each : numbers_) numbers += each.capacity();
  return numbers * sizeof(T) + (end_loss_ ? end_loss_->bytes() : 0);
}

template class PerSample<float>;
template class PerSample<double>;

}  // namespace fathom::session
