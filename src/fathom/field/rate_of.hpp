/// How models evaluate a field: x goes to those that say that they read it.
///
///   const Tensor rate = rate_of(*field, s, x, z);
#pragma once

#include "fathom/field/field.hpp"

namespace fathom {

/// f(s, x, z). A field that is not declared as controlled gets an undefined x. If it reads x all the same, or if types do not go
/// together, throws InvalidArgument; whatever else the field throws passes.
Tensor rate_of(FieldModule& field, const Tensor& s, const Tensor& x, const Tensor& z);

}  // namespace fathom
