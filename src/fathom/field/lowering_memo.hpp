/// Training lowers the same field in every iteration. A memo looks at what its program follows from, and where that is what it was
/// last time gives the program made then: nothing that anybody does to a layer goes unseen, but nothing is built twice.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "fathom/field/lower.hpp"

namespace fathom {

/// Of one model. For any thread.
class LoweringMemo {
 public:
  /// As lower() and lower_answer(), which do the work for all but plain layers and mean squares.
  Lowered lower(const Field& field, const Tensor& z0, const LowerOptions& options);
  Lowered lower_answer(DepthModule* head, const Tensor& z0, const Tensor& y, AnswerLoss loss);

 private:
  /// Everything a program of plain layers follows from but the numbers: sizes, functions, and which tensor is where.
  struct Description;
  struct Known {
    std::vector<std::uint64_t> words;
    std::shared_ptr<const fused::Program> program;
  };
  template <class Make> Lowered remembered(Known& known, Description&& seen, Make&& make);

  std::mutex mutex_;
  Known field_, answer_;
};

}  // namespace fathom
