/// From a model's specification to a program of the fused engine.
#pragma once

#include <memory>
#include <string>

#include "fathom/file/model_spec.hpp"
#include "fathom/fused/network.hpp"

namespace fathom::runtime {

/// What the program gives besides the rate.
enum class Carries { state, state_and_divergence };

/// Its tensors: weight and bias of each layer of the field, in order, then the control if there is one. Throws
/// fused::NoProgram where a part of the field has no kernel.
std::shared_ptr<const fused::Program> program_of(const ModelSpec& spec, Carries carries);

}  // namespace fathom::runtime
