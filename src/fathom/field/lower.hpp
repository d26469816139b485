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

Lowered lower(const Field& field, const Tensor& z0, const LowerOptions& options = {});

}  // namespace fathom
