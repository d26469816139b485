/// The exact gradient of a fused solve: the adjoint is pulled back through each accepted step, last to first. A tile walks
/// many steps without meeting the others; gradients of weights are summed for each thread and joined when it is done.
#pragma once

#include <vector>

#include "fathom/fused/engine.hpp"

namespace fathom::fused {

/// A finished forward solve. `depths` are those of the saved states; the first `given` rows of gradients of depths belong to
/// the caller's list, of which `bound` were reached.
template <class T> struct Pass {
  Problem<T>* problem = nullptr;
  ode::Method method = {};
  const std::vector<StepRecord<T>>* records = nullptr;
  ActivationLayout layout = {};
  const T* start = nullptr;  ///< (state size)
  std::vector<double> depths = {};
  std::size_t bound = 0;
  std::size_t given = 0;
  /// dL/d(state at the end), (rows) of every tile, times `end_scale`: in place of adjoints of saved states.
  const T* end_adjoint = nullptr;
  double end_scale = 1;
};

struct SweepWanted {
  bool weights = true;
  bool inputs = true;
  bool depths = false;
  bool start = true;
};

template <class T> struct SweepResult {
  std::vector<T> start;          ///< (state size), empty when not wanted
  std::vector<double> weights;   ///< (Weights::gradient_size)
  Buffer<T> inputs;              ///< (input rows) of every tile
  std::vector<double> depths;    ///< (given)
  std::int64_t evaluations = 0;  ///< that the adjoint was pulled back through
  std::int64_t recomputed = 0;   ///< those of them whose activations were not kept
};

/// `saved_adjoints`: dL/d(saved states), (depths, state size); null where only the end counts.
template <class T>
SweepResult<T> pull_back(const Pass<T>& pass, const T* saved_adjoints, const SweepWanted& wanted);

/// dL/d(a per-sample tensor), (batch, features), from the adjoints of the bank `inputs`.
template <class T>
void read_input(const Problem<T>& problem, const SampleInput& input, const Buffer<T>& adjoints, T* samples);

}  // namespace fathom::fused
