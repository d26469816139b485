/// torch's Adam and AdamW with one pass over each parameter, where libtorch makes a dozen operations of tensors: for small
/// models those would cost more than the solve. State, options and results are torch's, to rounding.
///
///   FusedAdam optimizer(model->parameters(), torch::optim::AdamOptions(1e-3));
#pragma once

#include <torch/optim.h>

namespace fathom {

/// Parameters that are not plain (on another device, sparse gradients, amsgrad) are left to torch's own step.
class FusedAdam : public torch::optim::Adam {
 public:
  using torch::optim::Adam::Adam;
  torch::Tensor step(LossClosure closure = nullptr) override;
};

class FusedAdamW : public torch::optim::AdamW {
 public:
  using torch::optim::AdamW::AdamW;
  torch::Tensor step(LossClosure closure = nullptr) override;
};

}  // namespace fathom
