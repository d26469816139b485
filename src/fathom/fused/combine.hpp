/// The sum or the product of two fields of one state, as one program:
///   rate = f(s, z, u) + g(s, z, u),   or  f * g feature by feature
///
///   combined(f, g, OpKind::add, {.f_count = 2, .g_count = 3});       // f has 2 parameters, g has 3
#pragma once

#include "fathom/fused/program.hpp"

namespace fathom::fused {

/// Where the tensors of both lie in the list that the whole runs with. Inputs are shared: input n of either is input n of the whole.
struct CombinedTensors {
  std::int32_t f_count = 0;  ///< parameters of f, which come first; then those of g, then the inputs
  std::int32_t g_count = 0;
};

/// `how`: add or multiply. Both have as many features, and no running losses.
Program combined(const Program& f, const Program& g, OpKind how, const CombinedTensors& tensors);

}  // namespace fathom::fused
