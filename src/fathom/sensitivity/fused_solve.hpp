/// Solves by the fused engine: the bridge between tensors and the kernels' tiles of samples.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "fathom/sensitivity/pullback.hpp"

namespace fathom {

/// dL/d(start), of its shape, and those of the parameters that were asked for: of the field, then of the head.
struct LossGradients {
  Tensor start;
  std::vector<Tensor> field, head;
};

/// A forward solve that the fused engine made, kept for its gradients.
class FusedSolve {
 public:
  virtual ~FusedSolve() = default;
  /// After run_fused_loss(), of `scale` times the loss. `earlier`: gradients of the parameters of the field, then of the head, that
  /// are used again where nobody else holds them; may be fewer, or undefined.
  virtual LossGradients pull_back_loss(double scale, bool wants_start,
                                       const std::vector<bool>& wanted_of_field,
                                       const std::vector<bool>& wanted_of_head,
                                       std::span<Tensor> earlier) = 0;
  virtual Gradients pull_back(const ForwardPass& pass, const Sensitivity& how, const Tensor& grad_states,
                              const Wanted& wanted) = 0;
  /// Forgets all tensors. Is what is left, memory and what follows from a program and a batch, worth keeping for the next loss?
  virtual bool lets_go() = 0;
};

/// Where a model keeps what is left of its last loss for the next one: making it anew would take as long as a third of a small
/// solve. For any thread.
class KeptLoss {
 public:
  std::unique_ptr<FusedSolve> take_solve() {
    const std::lock_guard lock(mutex_);
    return std::move(solve_);
  }
  void give(std::unique_ptr<FusedSolve> solve) {
    if (!solve || !solve->lets_go()) return;
    const std::lock_guard lock(mutex_);
    solve_.swap(solve);
  }

  /// That parameters of the field, then of the head, were given, and may have let go of; some undefined.
  std::vector<Tensor> take_gradients() {
    const std::lock_guard lock(mutex_);
    return std::exchange(gradients_, {});
  }
  void give(std::vector<Tensor> gradients) {
    const std::lock_guard lock(mutex_);
    gradients_.swap(gradients);
  }

  /// Holds the nodes that add to the gradients of weights, and those only, until the next loss: torch makes them for the first graph
  /// that asks for them and lets them go with the last one, so that each iteration would make them again.
  template <class IsWeight>
  void hold_nodes(const torch::autograd::edge_list& edges, const IsWeight& is_weight) {
    static const std::shared_ptr<torch::autograd::Node> none;
    // Let go of behind the lock: what hangs on them may come back to give something.
    std::vector<std::shared_ptr<torch::autograd::Node>> former;
    const std::lock_guard lock(mutex_);
    if (nodes_.size() != edges.size()) former.swap(nodes_);
    nodes_.resize(edges.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const auto& node = is_weight(i) ? edges[i].function : none;
      if (nodes_[i] != node) former.push_back(std::exchange(nodes_[i], node));
    }
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<FusedSolve> solve_;
  std::vector<Tensor> gradients_;
  std::vector<std::shared_ptr<torch::autograd::Node>> nodes_;
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

/// A loss at the end of a solve and its head, as lower_answer() gives it; without a program, the running losses themselves.
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

struct FusedLoss {
  double value = 0;
  std::shared_ptr<SolveReport> report;
  std::unique_ptr<FusedSolve> solve;
};
/// From `start`, z0 itself or flat as for run_fused(), to the last depth, and the loss there. Only where why_not_fused() is empty; Discrete.
/// `kept`: an earlier loss's solve, which is used again if it fits; may be null.
FusedLoss run_fused_loss(const VectorField& field, const Tensor& start, std::int64_t batch,
                         const std::vector<double>& depths, const Solver& solver, const Discrete& how,
                         const EndProgram& end, const LossWanted& wanted, std::unique_ptr<FusedSolve> kept);

}  // namespace fathom
