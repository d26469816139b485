/// The loop's engine for any torch field: tensor arithmetic without graph, on the device and in the type of the state.
#pragma once

#include <string>
#include <vector>

#include "fathom/ode/control.hpp"
#include "fathom/tensor/flat_field.hpp"
#include "fathom/tensor/solver.hpp"

namespace fathom {

/// A saved depth inside a step or at its end: `fraction` of it, kept in row `place` of the answer.
struct SavedPoint {
  std::size_t place = 0;
  double fraction = 1;
};

/// One accepted step: enough to repeat it, to interpolate in it and to pull a gradient back through it.
struct StepRecord {
  ode::Step step = {};
  Tensor start = {};   ///< (size), undefined where it is recomputed from an earlier record
  Tensor stages = {};  ///< (stages + dense stages, size), only when the interpolant is kept
  std::vector<SavedPoint> saved = {};
};

/// What the engine keeps of each accepted step besides its place on the grid.
struct Keep {
  std::int64_t every = 0;  ///< the start state of every n-th step; 0: none
  std::int64_t budget =
      0;                ///< bytes of start states; when exceeded, every second one is dropped; 0: no limit
  bool stages = false;  ///< all stages, dense ones included
};

/// The method's interpolant at a fraction of a step with the given start state and stages.
Tensor interpolate(const ode::ButcherTableau& method, const ode::Step& step, const Tensor& start,
                   const Tensor& stages, double fraction);

class TensorEngine {
 public:
  TensorEngine(const FlatField& field, const Tensor& start, const Solver& solver, const Keep& keep = {});

  ode::StartNorms start_norms(const ode::Step& step);
  double curvature(const ode::Step& probe);
  ode::TrialError attempt(const ode::Step& step);
  void accept();
  void save_state(std::size_t place);
  void save_inside(std::size_t place, double fraction);
  void forget_rate() { rate_known_at_ = RateKnown::nowhere; }
  std::int64_t evaluations() const { return evaluations_; }
  std::string offender() const;
  double resolution() const;
  double state_norm() const { return scaled_norm(state_, scale(state_)); }
  double rate_norm(const std::vector<double>& weights);
  TensorEngine scout(const ode::Method& method, const AdaptiveSteps& steps) const {
    return {field_, state_, Solver{.method = method, .steps = steps}};
  }

  const Tensor& state() const { return state_; }
  /// (saved depths, size)
  Tensor saved() const { return at::stack(saved_); }
  std::vector<StepRecord>& records() { return records_; }

  /// From here on, as if the solve had come to `state` by itself: to repeat recorded steps.
  void restart(const Tensor& state);

 private:
  enum class RateKnown { nowhere, at_first_stage, at_end_rate_stage };

  Tensor evaluate(double depth, const Tensor& y);
  void evaluate_stage(std::size_t stage, const Tensor& from);
  void first_rate(const ode::Step& step);
  void finish_dense_stages();
  Tensor combination(std::int64_t row, std::int64_t count) const;
  double scaled_norm(const Tensor& values, const Tensor& scale) const;
  Tensor scale(const Tensor& other) const;
  void keep_start();
  void thin_out_starts();
  /// The end of a step may be finite where its interpolant, which reads more rates, is not.
  void refuse_non_finite(const Tensor& values) const;

  const FlatField& field_;
  ode::ButcherTableau method_;
  AdaptiveSteps tolerance_;
  Keep keep_;
  bool all_in_norm_;
  std::size_t end_rate_stage_;

  Tensor
      coefficients_;  // (stages + dense stages + 3, stages + dense stages): rows of a, then b, error, coarse error
  Tensor scaled_;     // coefficients_ * h of the step at hand
  Tensor stages_;     // (stages + dense stages, size)
  Tensor state_;      // (size)
  Tensor before_;     // (size), at the start of the step accepted last
  Tensor candidate_;  // (size), at the end of the trial
  ode::Step step_ = {};
  RateKnown rate_known_at_ = RateKnown::nowhere;
  bool has_dense_stages_ = false;
  std::int64_t evaluations_ = 0;
  std::int64_t stride_;  // of kept start states
  std::int64_t kept_starts_ = 0;
  std::vector<Tensor> saved_;
  std::vector<StepRecord> records_;
};

}  // namespace fathom
