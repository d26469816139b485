/// Shared ODE problems with known solutions, and the shortest way to solve one with the plain engine.
///
///   const Outcome outcome = solve(pendulum(), {.method = rk4(), .steps = FixedSteps{.count = 50}}, {0.0, 2.0});
///   outcome.saved.back();
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "fathom/ode/methods.hpp"
#include "fathom/ode/solve.hpp"

namespace fathom::ode {

/// How GoogleTest names a method in a failure.
inline void PrintTo(const ButcherTableau& method, std::ostream* out) { *out << method.name; }

}  // namespace fathom::ode

namespace fathom::testing {

using Rate = ode::PlainEngine::Rate;
using State = ode::PlainEngine::State;

struct Problem {
  std::string name = {};
  Rate rate = {};
  State start = {};  ///< at depth 0
  std::function<State(double s)> exact = {};
};

inline void PrintTo(const Problem& problem, std::ostream* out) { *out << problem.name; }

struct Outcome {
  std::vector<State> saved = {};
  ode::SolveReport report = {};
};

inline Outcome solve(const Rate& rate, const State& start, const ode::Plan& plan,
                     const std::vector<double>& depths) {
  ode::PlainSolution solution = ode::solve(rate, start, depths, plan);
  return {.saved = std::move(solution.states), .report = solution.report};
}

/// From the problem's own state at the first depth, which need not be 0.
inline Outcome solve(const Problem& problem, const ode::Plan& plan, const std::vector<double>& depths) {
  return solve(problem.rate, depths.front() == 0 ? problem.start : problem.exact(depths.front()), plan,
               depths);
}

inline ode::AdaptiveSteps tolerance(double value) {
  return {.relative_tolerance = value, .absolute_tolerance = value};
}

/// max_n |a_n - b_n| / max(1, |b_n|)
inline double mixed_error(const State& computed, const State& exact) {
  double worst = 0;
  for (std::size_t n = 0; n < exact.size(); ++n) {
    const double error = std::abs(computed[n] - exact[n]) / std::max(1.0, std::abs(exact[n]));
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
  }
  return worst;
}

/// The depths 0, last / intervals, ..., last.
inline std::vector<double> evenly(double first, double last, int intervals) {
  std::vector<double> depths;
  for (int n = 0; n < intervals; ++n) depths.push_back(first + n * (last - first) / intervals);
  depths.push_back(last);
  return depths;
}

/// A reference from dop853 far below every tolerance that a test asks for.
inline State reference(const Rate& rate, const State& start, double first, double last) {
  if (first == last) return start;
  const ode::AdaptiveSteps finest{.relative_tolerance = 2e-15, .absolute_tolerance = 2e-15};
  return solve(rate, start, {.method = ode::dop853(), .steps = finest}, {first, last}).saved.back();
}

/// y' = y cos s, y = exp(sin s): the field depends on depth.
inline Problem modulated_growth() {
  return {.name = "ModulatedGrowth",
          .rate = [](double s, const State& y, State& rate) { rate[0] = y[0] * std::cos(s); },
          .start = {1.0},
          .exact = [](double s) { return State{std::exp(std::sin(s))}; }};
}

/// y' = -y^3 / 2, y = 1 / sqrt(1 + s): nonlinear and autonomous.
inline Problem cubic_decay() {
  return {.name = "CubicDecay",
          .rate = [](double, const State& y, State& rate) { rate[0] = -0.5 * y[0] * y[0] * y[0]; },
          .start = {1.0},
          .exact = [](double s) { return State{1 / std::sqrt(1 + s)}; }};
}

/// angle'' = -sin(angle), angle(0) = 1.2, released with a push.
inline Problem pendulum() {
  Problem problem{.name = "Pendulum",
                  .rate =
                      [](double, const State& y, State& rate) {
                        rate[0] = y[1];
                        rate[1] = -std::sin(y[0]);
                      },
                  .start = {1.2, 0.3}};
  problem.exact = [problem](double s) { return reference(problem.rate, problem.start, 0, s); };
  return problem;
}

/// y' = -y, y = exp(-s).
inline Problem decay() {
  return {.name = "Decay",
          .rate = [](double, const State& y, State& rate) { rate[0] = -y[0]; },
          .start = {1.0},
          .exact = [](double s) { return State{std::exp(-s)}; }};
}

/// The same problem run in -s: y'(t) = -f(-t, y) with t = -s.
inline Rate mirrored(const Rate& rate) {
  return [rate](double s, const State& y, State& out) {
    rate(-s, y, out);
    for (double& value : out) value = -value;
  };
}

/// Slope of log(error) over log(step) by least squares.
inline double fitted_slope(const std::vector<double>& steps, const std::vector<double>& errors) {
  double x_mean = 0, y_mean = 0, products = 0, squares = 0;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    x_mean += std::log(steps[n]) / double(steps.size());
    y_mean += std::log(errors[n]) / double(steps.size());
  }
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const double x = std::log(steps[n]) - x_mean;
    products += x * (std::log(errors[n]) - y_mean);
    squares += x * x;
  }
  return products / squares;
}

/// The message of the library's error that `work` throws; empty when it throws none.
template <class Work> std::string message_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return {};
}

}  // namespace fathom::testing

namespace fathom::ode {

// Beside the library's own, which would hide them from the tests in this namespace.
using testing::solve;

}  // namespace fathom::ode
