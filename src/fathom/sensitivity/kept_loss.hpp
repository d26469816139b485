/// What one loss leaves for the next.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "fathom/sensitivity/fused_loss.hpp"
#include "fathom/tensor/torch_version.hpp"

namespace fathom {

/// Where a model keeps what is left of its last loss for the next one: making it anew would take as long as a third of a small
/// solve. For any thread.
class KeptLoss {
 public:
  std::unique_ptr<FusedLossSolve> take_solve() {
    const std::lock_guard lock(mutex_);
    return std::move(solve_);
  }
  void give(std::unique_ptr<FusedLossSolve> solve) {
    if (!solve) return;
    solve->forget_tensors();
    if (!solve->is_worth_keeping()) return;
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
    static const NodePointer none;
    // Let go of behind the lock: what hangs on them may come back to give something.
    std::vector<NodePointer> former;
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
  std::unique_ptr<FusedLossSolve> solve_;
  std::vector<Tensor> gradients_;
  std::vector<NodePointer> nodes_;
};

}  // namespace fathom
