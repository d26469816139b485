/// Gradients of a loss without detours.
#pragma once

#include "fathom/tensor/vector_field.hpp"

namespace fathom {

/// `loss.backward()`. Where the loss comes from `ode->loss()` in one piece and its gradients go into parameters and nowhere else,
/// they are put there without torch's engine, whose walk through the graph takes as long as the gradients of a small model.
void backward(const Tensor& loss);

}  // namespace fathom
