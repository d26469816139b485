/// The loop's engine for a state that is a plain std::vector<double>: no tensors, no samples, one equation system.
///
///   solve(rate, {1.0}, {0.0, 1.0}, {.method = dopri5()});   // ode/solve.hpp makes one, and runs it
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fathom/ode/control.hpp"
#include "fathom/ode/methods.hpp"

namespace fathom::ode {

class PlainEngine {
 public:
  using State = std::vector<double>;
  using Rate = std::function<void(double s, const State& z, State& rate)>;

  PlainEngine(Rate rate, State start, ButcherTableau method, const AdaptiveSteps& tolerance = {});

  StartNorms start_norms(const Step& step);
  double curvature(const Step& probe);
  TrialError attempt(const Step& step);
  void accept();
  void save_state(std::size_t place);
  void save_inside(std::size_t place, double fraction);
  void forget_rate() { has_rate_ = rate_is_next_ = false; }
  std::int64_t evaluations() const { return evaluations_; }
  std::string offender() const;
  double resolution() const { return std::numeric_limits<double>::epsilon(); }
  double state_norm() const { return scaled_norm(state_, state_); }
  double rate_norm(const std::vector<double>& weights);
  /// Has it the method and the tolerance of these options? The loop asks, since either alone would give another solve.
  bool follows(const Method& method, const AdaptiveSteps* steps) const {
    const auto differ = [](double a, double b) { return a < b || b < a; };  // NaN is refused by the walk
    return method_.name == method->name && method_.b == method->b &&
           !(steps &&
             (differ(relative_, steps->relative_tolerance) || differ(absolute_, steps->absolute_tolerance)));
  }
  PlainEngine scout(const Method& method, const AdaptiveSteps& steps) const {
    return {rate_, state_, method, steps};
  }

  const State& state() const { return state_; }
  const std::vector<State>& saved() const { return saved_; }

 private:
  void evaluate(double depth, const State& z, State& rate);
  void evaluate_stage(std::size_t stage, const Step& step, const State& from);
  void first_rate(const Step& step);
  void finish_dense_stages();
  double scaled_norm(const State& values, const State& other) const;

  Rate rate_;
  ButcherTableau method_;
  double relative_;
  double absolute_;
  State state_;
  State before_;               // state at the start of the step accepted last
  State candidate_;            // state at the end of the trial
  State argument_;             // of the stage at hand
  std::vector<State> stages_;  // (stages + dense stages, size)
  Step step_ = {};
  bool has_rate_ = false;      // stages_[0] is the rate at state_
  bool has_dense_ = false;     // the dense stages of the step accepted last are there
  bool rate_is_next_ = false;  // after accept: the end-rate stage holds the rate at state_
  std::int64_t evaluations_ = 0;
  std::vector<State> saved_;
};

}  // namespace fathom::ode
