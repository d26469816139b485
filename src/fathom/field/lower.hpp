/// From a tree of modules to a program of the fused engine: linear layers, the usual activations, depth-varying layers on
/// any basis, depth concatenated, controls, higher and selective order, adaptive depth, simple running losses and the
/// divergence of an MLP. Whatever else is in a field is named as the reason why it has no program.
#pragma once

#include <vector>

#include "fathom/field/field.hpp"
#include "fathom/field/running_loss.hpp"
#include "fathom/tensor/vector_field.hpp"

namespace fathom {

struct LowerOptions {
  Tensor control = {};  ///< what the field gets as x, (batch, features)
  Tensor scale = {};    ///< depths of the samples, (batch): z' = scale f(scale tau, x, z)
  std::vector<RunningLoss> losses = {};
  bool divergence = false;  ///< tr df/dz as the running loss of a flow
};

/// What an answer is held against.
enum class AnswerLoss {
  mse,           ///< |answer - y|^2, y (batch, outputs), averaged over all numbers
  cross_entropy  ///< of scores with labels y, int64 (batch), averaged over the samples
};

/// Throws InvalidArgument unless all labels, int64, are 0 to `scores` - 1.
void check_labels(const Tensor& y, std::int64_t scores);

/// The loss of one sample, without the average: l(head(z), y) as the running loss of a program over the state. Without a head the
/// state itself is the answer.
Lowered lower_answer(DepthModule* head, const Tensor& z0, const Tensor& y, AnswerLoss loss);

/// The running losses themselves, as such a loss: the program's state is z with its `losses` running losses, and it gives their sum.
Lowered lower_running_losses(std::int64_t features, std::int64_t losses);

Lowered lower(const Field& field, const Tensor& z0, const LowerOptions& options = {});

}  // namespace fathom
