/// Inputs with one label each: what the toy sets and the image files give.
#pragma once

#include <torch/torch.h>

namespace fathom {

struct Labelled {
  torch::Tensor inputs;  ///< (samples, ...)
  torch::Tensor labels;  ///< (samples)
};

}  // namespace fathom
