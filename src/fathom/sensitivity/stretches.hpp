/// What the continuous adjoints of both engines share: the way back from saved depth to saved depth.
#pragma once

#include <functional>
#include <vector>

#include "fathom/sensitivity/pullback.hpp"

namespace fathom {

/// Carries the adjoint `a` back over one stretch, from the saved state `place` at depth `from` to the depth `to`.
using Stretch =
    std::function<Tensor(std::size_t place, double from, double to, const Solver& solver, const Tensor& a)>;

/// Runs `stretch` from the last saved depth to the first, adding dL/d(saved state) on the way. Gives dL/d(start), and
/// dL/d(depths) by a . f where `depth_grads` is defined.
Tensor walk_back(const ForwardPass& pass, const Solver& solver, const Tensor& grad_states,
                 Tensor& depth_grads, const Stretch& stretch);

/// Zeros of the right shapes for what is wanted.
Gradients empty_gradients(const ForwardPass& pass, const Wanted& wanted);

}  // namespace fathom
