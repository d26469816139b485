#include "fathom/support/activation.hpp"

namespace fathom {

template <> const NameTable<Activation>& names<Activation>() {
  static const NameTable<Activation> table = {{Activation::tanh, "tanh"},         {Activation::relu, "relu"},
                                              {Activation::softplus, "softplus"}, {Activation::elu, "elu"},
                                              {Activation::sigmoid, "sigmoid"},   {Activation::silu, "silu"},
                                              {Activation::identity, "identity"}};
  return table;
}

}  // namespace fathom
