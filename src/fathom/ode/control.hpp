/// The two ways to walk from the first depth to the last: along a fixed grid, or with steps that follow the error.
/// Both propose a step, judge its error and move on; the loop in integrate.hpp knows no more of them than that.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "fathom/ode/failure.hpp"
#include "fathom/ode/step.hpp"
#include "fathom/ode/steps.hpp"
#include "fathom/ode/tableau.hpp"

namespace fathom::ode {

/// What an engine found in a trial step: the scaled norm of its error (at most 1 is within tolerance).
struct TrialError {
  double ratio = 0;
  bool finite = true;
};

/// The error of a method with two estimates, fine^2 / sqrt(fine^2 + 0.01 coarse^2) (HNW II.10); `fine` with one.
double combined_error(double fine, double coarse);

/// Scaled norms at the start of a solve, for the choice of the first step.
struct StartNorms {
  double state = 0;
  double rate = 0;
};

/// A stretch in which steps that shrink as they did would come to an end.
struct Convergence {
  double from = 0;
  double to = 0;
  double step = 0;      ///< size of the next one
  double smallest = 0;  ///< that depths can resolve
};

struct Verdict {
  bool accepted = false;
  std::optional<FailureReason> failure = {};
};

class FixedWalk {
 public:
  FixedWalk(const FixedSteps& steps, double first, double last, const std::vector<double>& break_points);
  void begin_again() { next_ = 0; }

  bool finished() const { return next_ == grid_.size(); }
  Step propose() const { return grid_[next_]; }
  Verdict judge(const Step& step, const TrialError& error);

 private:
  std::vector<Step> grid_;
  std::size_t next_ = 0;
};

class AdaptiveWalk {
 public:
  AdaptiveWalk(const AdaptiveSteps& options, const ButcherTableau& method, double first, double last,
               const std::vector<double>& break_points);
  /// Made ready for begin(): a copy of it that has begun before begins again in the same memory.
  AdaptiveWalk(const AdaptiveSteps& options, const ButcherTableau& method);
  void begin(double first, double last, const std::vector<double>& break_points);

  bool finished() const { return depth_ == last_; }
  double direction() const { return last_ < first_ ? -1.0 : 1.0; }
  Step propose() const;
  Verdict judge(const Step& step, const TrialError& error);

  /// HNW II.4: from the norms at the start, an Euler step to probe the second derivative with ...
  double probe_size(const StartNorms& norms) const;
  /// ... and from the scaled change of rate over it, divided by its size, the first step: the one whose error this method should
  /// estimate as a tenth of the tolerance. HNW's own formula knows neither the method's error constant nor the time scale of the
  /// solution; on DETEST its first step with dopri5 has a millionth of the tolerance, and a smooth field needs two or three steps
  /// where one would do. It serves where these are not to be had: at a zero state, or at rest with something about to move.
  void choose_first_step(const StartNorms& norms, double probe, double curvature);
  bool needs_first_step() const { return !options_.first_step.has_value(); }

  /// Have steps become shorter for so long that their sum looks finite and ends before the next stop? Asked again, answers
  /// for what came since.
  std::optional<Convergence> converges();

 private:
  /// Accepted steps of which none was much longer than one before it. Those that a stop cut short do not count.
  struct Run {
    double first_depth = 0;
    double first_size = 0;
    double shortest = 0;
    int length = 0;
  };
  void extend_run(const Step& step);
  /// The end of the last trial that met NaN, and for how many steps to come it limits the size.
  struct Wall {
    double depth = 0;
    int halvings = 0;
  };
  /// After a trial that met NaN, the next few steps go at most half of the way to its end. Then the usual size is tried again: most
  /// often the trial was merely too long, and there is no wall.
  void stay_before_wall();
  double growth(double error) const;
  void remember(double error);
  double limited(double size) const;
  double resolution() const;

  AdaptiveSteps options_;
  int order_;  // in which the error is controlled
  int error_order_;
  double error_constant_;
  double first_ = 0;
  double last_ = 0;
  double depth_ = 0;
  double size_ = 0;            // magnitude of the next step, before it is cut at a stop
  std::vector<double> stops_;  // break points ahead, then the last depth
  std::size_t next_stop_ = 0;
  bool first_is_break_ = false;
  bool last_is_break_ = false;
  bool rejected_before_ = false;
  std::array<double, 2> errors_ = {1, 1};  // of the last two accepted steps
  std::int64_t attempts_ = 0;
  Run run_ = {};
  Wall wall_ = {};
};

}  // namespace fathom::ode
