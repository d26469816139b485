/// A loss at the end of a solve by the fused engine, in one piece with the solve, forwards and backwards.
///
///   FusedLoss loss = run_fused_loss({.field = field, .start = z0, ...}, kept.take_solve());
///   LossGradients gradients = loss.solve->pull_back(1, wanted, {});
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fathom/sensitivity/pullback.hpp"

namespace fathom {

/// dL/d(start), of its shape, and those of the parameters that were asked for: of the field, then of the head.
struct LossGradients {
  Tensor start;
  std::vector<Tensor> field, head;
};

struct LossGradientsWanted {
  bool start = false;
  std::vector<bool> field = {}, head = {};  ///< of each parameter
};

/// A loss whose gradients may be asked for.
class FusedLossSolve {
 public:
  virtual ~FusedLossSolve() = default;
  /// Of `scale` times the loss. `earlier`: gradients of the parameters of the field, then of the head, that are used again where
  /// nobody else holds them; may be fewer, or undefined.
  virtual LossGradients pull_back(double scale, const LossGradientsWanted& wanted,
                                  std::span<Tensor> earlier) = 0;
  virtual void forget_tensors() = 0;
  /// Is what is left then, memory and what follows from a program and a batch, of use for the next loss, and not too large?
  virtual bool is_worth_keeping() const = 0;
};

/// A loss at the end of a solve and its head: a program over the whole state, as lower_answer() and lower_running_losses() give it.
struct EndProgram {
  Lowered lowered = {};
  std::vector<Tensor> parameters = {};  ///< that want a gradient
  double share = 1;                     ///< of one sample in the loss
};

/// What may be asked for later: gradients through the solve, gradients of the head.
struct LossWanted {
  bool of_solve = false;
  bool of_head = false;
};

struct LossRequest {
  const VectorField& field;
  const Tensor& start;  ///< z0 itself, or flat as for run_fused()
  std::int64_t batch = 0;
  const std::vector<double>& depths;  ///< the loss is at the last one
  const Solver& solver;
  const Discrete& how;
  const EndProgram& end;
  LossWanted wanted = {};
};

struct FusedLoss {
  double value = 0;
  std::shared_ptr<SolveReport> report;
  std::unique_ptr<FusedLossSolve> solve;
};
/// Only where why_not_fused() is empty. `kept`: an earlier loss's solve, which is used again if it fits; may be null.
FusedLoss run_fused_loss(const LossRequest& request, std::unique_ptr<FusedLossSolve> kept);

}  // namespace fathom
