/// How a solve chooses its steps: fixed, or adapted to an error tolerance.
///
///   Solver{.method = rk4(), .steps = FixedSteps{.count = 20}}
///   Solver{.steps = AdaptiveSteps{.relative_tolerance = 1e-8, .absolute_tolerance = 1e-8}}
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace fathom::ode {

/// Steps laid out before the solve; exactly one of the three is given. Break points of the field are added to them.
struct FixedSteps {
  std::int64_t count = 0;  ///< equal steps from the first depth to the last
  double size = 0;         ///< steps of this size, the last one shorter
  std::vector<double> grid =
      {};  ///< these depths between the first and the last, for example a recorded solve's
};

/// The steps between the depths that a solve went through (`Solution::grid`), to be taken again; no depth between is one step.
inline FixedSteps steps_along(std::vector<double> grid) {
  if (grid.empty()) return {.count = 1};
  return {.grid = std::move(grid)};
}

/// How the next step follows from the last errors e (scaled, 1 = at tolerance), q = order of the error estimate:
///   h' = h safety e^(-(I+P+D)/q) e_1^((P+2D)/q) e_2^(-D/q)          (Soederlind 2003)
struct StepControl {
  double integral = 1;
  double proportional = 0;
  double derivative = 0;
};

inline StepControl i_control() { return {}; }
/// For solves whose step size varies a lot: smoother steps, fewer rejections.
inline StepControl pi_control() { return {.integral = 0.3, .proportional = 0.4}; }
inline StepControl pid_control() { return {.integral = 0.3, .proportional = 0.3, .derivative = 0.1}; }

enum class ErrorNorm {
  batch,  ///< root mean square over every component of every sample, as in the literature: one step for all of them
  per_sample  ///< root mean square over each sample, and the worst sample decides
};

/// A trial step is accepted when the norm of  error / (absolute + relative max(|z0|, |z1|))  is at most 1.
struct AdaptiveSteps {
  double relative_tolerance = 1e-4;
  double absolute_tolerance = 1e-4;
  ErrorNorm norm = ErrorNorm::batch;
  StepControl control = {};
  double safety = 0.9;                    // HNW II.4
  double smallest_factor = 0.2;           ///< a step shrinks at most by this ...
  double largest_factor = 10;             ///< ... and grows at most by this
  std::optional<double> first_step = {};  ///< default: aims at an error of a tenth of the tolerance
  double smallest_step = 0;               ///< a smaller one is a failure; 0: the resolution of depth
  std::optional<double> largest_step = {};
  std::int64_t step_limit = 100000;  ///< attempts, accepted or not
};

using Steps = std::variant<AdaptiveSteps, FixedSteps>;

}  // namespace fathom::ode
