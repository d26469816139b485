/// Under which name torch's optimisers keep the state of a parameter.
#pragma once

#include <torch/types.h>

#include <string>

namespace fathom {

/// torch's own names, the addresses, found without the stream that torch makes for each in every step.
class StateNames {
 public:
  StateNames();
  std::string of(const torch::Tensor& parameter) const;

 private:
  bool has_plain_locale_;  // a stream writes as the locale of the program wants it
};

}  // namespace fathom
