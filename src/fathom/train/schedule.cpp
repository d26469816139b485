#include "fathom/train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fathom/support/error.hpp"

namespace fathom {

void check(const Schedule& schedule) {
  require(schedule.warm_up >= 0, "`warm_up` must not be negative, got ", schedule.warm_up);
  if (const auto* step = std::get_if<StepDecay>(&schedule.decay)) {
    require(step->every >= 1, "a step decay needs `every` of at least 1 iteration, got ", step->every);
    require(step->factor > 0 && step->factor <= 1, "the factor of a step decay must be in (0, 1], got ",
            step->factor);
  }
  if (const auto* cosine = std::get_if<CosineDecay>(&schedule.decay)) {
    require(cosine->floor >= 0 && cosine->floor <= 1, "the floor of a cosine decay must be in [0, 1], got ",
            cosine->floor);
  }
}

double rate_factor(const Schedule& schedule, std::int64_t iteration, std::int64_t iterations) {
  if (iteration < schedule.warm_up) return double(iteration + 1) / double(schedule.warm_up);
  const std::int64_t since = iteration - schedule.warm_up;
  if (const auto* step = std::get_if<StepDecay>(&schedule.decay)) {
    return std::pow(step->factor, double(since / step->every));
  }
  if (const auto* cosine = std::get_if<CosineDecay>(&schedule.decay)) {
    const auto span = double(std::max<std::int64_t>(1, iterations - schedule.warm_up));
    const double wave = (1 + std::cos(std::numbers::pi * std::min(1.0, double(since) / span))) / 2;
    return cosine->floor + (1 - cosine->floor) * wave;
  }
  return 1;
}

}  // namespace fathom
