/// One tile back through one step, in the middle of a sweep:
///   g_i = h (b_i a + sum_{j>i} a_ji l_j),   l_i = (df/dz)^T g_i,   dL/dtheta += (df/dtheta)^T g_i,   a <- a + sum_i l_i
/// with a = dL/d(end of the step). A point saved at the fraction t of the step with dL/d(point) = p adds h b_i(t) p to g_i, and p to a.
///
///   StepPullback<float> step(problem, method, layout, saved_adjoints);
///   step.pull(plan, tile, scratch, {.adjoint = a, .inputs = inputs, .gradients = views});
#pragma once

#include <array>
#include <span>
#include <vector>

#include "fathom/fused/problem.hpp"
#include "fathom/fused/step_plan.hpp"

namespace fathom::fused {

/// Of one thread.
template <class T> struct StepScratch {
  Buffer<T> registers;      ///< (stages, registers and passing rows) of a tile
  Buffer<T> adjoints;       ///< (registers and passing rows)
  Buffer<T> rates;          ///< (stages, rows): k_i
  Buffer<T> pulled;         ///< (stages, rows): l_i
  Buffer<T> seed;           ///< (rows): g_i
  Buffer<T> points;         ///< (rows): dL/d(a saved state)
  Buffer<T> depth_adjoint;  ///< (samples): df/ds^T g_i, where depths want a gradient

  std::size_t bytes() const;  ///< that it holds
};

/// Where the results of a tile go.
template <class T> struct StepTargets {
  T* adjoint = nullptr;                          ///< (rows): a, before and after
  T* inputs = nullptr;                           ///< (input rows), added to; null: not wanted
  const MatrixGradient<T>* gradients = nullptr;  ///< of the first stage, added to; null: not wanted
  std::size_t next_gradients = 0;                ///< from one stage's to the next one's; 0: the same for all
  StepMoves* moves = nullptr;                    ///< of the step's depths, added to; null: not wanted
  double* depths = nullptr;                      ///< dL/d(saved depth), likewise
};

template <class T> class StepPullback {
 public:
  /// `layout`: of kept activations.
  StepPullback(Problem<T>& problem, const ode::ButcherTableau& method, const ActivationLayout& layout);
  /// dL/d(saved states), in the order that `as` says; may be null.
  void read_adjoints(const T* saved_adjoints, SavedAs as) { saved_adjoints_ = saved_adjoints, as_ = as; }
  StepScratch<T> scratch() const;

  void pull(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch,
            const StepTargets<T>& targets) const;

  /// Where the registers of stage i of a tile are computed.
  T* near_registers(StepScratch<T>& scratch, std::int64_t tile, std::size_t i) const;
  T* passing_behind(T* registers, std::int64_t tile) const;
  /// Adds dL/d(a saved state) to the rows of a tile, and leaves it in scratch.points.
  void add_point(std::int64_t tile, std::size_t place, StepScratch<T>& scratch, T* to) const;
  /// sum_i weights_i <k_i, adjoint>, of the rates in the scratch
  double along(std::int64_t tile, const StepScratch<T>& scratch, std::span<const double> weights,
               const T* adjoint) const;

 private:
  std::size_t row_numbers(std::int64_t tile) const;
  std::size_t stage_rows() const { return std::size_t(code_.register_rows + code_.passing_rows); }
  void load_point(std::int64_t tile, std::size_t place, T* rows) const;
  void add(T* to, T weight, const T* from, std::size_t size) const;
  Frame<T> frame_of(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch, std::size_t i) const;
  T* rate_of(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch, std::size_t i) const;
  void find_argument(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch, std::size_t i,
                     T* argument) const;
  void evaluate_stages(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch) const;
  void collect_points(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch,
                      const StepTargets<T>& targets) const;
  void find_seed(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch, std::size_t i,
                 const T* adjoint) const;
  void pull_stage(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch, std::size_t i,
                  const StepTargets<T>& targets) const;
  void move_point(const SavedPoint& point, std::span<const double> weights, std::int64_t tile,
                  const StepScratch<T>& scratch, const StepTargets<T>& targets) const;
  double weight_of(std::size_t i) const { return i < method_.b.size() ? method_.b[i] : 0; }

  Problem<T>& problem_;
  const ode::ButcherTableau& method_;
  Code code_;
  ActivationLayout layout_;
  const T* saved_adjoints_ = nullptr;
  SavedAs as_ = SavedAs::samples;
  AtDepth<T> constant_;  // where nothing varies with depth
};

}  // namespace fathom::fused
