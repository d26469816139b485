#include "fathom/ode/plain_engine.hpp"

#include <algorithm>

#include "fathom/support/error.hpp"

namespace fathom::ode {

PlainEngine::PlainEngine(Rate rate, State start, ButcherTableau method, const AdaptiveSteps& tolerance)
    : rate_(std::move(rate)),
      method_(std::move(method)),
      relative_(tolerance.relative_tolerance),
      absolute_(tolerance.absolute_tolerance),
      state_(std::move(start)),
      before_(state_),
      candidate_(state_),
      argument_(state_),
      stages_(method_.c.size(), State(state_.size())) {}

void PlainEngine::evaluate(double depth, const State& z, State& rate) {
  ++evaluations_;
  rate_(depth, z, rate);
}

void PlainEngine::evaluate_stage(std::size_t stage, const Step& step, const State& from) {
  const double h = step.size();
  for (std::size_t n = 0; n < from.size(); ++n) {
    double sum = 0;
    for (std::size_t j = 0; j < method_.a[stage].size(); ++j) sum += method_.a[stage][j] * stages_[j][n];
    argument_[n] = from[n] + h * sum;
  }
  evaluate(step.stage_depth(method_.c[stage]), argument_, stages_[stage]);
}

void PlainEngine::first_rate(const Step& step) {
  if (has_rate_) return;
  if (rate_is_next_) {
    stages_[0] = stages_[*method_.end_rate_stage()];
  } else {
    evaluate(step.stage_depth(0), state_, stages_[0]);
  }
  rate_is_next_ = false;
  has_rate_ = true;
}

double PlainEngine::scaled_norm(const State& values, const State& other) const {
  if (values.empty()) return 0;
  // Scaled by the largest entry, so that no square overflows.
  double largest = 0;
  std::vector<double> ratios(values.size());
  for (std::size_t n = 0; n < values.size(); ++n) {
    const double magnitude = std::max(std::abs(state_[n]), std::abs(other[n]));
    const double ratio = std::abs(values[n]) / (absolute_ + relative_ * magnitude);
    ratios[n] = values[n] == 0 ? 0 : ratio;
    if (!std::isfinite(ratios[n])) return ratios[n];
    largest = std::max(largest, ratios[n]);
  }
  if (largest == 0) return 0;
  double sum = 0;
  for (double ratio : ratios) sum += (ratio / largest) * (ratio / largest);
  return largest * std::sqrt(sum / double(ratios.size()));
}

StartNorms PlainEngine::start_norms(const Step& step) {
  first_rate(step);
  candidate_ = state_;
  return {scaled_norm(state_, state_), scaled_norm(stages_[0], state_)};
}

double PlainEngine::curvature(const Step& probe) {
  const double h = probe.size();
  for (std::size_t n = 0; n < state_.size(); ++n) argument_[n] = state_[n] + h * stages_[0][n];
  State change(state_.size());
  evaluate(probe.stage_depth(1), argument_, change);
  for (std::size_t n = 0; n < change.size(); ++n) change[n] -= stages_[0][n];
  return scaled_norm(change, state_) / std::abs(h);
}

TrialError PlainEngine::attempt(const Step& step) {
  first_rate(step);
  const double h = step.size();
  for (std::size_t i = 1; i < method_.stages(); ++i) evaluate_stage(i, step, state_);
  State error(state_.size(), 0.0), coarse(state_.size(), 0.0);
  for (std::size_t n = 0; n < state_.size(); ++n) {
    double sum = 0;
    for (std::size_t i = 0; i < method_.stages(); ++i) sum += method_.b[i] * stages_[i][n];
    candidate_[n] = state_[n] + h * sum;
    for (std::size_t i = 0; i < method_.error.size(); ++i) error[n] += h * method_.error[i] * stages_[i][n];
    for (std::size_t i = 0; i < method_.coarse_error.size(); ++i)
      coarse[n] += h * method_.coarse_error[i] * stages_[i][n];
  }
  step_ = step;
  const auto finite = [](double value) { return std::isfinite(value); };
  TrialError result{.finite = std::all_of(candidate_.begin(), candidate_.end(), finite)};
  if (!method_.adaptive() || !result.finite) return result;
  result.ratio = combined_error(scaled_norm(error, candidate_),
                                method_.coarse_error.empty() ? 0.0 : scaled_norm(coarse, candidate_));
  result.finite = std::isfinite(result.ratio);
  return result;
}

void PlainEngine::accept() {
  before_.swap(state_);
  state_ = candidate_;
  has_rate_ = false;
  has_dense_ = method_.dense_stages() == 0;
  rate_is_next_ = method_.first_same_as_last();
}

void PlainEngine::save_state(std::size_t place) {
  saved_.resize(std::max(saved_.size(), place + 1));
  saved_[place] = state_;
}

void PlainEngine::finish_dense_stages() {
  if (has_dense_) return;
  for (std::size_t i = method_.stages(); i < method_.c.size(); ++i) evaluate_stage(i, step_, before_);
  has_dense_ = true;
  rate_is_next_ = method_.end_rate_stage().has_value();
}

void PlainEngine::save_inside(std::size_t place, double fraction) {
  finish_dense_stages();
  const std::vector<double> weights = method_.dense_weights(fraction);
  State inside(state_.size());
  for (std::size_t n = 0; n < inside.size(); ++n) {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * stages_[i][n];
    inside[n] = before_[n] + step_.size() * sum;
  }
  saved_.resize(std::max(saved_.size(), place + 1));
  saved_[place] = std::move(inside);
}

double PlainEngine::rate_norm(const std::vector<double>& weights) {
  if (weights.size() > method_.stages()) finish_dense_stages();
  State sum(state_.size(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (std::size_t n = 0; n < sum.size(); ++n) sum[n] += weights[i] * stages_[i][n];
  }
  return scaled_norm(sum, before_);
}

std::string PlainEngine::offender() const {
  const auto find = [](const State& values, const char* what) -> std::string {
    for (std::size_t n = 0; n < values.size(); ++n) {
      if (!std::isfinite(values[n])) return text(what, "[", n, "] = ", values[n]);
    }
    return {};
  };
  for (const auto& [values, what] : {std::pair{&candidate_, "z"}, std::pair{&stages_[0], "rate"}}) {
    if (std::string found = find(*values, what); !found.empty()) return found;
  }
  return {};
}

}  // namespace fathom::ode
