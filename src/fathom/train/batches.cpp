#include "fathom/train/batches.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "fathom/support/error.hpp"

namespace fathom {

// Fisher and Yates by hand: std::shuffle may give another order with another standard library.
torch::Tensor shuffled_rows(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::seed_seq mixed{seed, seed >> 32, std::uint64_t(epoch)};
  std::mt19937_64 random(mixed);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  for (std::size_t last = rows.size(); last > 1; --last) std::swap(rows[last - 1], rows[random() % last]);
  return torch::tensor(rows);
}

Batches::Batches(const BatchOptions& options) : options_(options) {
  require(options.samples >= 1, "batches need at least one sample, got ", options.samples);
  require(options.size >= 0, "the batch size must not be negative, got ", options.size);
  if (options_.size == 0 || options_.size > options_.samples) options_.size = options_.samples;
}

std::int64_t Batches::per_epoch() const { return (options_.samples + options_.size - 1) / options_.size; }

torch::Tensor Batches::rows(std::int64_t iteration) {
  if (options_.size == options_.samples) {
    if (!order_.defined()) order_ = torch::arange(options_.samples);
    return order_;
  }
  const std::int64_t epoch = iteration / per_epoch();
  if (epoch != epoch_) {
    order_ = shuffled_rows(options_.samples, options_.seed, epoch);
    epoch_ = epoch;
  }
  const std::int64_t first = iteration % per_epoch() * options_.size;
  return order_.narrow(0, first, std::min(options_.size, options_.samples - first));
}

}  // namespace fathom
