/// Tensors of torch as tensors of a file, and back: the same bits.
#pragma once

#include "fathom/file/safetensors.hpp"
#include "fathom/tensor/vector_field.hpp"

namespace fathom {

StoredTensor stored(const Tensor& tensor);
Tensor restored(const StoredTensor& stored);

}  // namespace fathom
