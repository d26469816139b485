/// Under which name torch's optimisers keep the state of a parameter.
#pragma once

#include <torch/types.h>

#include <string>

namespace fathom {

/// torch's own name, the address, found without the stream that torch makes for it in every step.
std::string state_key(const torch::Tensor& parameter);

}  // namespace fathom
