/// How the learning rate goes: a warm-up, then a decay, as a factor of the given rate.
///
///   Schedule{.warm_up = 100, .decay = CosineDecay{.floor = 0.01}}
///
/// The factor depends on the iteration alone, so a resumed run needs nothing but its number.
#pragma once

#include <cstdint>
#include <variant>

namespace fathom {

struct NoDecay {};

/// factor^floor(i / every)
struct StepDecay {
  std::int64_t every = 1000;
  double factor = 0.5;
};

/// floor + (1 - floor) (1 + cos(pi i / iterations)) / 2, where i counts from the end of the warm-up
struct CosineDecay {
  double floor = 0;
};

struct Schedule {
  std::int64_t warm_up = 0;  ///< iterations in which the factor rises in equal steps to 1
  std::variant<NoDecay, StepDecay, CosineDecay> decay = NoDecay{};
};

/// Throws InvalidArgument where a figure cannot be meant.
void check(const Schedule& schedule);

/// The factor of iteration 0, 1, ..., `iterations` - 1.
double rate_factor(const Schedule& schedule, std::int64_t iteration, std::int64_t iterations);

}  // namespace fathom
