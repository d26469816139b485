/// What is integrated: z'(s) = f(s, z), with everything else that f depends on.
///
///   VectorField decay{.rate = [&](const Tensor& s, const Tensor& z) { return -theta * z; }, .parameters = {theta}};
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fathom::fused {
struct Program;
}

namespace fathom {

using torch::Tensor;

/// A field as a program of the fused engine, with the tensors it reads in the order that the program numbers them.
struct Lowered {
  std::shared_ptr<const fused::Program> program = {};  ///< null where the field has none ...
  std::string reason = {};                             ///< ... and why
  std::vector<Tensor> tensors = {};
};

struct VectorField {
  /// f(s, z), of the shape and type of z. Depth is a float64 scalar tensor, so that df/ds exists and a break point is
  /// seen from the right side whatever the type of the state; torch mixes it freely with float32 states.
  std::function<Tensor(const Tensor& s, const Tensor& z)> rate;

  /// Tensors besides z that f or l depend on and that want a gradient: weights, controls.
  std::vector<Tensor> parameters = {};

  /// Where the gradients of `parameters` go; empty: to the parameters themselves. A parameter that is itself computed from
  /// others is given as a detached copy above and as it is here.
  std::vector<Tensor> sources = {};

  /// Tensors besides those that f or l read. Nobody may change them in place before the gradient is taken, and whoever does is told.
  std::vector<Tensor> constants = {};

  /// Depths at which f jumps; the solver lands on them and evaluates f on the proper side.
  std::vector<double> break_points = {};

  /// l(s, z, f(s, z)): one value for each entry of the first axis of z, shape (batch), or (batch, running_terms) for several
  /// losses at once. Its integral over depth is returned beside the states.
  std::function<Tensor(const Tensor& s, const Tensor& z, const Tensor& rate)> running_loss = {};
  std::int64_t running_terms = 1;

  /// The same field, running loss included, for the fused engine.
  Lowered lowered = {};
};

}  // namespace fathom
