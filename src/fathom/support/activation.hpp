/// The elementwise functions between layers, in torch's definitions.
#pragma once

#include "fathom/support/names.hpp"

namespace fathom {

enum class Activation { tanh, relu, softplus, elu, sigmoid, silu, identity };
template <> const NameTable<Activation>& names<Activation>();

}  // namespace fathom
