/// A loss on the state where a solve ends, in one piece with the solve: a node of torch's graph.
///
///   EndLossResult result = solve_for_loss(field, z0, {0, 1}, solver, Discrete{}, end, kept);
///   result.loss.backward();
#pragma once

#include <memory>
#include <vector>

#include "fathom/sensitivity/kept_loss.hpp"
#include "fathom/sensitivity/sensitivity.hpp"

namespace fathom {

struct EndLossResult {
  Tensor loss;  ///< scalar, of the state's type
  std::shared_ptr<SolveReport> report;
};

/// The loss of `end` at z(S), differentiable once into z0, the field's sources and the head's parameters. Only where
/// why_not_fused() is empty, z0 is (batch, features), and `end` has a program with tensors like it.
/// `kept`: the model's, for its next loss.
EndLossResult solve_for_loss(const VectorField& field, const Tensor& z0, const std::vector<double>& depths,
                             const Solver& solver, const Discrete& how, const EndProgram& end,
                             const std::shared_ptr<KeptLoss>& kept);

}  // namespace fathom
