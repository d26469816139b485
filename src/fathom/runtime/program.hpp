/// From a model's specification to a program of the fused engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fathom/file/model_file.hpp"
#include "fathom/fused/network.hpp"
#include "fathom/program_field.hpp"

namespace fathom::runtime {

/// What the program gives besides the rate.
enum class Carries { state, state_and_divergence };

/// Its tensors: weight and bias of each layer of the field, in order, then the control if there is one. Throws
/// fused::NoProgram where a part of the field has no kernel.
std::shared_ptr<const fused::Program> program_of(const ModelSpec& spec, Carries carries);

/// The same with the names and shapes of its parameters, its control as the one input, and the depths where it jumps.
ProgramField field_of(const ModelSpec& spec, Carries carries);
/// The numbers of those parameters, one after the other. T: float or double.
template <class T> std::vector<T> field_parameters(const ModelFile& file);

}  // namespace fathom::runtime
