/// What a field reads besides depth, state and weights: controls, conditions, scales.
#pragma once

#include "fathom/sensitivity/sensitivity.hpp"
#include "fathom/tensor/vector_field.hpp"

namespace fathom {

/// Adds such a tensor to the field and returns what the field must read in its place. The input may be the output of other layers,
/// even of the field's own: the field then sees a copy that is a leaf, and its gradient goes on to the original. One without gradient
/// must not be changed in place before the gradient is taken, and whoever does is told. Needs `sources` to be set.
Tensor add_input(VectorField& field, const Tensor& input, const Sensitivity& sensitivity);

}  // namespace fathom
