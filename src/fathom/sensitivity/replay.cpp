#include "fathom/sensitivity/replay.hpp"

#include <algorithm>
#include <deque>

namespace fathom {

namespace {

/// Stages computed on demand: a step whose end alone is needed skips those that only its interpolant reads.
class GraphStages {
 public:
  GraphStages(const ForwardPass& pass, const ode::Step& step, Tensor start, Tensor from, Tensor to)
      : pass_(pass), step_(step), start_(std::move(start)), from_(std::move(from)), to_(std::move(to)) {
    if (moves()) size_ = to_ - from_;
  }

  /// start + h sum_i weights_i k_i
  Tensor combine(const std::vector<double>& weights) {
    Tensor sum = moves() ? Tensor{} : start_;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      const Tensor& k = stage(i);
      if (!moves()) {
        sum = at::add(sum, k, weights[i] * step_.size());
      } else {
        sum = sum.defined() ? at::add(sum, k, weights[i]) : k * weights[i];
      }
    }
    if (!moves()) return sum;
    return sum.defined() ? start_ + size_.to(start_.scalar_type()) * sum : start_;
  }

  /// The same with weights that are tensors: b_i(t) for a fraction t that moves.
  Tensor interpolate(const Tensor& fraction) {
    const auto& dense = pass_.solver.method->dense;
    Tensor sum;
    for (std::size_t i = 0; i < dense.size(); ++i) {
      if (std::all_of(dense[i].begin(), dense[i].end(), [](double weight) { return weight == 0; })) continue;
      Tensor weight = torch::zeros({}, torch::kFloat64);
      for (std::size_t n = dense[i].size(); n-- > 0;) weight = (weight + dense[i][n]) * fraction;
      const Tensor term = stage(i) * weight.to(start_.scalar_type());
      sum = sum.defined() ? sum + term : term;
    }
    return start_ + size_.to(start_.scalar_type()) * sum;
  }

  Tensor fraction(double depth, const Tensor& moving) const {
    // At the ends the quotient is exact, so that the interpolant meets the state there.
    return (anchored(depth, moving) - from_) / size_;
  }

  bool moves() const { return from_.defined(); }
  std::int64_t evaluations() const { return evaluations_; }

 private:
  const Tensor& stage(std::size_t i) {
    if (stages_.size() <= i) stages_.resize(i + 1);
    if (!stages_[i].defined()) {
      const Tensor argument = combine(pass_.solver.method->a[i]);
      ++evaluations_;
      stages_[i] = pass_.field.rate(stage_depth(pass_.solver.method->c[i]), argument);
    }
    return stages_[i];
  }

  Tensor stage_depth(double c) const {
    const double depth = step_.stage_depth(c);
    return moves() ? anchored(depth, (1 - c) * from_ + c * to_)
                   : torch::scalar_tensor(depth, torch::kFloat64);
  }

  const ForwardPass& pass_;
  const ode::Step& step_;
  Tensor start_;
  Tensor from_;  // depth of the start, undefined when depths do not move
  Tensor to_;
  Tensor size_;
  std::deque<Tensor> stages_;  // a deque: references stay valid while it grows
  std::int64_t evaluations_ = 0;
};

Tensor moving_bound(const ForwardPass& pass, double depth, const ode::Moves& moves, const Tensor& depths) {
  if (!depths.defined()) return {};
  Tensor moving = moves.with_first * depths[0];
  if (moves.with_last != 0) moving = moving + moves.with_last * depths[std::int64_t(pass.given_depths) - 1];
  return anchored(depth, moving);
}

}  // namespace

Tensor anchored(double at, const Tensor& moving) { return (moving - moving.detach()) + at; }

ReplayedStep replay(const ForwardPass& pass, const StepRecord& record, const Tensor& start,
                    const Tensor& depths) {
  const ode::Step& step = record.step;
  GraphStages stages(pass, step, start, moving_bound(pass, step.start, step.start_moves, depths),
                     moving_bound(pass, step.end, step.end_moves, depths));
  ReplayedStep result{.end = stages.combine(pass.solver.method->b)};
  for (const SavedPoint& point : record.saved) {
    const bool is_bound = point.place + 1 == pass.given_depths || point.place >= pass.bound_depths;
    const bool is_end = point.fraction == 1 && (!depths.defined() || is_bound);
    if (is_end) continue;
    result.places.push_back(point.place);
    result.saved.push_back(
        depths.defined()
            ? stages.interpolate(stages.fraction(pass.depths[point.place], depths[std::int64_t(point.place)]))
            : stages.combine(pass.solver.method->dense_weights(point.fraction)));
  }
  result.evaluations = stages.evaluations();
  return result;
}

}  // namespace fathom
