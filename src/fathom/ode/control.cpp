#include "fathom/ode/control.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fathom/ode/grid.hpp"

namespace fathom::ode {

namespace {

// A trial that met NaN tells nothing of the right size: shrink well.
constexpr double non_finite_factor = 0.1;
// Fewer halvings waste trials behind a true wall; more make the solve creep where there is none.
constexpr int halvings_after_nan = 4;
constexpr double resolution_ulps = 16;  // below this many units in the last place, depths of stages collapse
constexpr double stretch_to_stop =
    1.01;  // rather a step 1 % longer than a sliver after it (dopri5.f does the same)

void check(const AdaptiveSteps& options, const ButcherTableau& method) {
  require(method.adaptive(), "method `", method.name,
          "` has no error estimate and cannot adapt its steps; choose ",
          "FixedSteps, or one of heun2, ralston2, bosh3, fehlberg45, cash_karp54, dopri5, tsit5, dop853");
  const auto tolerance = [](double value, const char* what) {
    require(value >= 0 && std::isfinite(value), "`", what, "` must be finite and not negative, got ", value);
  };
  tolerance(options.relative_tolerance, "relative_tolerance");
  tolerance(options.absolute_tolerance, "absolute_tolerance");
  require(options.relative_tolerance + options.absolute_tolerance > 0,
          "one of `relative_tolerance` and `absolute_tolerance` must be positive, got 0 for both");
  require(options.safety > 0 && options.safety <= 1, "`safety` must be in (0, 1], got ", options.safety);
  require(options.smallest_factor > 0 && options.smallest_factor < 1,
          "`smallest_factor` must be in (0, 1), got ", options.smallest_factor);
  require(options.largest_factor > 1, "`largest_factor` must be above 1, got ", options.largest_factor);
  require(options.smallest_step >= 0, "`smallest_step` must not be negative, got ", options.smallest_step);
  require(!options.largest_step || *options.largest_step > options.smallest_step,
          "`largest_step` must be above `smallest_step`, got ", options.largest_step.value_or(0));
  require(!options.first_step || *options.first_step > 0, "`first_step` must be positive, got ",
          options.first_step.value_or(0), " (the direction follows from the depths)");
  require(options.step_limit > 0, "`step_limit` must be positive, got ", options.step_limit);
  const StepControl& control = options.control;
  require(control.integral > 0 && std::isfinite(control.integral + control.proportional + control.derivative),
          "`control` needs a positive `integral` and finite numbers, got integral ", control.integral,
          ", proportional ", control.proportional, ", derivative ", control.derivative);
}

/// Below this the state or its rate are no measure of time (HNW II.4); neither are norms that overflowed.
bool have_scale(const StartNorms& norms) {
  return norms.state >= 1e-5 && norms.rate >= 1e-5 && std::isfinite(norms.state / norms.rate);
}

}  // namespace

double combined_error(double fine, double coarse) {
  if (!std::isfinite(coarse)) return coarse;  // an estimate that overflowed must not pass as a small error
  if (coarse == 0 || fine == 0) return fine;
  return fine * (fine / std::hypot(fine, 0.1 * coarse));
}

FixedWalk::FixedWalk(const FixedSteps& steps, double first, double last,
                     const std::vector<double>& break_points)
    : grid_(fixed_grid(steps, first, last, breaks_between(break_points, first, last))) {}

Verdict FixedWalk::judge(const Step&, const TrialError& error) {
  if (!error.finite) return {.failure = FailureReason::non_finite};
  ++next_;
  return {.accepted = true};
}

AdaptiveWalk::AdaptiveWalk(const AdaptiveSteps& options, const ButcherTableau& method, double first,
                           double last, const std::vector<double>& break_points)
    : AdaptiveWalk(options, method) {
  begin(first, last, break_points);
}

AdaptiveWalk::AdaptiveWalk(const AdaptiveSteps& options, const ButcherTableau& method)
    : options_(options),
      order_(method.control_order()),
      error_order_(method.error_order()),
      error_constant_(method.error_constant()) {
  check(options, method);
}

void AdaptiveWalk::begin(double first, double last, const std::vector<double>& break_points) {
  first_ = depth_ = first;
  last_ = last;
  stops_.assign(break_points.begin(), break_points.end());
  keep_breaks_between(stops_, first, last);
  first_is_break_ = !stops_.empty() && stops_.front() == first;
  last_is_break_ = !stops_.empty() && stops_.back() == last;
  if (first_is_break_) stops_.erase(stops_.begin());
  if (!last_is_break_ || stops_.empty()) stops_.push_back(last);
  size_ = limited(
      options_.first_step.value_or(std::abs(last - first)));  // all the way until a first step is chosen
}

Step AdaptiveWalk::propose() const {
  const double stop = stops_[next_stop_];
  const double stretched =
      std::min(stretch_to_stop * size_, options_.largest_step.value_or(stretch_to_stop * size_));
  const bool reaches_stop = std::max(size_, stretched) >= std::abs(stop - depth_);
  const double end = reaches_stop ? stop : depth_ + direction() * size_;
  const bool is_last = end == last_;
  return {.start = depth_,
          .end = end,
          .starts_at_break =
              depth_ == first_ ? first_is_break_ : next_stop_ > 0 && depth_ == stops_[next_stop_ - 1],
          .ends_at_break = is_last ? last_is_break_ : end == stop,
          .start_moves = {depth_ == first_ ? 1.0 : 0.0, 0.0},
          .end_moves = {0.0, is_last ? 1.0 : 0.0}};
}

Verdict AdaptiveWalk::judge(const Step& step, const TrialError& error) {
  const double size = std::abs(step.size());
  const double smallest = std::max(options_.smallest_step, resolution());
  const bool accepted = error.finite && error.ratio <= 1;
  if (accepted) {
    const bool was_cut = step.end == stops_[next_stop_] && size < size_;
    const double factor = growth(error.ratio);
    const double grown = size * (rejected_before_ ? std::min(1.0, factor) : factor);
    // A step cut short by a stop says little of the size that the solution allows: keep what was believed before it.
    size_ = limited(was_cut ? std::max(size_, grown) : grown);
    remember(error.ratio);
    if (!was_cut) extend_run(step);
    depth_ = step.end;
    stay_before_wall();
    if (depth_ == stops_[next_stop_]) ++next_stop_;
  } else {
    if (!error.finite) {
      wall_ = {.depth = step.end, .halvings = halvings_after_nan};
      run_ = {};  // steps that shrink towards NaN converge for another reason
    }
    // The size asked for counts as well: added to a depth and subtracted again, the smallest one may come out larger.
    if (std::min(size, size_) <= smallest) {
      return {.failure = error.finite ? FailureReason::step_too_small : FailureReason::non_finite};
    }
    const double factor = error.finite ? std::min(growth(error.ratio), 1.0) : non_finite_factor;
    // Not below the smallest step at once: it is tried before the solve gives up.
    size_ = std::max(size * factor, smallest);
  }
  rejected_before_ = !accepted;
  if (++attempts_ >= options_.step_limit && !finished()) return {accepted, FailureReason::too_many_steps};
  return {.accepted = accepted};
}

double AdaptiveWalk::growth(double error) const {
  if (error == 0) return options_.largest_factor;
  const StepControl& control = options_.control;
  const double q = order_;
  const double now = std::pow(error, -(control.integral + control.proportional + control.derivative) / q);
  const double before = std::pow(errors_[0], (control.proportional + 2 * control.derivative) / q);
  const double earlier = std::pow(errors_[1], -control.derivative / q);
  // After a rejection the error at hand alone counts, so that the next trial is surely smaller.
  const double factor = error > 1 ? std::pow(error, -1 / q) : now * before * earlier;
  return std::clamp(options_.safety * factor, options_.smallest_factor, options_.largest_factor);
}

void AdaptiveWalk::remember(double error) {
  constexpr double floor =
      1e-4;  // an error of zero must not make the next step explode; HNW IV.2 has the same guard
  errors_ = {std::max(error, floor), errors_[0]};
}

void AdaptiveWalk::stay_before_wall() {
  if (wall_.halvings == 0) return;
  const double left = direction() * (wall_.depth - depth_);
  if (left > 0) {
    size_ = limited(std::min(size_, left / 2));
    --wall_.halvings;
  } else {
    wall_ = {};
  }
}

void AdaptiveWalk::extend_run(const Step& step) {
  constexpr double still_no_longer = 2;  // control may swing a little on the way down
  const double size = std::abs(step.size());
  if (run_.length == 0 || step.starts_at_break || size > still_no_longer * run_.shortest) {
    run_ = {.first_depth = step.start, .first_size = size, .shortest = size, .length = 1};
  } else {
    run_.shortest = std::min(run_.shortest, size);
    ++run_.length;
  }
}

std::optional<Convergence> AdaptiveWalk::converges() {
  // Near a pole a step is a fixed part of the distance to it, so that all steps to come add up to
  // distance so far / (shrunk - 1). Methods of low order take hundreds of steps for a tenth of the distance.
  constexpr double clearly = 10, deeply = 1000;
  constexpr int long_run = 150;
  if (finished() || run_.length == 0) return {};
  const double shrunk = run_.first_size / run_.shortest;
  if (shrunk < (run_.length < long_run ? deeply : clearly)) return {};
  const double reach = std::abs(depth_ - run_.first_depth) / (shrunk - 1);
  const double room = std::abs(stops_[next_stop_] - depth_);
  run_ = {};
  if (reach >= room) return {};
  return Convergence{.from = depth_,
                     .to = depth_ + direction() * std::min(2 * reach, room),
                     .step = size_,
                     .smallest = std::max(options_.smallest_step, resolution())};
}

double AdaptiveWalk::limited(double size) const {
  const double largest = options_.largest_step.value_or(std::numeric_limits<double>::infinity());
  return std::clamp(size, std::max(options_.smallest_step, resolution()), std::max(largest, resolution()));
}

double AdaptiveWalk::resolution() const {
  const double scale = std::max({std::abs(depth_), std::abs(last_ - first_)});
  return resolution_ulps * std::numeric_limits<double>::epsilon() * scale;
}

double AdaptiveWalk::probe_size(const StartNorms& norms) const {
  const double size = have_scale(norms) ? 0.01 * norms.state / norms.rate : 1e-6;
  return std::min(std::max(size, resolution()), std::abs(last_ - first_));
}

void AdaptiveWalk::choose_first_step(const StartNorms& norms, double probe, double curvature) {
  constexpr double aimed_error = 0.1;
  const double longest = 100 * probe;  // in which the state would change by its own size
  const double steepest = std::max(norms.rate, std::isfinite(curvature) ? curvature : 0.0);
  // A rate that changes by more than itself along the probe is no measure of what comes.
  const bool is_smooth = have_scale(norms) && probe * curvature <= norms.rate;
  double size = std::max(1e-6, 1e-3 * probe);  // where nothing moves
  if (is_smooth && error_constant_ > 1e-12) {
    // A rate may happen not to change just here: the time in which the state changes counts as well.
    const double frequency = std::max(curvature / norms.rate, 1 / longest);
    // The method would estimate error_constant (h frequency)^q rate / frequency.
    size = std::pow(aimed_error * frequency / (error_constant_ * norms.rate), 1.0 / error_order_) / frequency;
  } else if (steepest > 1e-15) {
    size = std::pow(0.01 / steepest, 1.0 / order_);
  }
  size_ = limited(std::min({longest, size, std::abs(last_ - first_)}));
}

}  // namespace fathom::ode
