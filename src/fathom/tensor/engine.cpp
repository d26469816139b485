#include "fathom/tensor/engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fathom {

namespace {

/// All rows that a step multiplies its stages with, as one matrix: one product by h serves the whole step.
Tensor coefficient_matrix(const ode::ButcherTableau& method, const at::TensorOptions& options) {
  const std::size_t width = method.c.size();
  Tensor matrix = torch::zeros({std::int64_t(width) + 3, std::int64_t(width)}, torch::kFloat64);
  auto entries = matrix.accessor<double, 2>();
  const auto fill = [&](std::size_t row, const std::vector<double>& values) {
    for (std::size_t j = 0; j < values.size(); ++j) entries[std::int64_t(row)][std::int64_t(j)] = values[j];
  };
  for (std::size_t i = 0; i < width; ++i) fill(i, method.a[i]);
  fill(width, method.b);
  fill(width + 1, method.error);
  fill(width + 2, method.coarse_error);
  return matrix.to(options.device());
}

AdaptiveSteps tolerance_of(const Solver& solver) {
  const auto* adaptive = std::get_if<AdaptiveSteps>(&solver.steps);
  return adaptive ? *adaptive : AdaptiveSteps{};
}

bool needs_error(const Solver& solver) { return std::holds_alternative<AdaptiveSteps>(solver.steps); }

}  // namespace

TensorEngine::TensorEngine(const FlatField& field, const Tensor& start, const Solver& solver,
                           const Keep& keep)
    : field_(field),
      method_(solver.method),
      tolerance_(tolerance_of(solver)),
      keep_(keep),
      all_in_norm_(std::all_of(field.parts.begin(), field.parts.end(),
                               [](const Part& part) { return part.in_error_norm; })),
      end_rate_stage_(method_.end_rate_stage().value_or(0)),
      coefficients_(coefficient_matrix(method_, start.options())),
      stages_(torch::zeros({std::int64_t(method_.c.size()), start.numel()},
                           start.options().requires_grad(false))),
      state_(start.detach()),
      candidate_(state_),
      stride_(keep.every) {
  if (!needs_error(solver)) method_.error.clear(), method_.coarse_error.clear();
}

Tensor TensorEngine::evaluate(double depth, const Tensor& y) {
  ++evaluations_;
  return field_.rate(torch::scalar_tensor(depth, torch::kFloat64), y).detach();
}

/// sum_j h m_ij k_j over the first `count` stages.
Tensor TensorEngine::combination(std::int64_t row, std::int64_t count) const {
  return at::mv(stages_.narrow(0, 0, count).t(), scaled_[row].narrow(0, 0, count));
}

void TensorEngine::evaluate_stage(std::size_t stage, const Tensor& from) {
  const std::int64_t i = std::int64_t(stage);
  const Tensor argument = from + combination(i, i);
  // The end-rate stage is evaluated at the new state itself, so that both have the same bits.
  if (stage == end_rate_stage_ && stage < method_.stages()) candidate_ = argument;
  stages_[i].copy_(evaluate(step_.stage_depth(method_.c[stage]), argument));
}

void TensorEngine::first_rate(const ode::Step& step) {
  switch (rate_known_at_) {
    case RateKnown::nowhere: stages_[0].copy_(evaluate(step.stage_depth(0), state_)); break;
    case RateKnown::at_end_rate_stage: stages_[0].copy_(stages_[std::int64_t(end_rate_stage_)]); break;
    case RateKnown::at_first_stage: break;
  }
  rate_known_at_ = RateKnown::at_first_stage;
}

Tensor TensorEngine::scale(const Tensor& other) const {
  return at::maximum(state_.abs(), other.abs()) * tolerance_.relative_tolerance +
         tolerance_.absolute_tolerance;
}

double TensorEngine::scaled_norm(const Tensor& values, const Tensor& scale) const {
  if (values.numel() == 0) return 0;
  // A component that is exactly right is within any tolerance, also within none (0 / 0).
  const Tensor ratio = (values / scale).masked_fill(values == 0, 0);
  const auto norm = [](const Tensor& part) {
    if (part.numel() == 0)
      return 0.0;  // the adjoint of an empty batch: only gradients of parameters, which do not count
    const double largest = part.abs().max().item<double>();
    if (largest == 0 || !std::isfinite(largest)) return largest;
    // Divided by the largest entry first, so that no square overflows.
    return largest * (part / largest).norm(2, torch::kFloat64).item<double>() /
           std::sqrt(double(part.numel()));
  };
  if (all_in_norm_ && tolerance_.norm == ErrorNorm::batch) return norm(ratio);
  if (tolerance_.norm == ErrorNorm::batch) {
    std::vector<Tensor> counted;
    for (std::size_t i = 0; i < field_.parts.size(); ++i) {
      if (field_.parts[i].in_error_norm) counted.push_back(unpack(ratio, field_.parts, i).reshape(-1));
    }
    return norm(at::cat(counted));
  }
  double worst = 0;
  std::vector<Tensor> by_sample;  // parts with the batch axis of the first, (samples, features)
  const std::int64_t samples = field_.parts.front().samples();
  for (std::size_t i = 0; i < field_.parts.size(); ++i) {
    if (!field_.parts[i].in_error_norm || field_.parts[i].size() == 0) continue;
    const Tensor part = unpack(ratio, field_.parts, i);
    if (field_.parts[i].samples() == samples) {
      by_sample.push_back(part.reshape({samples, -1}));
    } else {
      worst = std::max(worst, norm(part));
    }
  }
  if (by_sample.empty()) return worst;
  const Tensor samplewise = at::cat(by_sample, 1).to(torch::kFloat64);
  const double largest = samplewise.abs().max().item<double>();
  if (largest == 0 || !std::isfinite(largest)) return std::max(worst, largest);
  const double rms = (samplewise / largest).square().mean(1).max().sqrt().item<double>();
  return std::max(worst, largest * rms);
}

double TensorEngine::resolution() const {
  switch (state_.scalar_type()) {
    case torch::kHalf: return double(std::numeric_limits<c10::Half>::epsilon());
    case torch::kBFloat16: return double(std::numeric_limits<c10::BFloat16>::epsilon());
    case torch::kFloat32: return double(std::numeric_limits<float>::epsilon());
    default: return std::numeric_limits<double>::epsilon();
  }
}

double TensorEngine::rate_norm(const std::vector<double>& weights) {
  if (weights.size() > method_.stages()) finish_dense_stages();
  const Tensor row = torch::tensor(weights, torch::kFloat64).to(stages_.options());
  return scaled_norm(at::mv(stages_.narrow(0, 0, row.size(0)).t(), row), scale(before_));
}

ode::StartNorms TensorEngine::start_norms(const ode::Step& step) {
  first_rate(step);
  candidate_ = state_;
  const Tensor at_start = scale(state_);
  return {scaled_norm(state_, at_start), scaled_norm(stages_[0], at_start)};
}

double TensorEngine::curvature(const ode::Step& probe) {
  const Tensor rate = evaluate(probe.stage_depth(1), state_ + stages_[0] * probe.size());
  return scaled_norm(rate - stages_[0], scale(state_)) / std::abs(probe.size());
}

ode::TrialError TensorEngine::attempt(const ode::Step& step) {
  first_rate(step);
  step_ = step;
  scaled_ = (coefficients_ * step.size()).to(stages_.scalar_type());
  const std::int64_t stages = std::int64_t(method_.stages()), rows = std::int64_t(method_.c.size());
  for (std::size_t i = 1; i < method_.stages(); ++i) evaluate_stage(i, state_);
  if (!method_.first_same_as_last()) candidate_ = state_ + combination(rows, stages);
  ode::TrialError result{.finite = at::isfinite(candidate_).all().item<bool>()};
  if (!result.finite || !method_.adaptive()) return result;
  const Tensor allowed = scale(candidate_);
  const double fine = scaled_norm(combination(rows + 1, stages), allowed);
  const double coarse =
      method_.coarse_error.empty() ? 0.0 : scaled_norm(combination(rows + 2, stages), allowed);
  result.ratio = ode::combined_error(fine, coarse);
  result.finite = std::isfinite(result.ratio);
  return result;
}

void TensorEngine::accept() {
  before_ = state_;
  state_ = candidate_;
  records_.push_back({.step = step_});
  keep_start();
  has_dense_stages_ = method_.dense_stages() == 0;
  rate_known_at_ = method_.first_same_as_last() ? RateKnown::at_end_rate_stage : RateKnown::nowhere;
  if (keep_.stages) {
    finish_dense_stages();
    refuse_non_finite(stages_);
    records_.back().stages = stages_.clone();
  }
}

void TensorEngine::keep_start() {
  const bool kept = keep_.stages || (stride_ > 0 && std::int64_t(records_.size() - 1) % stride_ == 0);
  if (!kept) return;
  records_.back().start = before_;
  ++kept_starts_;
  const std::int64_t bytes = kept_starts_ * std::int64_t(before_.nbytes());
  if (keep_.budget > 0 && bytes > keep_.budget && kept_starts_ > 2) thin_out_starts();
}

void TensorEngine::thin_out_starts() {
  stride_ *= 2;
  kept_starts_ = 0;
  for (std::size_t n = 0; n < records_.size(); ++n) {
    if (std::int64_t(n) % stride_ != 0)
      records_[n].start.reset();
    else
      ++kept_starts_;
  }
}

void TensorEngine::finish_dense_stages() {
  if (has_dense_stages_) return;
  for (std::size_t i = method_.stages(); i < method_.c.size(); ++i) evaluate_stage(i, before_);
  has_dense_stages_ = true;
  if (end_rate_stage_ > 0) rate_known_at_ = RateKnown::at_end_rate_stage;
}

void TensorEngine::refuse_non_finite(const Tensor& values) const {
  if (at::isfinite(values).all().item<bool>()) return;
  const auto limit = method_.adaptive() ? ode::StepLimit::unknown : ode::StepLimit::grid;
  throw ode::SolveFailure(FailureReason::non_finite,
                          {.depth = step_.start,
                           .step = step_.size(),
                           .evaluations = evaluations_,
                           .component = offender(),
                           .limits = {.steps = limit}},
                          "");
}

void TensorEngine::save_state(std::size_t place) {
  saved_.resize(std::max(saved_.size(), place + 1));
  saved_[place] = state_;
  if (!records_.empty()) records_.back().saved.push_back({.place = place, .fraction = 1});
}

void TensorEngine::save_inside(std::size_t place, double fraction) {
  finish_dense_stages();
  saved_.resize(std::max(saved_.size(), place + 1));
  saved_[place] = interpolate(method_, step_, before_, stages_, fraction);
  refuse_non_finite(saved_[place]);
  records_.back().saved.push_back({.place = place, .fraction = fraction});
}

void TensorEngine::restart(const Tensor& state) {
  state_ = state;
  candidate_ = state;
  rate_known_at_ = RateKnown::nowhere;
}

std::string TensorEngine::offender() const {
  const std::string found = first_non_finite(candidate_, field_.parts);
  if (!found.empty()) return found;
  for (std::int64_t i = 0; i < stages_.size(0); ++i) {
    const std::string rate = first_non_finite(stages_[i], field_.parts);
    if (!rate.empty()) return "rate of " + rate;
  }
  return {};
}

Tensor interpolate(const ode::ButcherTableau& method, const ode::Step& step, const Tensor& start,
                   const Tensor& stages, double fraction) {
  std::vector<double> weights = method.dense_weights(fraction);
  for (double& weight : weights) weight *= step.size();
  const Tensor row = torch::tensor(weights, torch::kFloat64).to(stages.options());
  return start + at::mv(stages.t(), row);
}

}  // namespace fathom
