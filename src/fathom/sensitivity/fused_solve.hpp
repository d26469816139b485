/// Solves by the fused engine: the bridge between tensors and the kernels' tiles of samples.
///
///   if (why_not_fused(field, z0, solver, sensitivity, differentiated).empty())
///     FusedForward forward = run_fused(field, flat, start, depths, solver, sensitivity, differentiated);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fathom/sensitivity/pullback.hpp"

namespace fathom {

/// A forward solve that the fused engine made, kept for its gradients.
class FusedSolve {
 public:
  virtual ~FusedSolve() = default;
  virtual Gradients pull_back(const ForwardPass& pass, const Sensitivity& how, const Tensor& grad_states,
                              const Wanted& wanted) = 0;
};

/// Why the fused engine cannot solve this; empty when it can. `differentiated`: gradients may be asked for.
std::string why_not_fused(const VectorField& field, const Tensor& z0, const Solver& solver,
                          const Sensitivity& sensitivity, bool differentiated);

struct FusedForward {
  ForwardPass pass;  ///< its records have steps and saved points but no tensors
  std::unique_ptr<FusedSolve> solve;
  std::vector<std::shared_ptr<SolveReport>> reports = {};  ///< of each sample, where they are solved apart
};
/// `start`: z0 and zeros for the running losses, flat. Starts of steps are kept for Discrete where `differentiated`.
FusedForward run_fused(const VectorField& field, const FlatField& flat, const Tensor& start,
                       const std::vector<double>& depths, const Solver& solver,
                       const Sensitivity& sensitivity, bool differentiated);

/// Each sample with steps of its own. No observer.
FusedForward run_fused_apart(const VectorField& field, const FlatField& flat, const Tensor& start,
                             const std::vector<double>& depths, const Solver& solver, const Discrete& how,
                             bool differentiated);

}  // namespace fathom
