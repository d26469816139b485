/// The one entry point: integrate a field from a start state, keep it at the given depths, differentiate through it.
///   z'(s) = f(s, z(s)),  z(s_0) = z0     ->     states[i] = z(s_i),  running_loss[i] = int_{s_0}^{s_i} l ds
///
///   const Solution solution = solve(field, z0, {0.0, 0.5, 1.0});
///   solution.states[-1].sum().backward();     // into z0 and field.parameters
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fathom/sensitivity/sensitivity.hpp"
#include "fathom/tensor/interpolant.hpp"
#include "fathom/tensor/solver.hpp"
#include "fathom/tensor/vector_field.hpp"

namespace fathom {

struct Solution {
  std::vector<double> depths;  ///< those reached; after an early stop the last one is where it stopped
  Tensor states;               ///< (depths, shape of z0...)
  Tensor running_loss;         ///< (depths, batch), undefined without a running loss
  Interpolant interpolant;     ///< with `Solver{.dense = true}`
  std::vector<double> grid;    ///< where one accepted step ended and the next began

  /// Work done so far; the backward counts grow when gradients are computed.
  const SolveReport& report() const { return *shared_report; }

  std::shared_ptr<SolveReport> shared_report;
};

/// Depths go one way, forwards or backwards; how many are saved does not change the steps.
Solution solve(const VectorField& field, const Tensor& z0, const std::vector<double>& depths,
               const Solver& solver = {}, const Sensitivity& sensitivity = Discrete{});

/// The same with depths as a float64 tensor, which may want a gradient: d/ds_0, d/dS and d/ds_i (G6).
Solution solve(const VectorField& field, const Tensor& z0, const Tensor& depths, const Solver& solver = {},
               const Sensitivity& sensitivity = Discrete{});

/// A solve in which each sample took steps of its own.
struct ApartSolution {
  Solution solution;                                  ///< its report is the first sample's
  std::vector<std::shared_ptr<SolveReport>> reports;  ///< of each sample
};

/// Each sample of a batch as if it were alone, by the fused engine, with one gradient for all; none where that cannot be: without
/// a program of the field, with an observer, or with another sensitivity than Discrete where a gradient is wanted.
std::optional<ApartSolution> solve_apart(const VectorField& field, const Tensor& z0,
                                         const std::vector<double>& depths, const Solver& solver = {},
                                         const Sensitivity& sensitivity = Discrete{});

}  // namespace fathom
