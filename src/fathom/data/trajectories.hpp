/// Observed trajectories of known dynamics: what a model of time series is asked to find again.
///
///   const Trajectories observed = van_der_pol({.observed = {.series = 8, .points = 60, .times = ObservationTimes::irregular}});
///   observed.states;   // (8, 60, 2)
///
/// Solved with dop853 at tolerance 1e-10; then Gaussian noise is added to the states. The same options give the same bits.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fathom {

enum class ObservationTimes {
  regular,   ///< equally spaced
  irregular  ///< as if drawn at random: gaps are exponential, different in each series
};

/// When and how well a system is seen. The first time is 0, the last one `duration`.
struct Observed {
  std::int64_t series = 16;
  std::int64_t points = 100;  ///< of each series
  double duration = 10;
  ObservationTimes times = ObservationTimes::regular;
  double noise = 0;  ///< deviation of the Gaussian noise on every component of every state
  std::uint64_t seed = 0;
};

struct Trajectories {
  torch::Tensor times;             ///< (series, points), float64
  torch::Tensor states;            ///< (series, points, components), float64
  std::vector<std::string> names;  ///< of the components
};

/// x = A sin(frequency t + p) and its rate v, that is  x' = v,  v' = -frequency^2 x. Amplitude A in [1/2, 3/2], phase p in [0, 2 pi].
struct SineOptions {
  Observed observed = {};
  double frequency = 1;
};
Trajectories sine_waves(const SineOptions& options = {});

/// x' = v,  v' = stiffness (1 - x^2) v - x: every start but 0 ends on one cycle. Starts in [-3, 3]^2.
struct VanDerPolOptions {
  Observed observed = {};
  double stiffness = 1;
};
Trajectories van_der_pol(const VanDerPolOptions& options = {});

/// x' = prandtl (y - x),  y' = x (rayleigh - z) - y,  z' = x y - beta z. Starts in [-15, 15]^2 x [10, 40].
struct LorenzOptions {
  Observed observed = {};
  double prandtl = 10;
  double rayleigh = 28;
  double beta = 8.0 / 3.0;
};
Trajectories lorenz(const LorenzOptions& options = {});

/// angle' = speed,  speed' = -gravity / length sin(angle) - damping speed. Starts at rest, angle in [-2.5, 2.5].
struct PendulumOptions {
  Observed observed = {};
  double gravity = 9.81;
  double length = 1;
  double damping = 0;
};
Trajectories pendulum(const PendulumOptions& options = {});

}  // namespace fathom
