/// What the way back needs to know of one step, the same for all tiles.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fathom/fused/history.hpp"
#include "fathom/fused/weights.hpp"
#include "fathom/ode/tableau.hpp"

namespace fathom::fused {

/// Which stages a step's end (and its saved points) depend on.
inline std::vector<bool> needed_stages(const ode::ButcherTableau& method, bool with_inside) {
  std::vector<bool> needed(method.c.size(), false);
  for (std::size_t i = 0; i < method.b.size(); ++i) needed[i] = method.b[i] != 0;
  if (with_inside) {
    for (std::size_t i = 0; i < method.dense.size(); ++i) {
      for (double weight : method.dense[i]) needed[i] = needed[i] || weight != 0;
    }
  }
  for (std::size_t i = needed.size(); i-- > 0;) {
    for (std::size_t j = 0; needed[i] && j < method.a[i].size(); ++j)
      needed[j] = needed[j] || method.a[i][j] != 0;
  }
  return needed;
}

/// Which saved points are nothing but the end of their step. Where depths want a gradient, a point at the end of a step moves along the
/// interpolant like one inside of it, unless it is a bound of the solve.
struct EndRule {
  bool depths_move = false;
  std::size_t given = 0;
  std::size_t bound = 0;

  bool holds_for(const SavedPoint& point) const {
    const bool is_bound = point.place + 1 == given || point.place >= bound;
    return point.fraction == 1 && (!depths_move || is_bound);
  }
};

/// What all tiles need of one step.
template <class T> struct StepPlan {
  const StepRecord<T>* record = nullptr;
  const T* start = nullptr;                   // (rows) of every tile
  const std::vector<bool>* needed = nullptr;  // stages
  std::span<const SavedPoint> points = {};    // with an adjoint
  EndRule is_end = {};
  bool has_inside = false;              // is one of them more than the step's end?
  std::vector<AtDepth<T>> stages = {};  // one for each stage, or none where nothing varies
  const T* activations = nullptr;       // kept ones of this step, null: to be recomputed
  const T* first = nullptr;             // those that have its first stage, ...
  std::size_t first_place = 0;          // ... as this one
  const T* rates = nullptr;             // kept rates, where activations are not, ...
  ActivationLayout layout = {};         // ... as they lie there
  bool is_near = false;                 // all stages but the first are in the worker's registers

  bool needs(std::size_t stage) const { return (*needed)[stage]; }
  const T* kept(std::size_t stage) const { return stage == 0 ? first : activations; }
};

/// dL/d(start) and dL/d(end) of one step's depths.
struct StepMoves {
  double start = 0;
  double end = 0;

  void with_size(double by) { start -= by, end += by; }
  void with_stage(double c, double by) { start += (1 - c) * by, end += c * by; }
};

}  // namespace fathom::fused
