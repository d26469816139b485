/// The error for NaN and infinity among the numbers that a solve is given.
#pragma once

#include "fathom/support/error.hpp"

namespace fathom {

/// An argument with NaN or infinity. Where layers in training computed it, their next step may mend that.
class NotFinite : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

}  // namespace fathom
