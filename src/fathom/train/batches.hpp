/// Which rows an iteration sees: every epoch is a new order of all rows. The order follows from the seed and the number of the
/// epoch alone, so a resumed run sees what an undisturbed one would.
///
///   Batches batches({.samples = 150, .size = 32, .seed = 1});
///   loss = [&](std::int64_t iteration) { const Tensor rows = batches.rows(iteration); ... };
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace fathom {

struct BatchOptions {
  std::int64_t samples = 0;
  std::int64_t size = 0;  ///< 0 or at least `samples`: all rows every time, in their own order
  std::uint64_t seed = 0;
};

/// 0 .. count - 1 in an order that follows from the two numbers alone, (count) int64.
torch::Tensor shuffled_rows(std::int64_t count, std::uint64_t seed, std::int64_t epoch = 0);

class Batches {
 public:
  explicit Batches(const BatchOptions& options);

  /// (size) int64; the last batch of an epoch is shorter where `size` does not divide `samples`.
  torch::Tensor rows(std::int64_t iteration);
  std::int64_t per_epoch() const;

 private:
  BatchOptions options_;
  std::int64_t epoch_ = -1;  // whose order is kept
  torch::Tensor order_;      // (samples) int64
};

}  // namespace fathom
