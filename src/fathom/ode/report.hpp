/// What a solve cost: counted, not estimated.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "fathom/ode/limits.hpp"

namespace fathom::ode {

/// A number that one thread may read while others add to it.
class Counter {
 public:
  Counter(std::int64_t count = 0) : count_(count) {}  // NOLINT: a count is a number
  Counter(const Counter& other) : Counter(std::int64_t(other)) {}
  Counter& operator=(const Counter& other) { return *this = std::int64_t(other); }
  Counter& operator=(std::int64_t count) {
    count_.store(count, std::memory_order_relaxed);
    return *this;
  }
  Counter& operator+=(std::int64_t more) {
    count_.fetch_add(more, std::memory_order_relaxed);
    return *this;
  }
  operator std::int64_t() const { return count_.load(std::memory_order_relaxed); }  // NOLINT

 private:
  std::atomic<std::int64_t> count_;
};

struct SolveReport {
  std::int64_t evaluations = 0;  ///< of the field, forwards
  /// Of the field and its vector-Jacobian product, for gradients. Grows after the solve, in whichever thread takes them.
  Counter backward_evaluations = 0;
  std::int64_t scouting = 0;  ///< of the evaluations forwards, those that looked ahead for a blow-up
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  double smallest_step = 0;  ///< magnitudes, over accepted steps
  double largest_step = 0;
  double last_step = 0;
  double seconds = 0;          ///< forwards; of a loss in one piece, with the way back through the last step
  double reached = 0;          ///< depth of the last state
  bool stopped = false;        ///< by the observer, before the last depth
  Limits limits = {};          ///< that it met: stability, or the resolution of numbers
  std::string engine = {};     ///< that did the arithmetic: "fused" or "tensor"
  std::string not_fused = {};  ///< why it was not the fused one, for example "layer 2 (Conv2d) has no kernel"

  /// "26 evaluations, 4 steps accepted, 0 rejected, 0.8 ms"; `limits.advice()` says more of what it names.
  std::string brief() const;
};

/// What several solves cost together, with the smallest and the largest step of all and the first limit by stability.
SolveReport sum_of(const std::vector<SolveReport>& reports);

/// Of solves side by side, one or more: means, rounded up; extremes and times of all; a limit that one of them met.
SolveReport mean_of(const std::vector<SolveReport>& reports);

}  // namespace fathom::ode
