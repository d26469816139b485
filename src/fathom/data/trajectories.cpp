#include "fathom/data/trajectories.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "fathom/ode/methods.hpp"
#include "fathom/ode/solve.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

using torch::Tensor;
using State = ode::PlainEngine::State;
using Rate = ode::PlainEngine::Rate;

void check(const Observed& observed) {
  require(observed.series >= 1, "the number of series must be positive, got ", observed.series);
  require(observed.points >= 2, "a series needs at least 2 points, got ", observed.points);
  require(observed.duration > 0 && std::isfinite(observed.duration),
          "the duration must be positive and finite, got ", observed.duration);
  require(observed.noise >= 0 && std::isfinite(observed.noise),
          "the noise must be finite and not negative, got ", observed.noise);
}

/// (series, points): from 0 to the duration.
Tensor observation_times(const Observed& observed, const at::Generator& generator) {
  const std::int64_t gaps = observed.points - 1;
  Tensor lengths = torch::ones({observed.series, gaps}, torch::kFloat64);
  // Exponential gaps scaled to a common sum are the gaps between sorted uniform times. The clamp keeps times apart.
  if (observed.times == ObservationTimes::irregular)
    lengths = lengths.exponential_(1, generator).clamp_min(1e-6);
  const Tensor ends = lengths.cumsum(1);
  const Tensor later = observed.duration * ends / ends.slice(1, gaps - 1);
  return torch::cat({torch::zeros({observed.series, 1}, torch::kFloat64), later}, 1);
}

/// (points, components)
Tensor solved(const Rate& rate, const Tensor& start, const Tensor& times) {
  constexpr double tolerance = 1e-10;
  const ode::AdaptiveSteps steps{.relative_tolerance = tolerance, .absolute_tolerance = tolerance};
  const State first(start.data_ptr<double>(), start.data_ptr<double>() + start.numel());
  const std::vector<double> depths(times.data_ptr<double>(), times.data_ptr<double>() + times.numel());
  const ode::PlainSolution solution =
      ode::solve(rate, first, depths, {.method = ode::dop853(), .steps = steps});
  const Tensor states = torch::empty({times.size(0), start.size(0)}, torch::kFloat64);
  double* next = states.data_ptr<double>();
  for (const State& state : solution.states) next = std::copy(state.begin(), state.end(), next);
  return states;
}

using Starts = std::function<Tensor(const at::Generator&)>;  // gives (series, components), float64

Trajectories observe(const Observed& observed, std::vector<std::string> names, const Rate& rate,
                     const Starts& starts) {
  check(observed);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(observed.seed);
  const Tensor first = starts(generator).contiguous();
  const Tensor times = observation_times(observed, generator);
  std::vector<Tensor> states;
  for (std::int64_t i = 0; i < observed.series; ++i) states.push_back(solved(rate, first[i], times[i]));
  const Tensor exact = torch::stack(states);
  const Tensor noise = torch::randn(exact.sizes(), generator, torch::kFloat64);
  return {times, exact + observed.noise * noise, std::move(names)};
}

/// Uniform between two corners of a box, (count, components).
Tensor uniform(std::int64_t count, const State& low, const State& high, const at::Generator& generator) {
  const Tensor from = torch::tensor(low, torch::kFloat64), to = torch::tensor(high, torch::kFloat64);
  return from + (to - from) * torch::rand({count, std::int64_t(low.size())}, generator, torch::kFloat64);
}

void check_finite(const char* name, double value) {
  require(std::isfinite(value), "the ", name, " must be finite, got ", value);
}

}  // namespace

Trajectories sine_waves(const SineOptions& options) {
  check_finite("frequency", options.frequency);
  const double frequency = options.frequency;
  const Rate rate = [=](double, const State& z, State& dz) {
    dz[0] = z[1];
    dz[1] = -frequency * frequency * z[0];
  };
  return observe(options.observed, {"x", "v"}, rate, [&](const at::Generator& generator) {
    const Tensor drawn = uniform(options.observed.series, {0.5, 0}, {1.5, 2 * std::numbers::pi}, generator);
    const Tensor amplitude = drawn.select(1, 0), phase = drawn.select(1, 1);
    return torch::stack({amplitude * phase.sin(), frequency * amplitude * phase.cos()}, 1);
  });
}

Trajectories van_der_pol(const VanDerPolOptions& options) {
  check_finite("stiffness", options.stiffness);
  const double stiffness = options.stiffness;
  const Rate rate = [=](double, const State& z, State& dz) {
    dz[0] = z[1];
    dz[1] = stiffness * (1 - z[0] * z[0]) * z[1] - z[0];
  };
  return observe(options.observed, {"x", "v"}, rate, [&](const at::Generator& generator) {
    return uniform(options.observed.series, {-3, -3}, {3, 3}, generator);
  });
}

Trajectories lorenz(const LorenzOptions& options) {
  for (double value : {options.prandtl, options.rayleigh, options.beta}) check_finite("coefficient", value);
  const double prandtl = options.prandtl, rayleigh = options.rayleigh, beta = options.beta;
  const Rate rate = [=](double, const State& z, State& dz) {
    dz[0] = prandtl * (z[1] - z[0]);
    dz[1] = z[0] * (rayleigh - z[2]) - z[1];
    dz[2] = z[0] * z[1] - beta * z[2];
  };
  return observe(options.observed, {"x", "y", "z"}, rate, [&](const at::Generator& generator) {
    return uniform(options.observed.series, {-15, -15, 10}, {15, 15, 40}, generator);
  });
}

Trajectories pendulum(const PendulumOptions& options) {
  require(options.length > 0, "the pendulum's length must be positive, got ", options.length);
  for (double value : {options.gravity, options.damping}) check_finite("coefficient", value);
  const double pull = options.gravity / options.length, damping = options.damping;
  const Rate rate = [=](double, const State& z, State& dz) {
    dz[0] = z[1];
    dz[1] = -pull * std::sin(z[0]) - damping * z[1];
  };
  return observe(options.observed, {"angle", "speed"}, rate, [&](const at::Generator& generator) {
    return uniform(options.observed.series, {-2.5, 0}, {2.5, 0}, generator);
  });
}

}  // namespace fathom
