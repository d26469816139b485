/// One accepted step again, this time with graph: the piece that Discrete pulls back through and Unrolled is made of.
#pragma once

#include <vector>

#include "fathom/sensitivity/pullback.hpp"

namespace fathom {

struct ReplayedStep {
  Tensor end;                       ///< (size)
  std::vector<Tensor> saved;        ///< one for each saved point of the record that is not simply the end
  std::vector<std::size_t> places;  ///< their rows among the saved states
  std::int64_t evaluations = 0;
};

/// `depths` is the caller's tensor (or a stand-in of the same values) when its gradient is wanted, undefined otherwise.
ReplayedStep replay(const ForwardPass& pass, const StepRecord& record, const Tensor& start,
                    const Tensor& depths);

/// The value `at` that moves with `moving`: what a depth on the grid is to the graph.
Tensor anchored(double at, const Tensor& moving);

}  // namespace fathom
