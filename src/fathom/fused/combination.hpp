/// base + sum_j weight_j term_j on one tile, put together without memory of its own.
#pragma once

#include <array>

#include "fathom/fused/history.hpp"
#include "fathom/fused/kernels.hpp"

namespace fathom::fused {

template <class T> class Combination {
 public:
  /// Terms that do not count are left out.
  void add(const T* term, double weight) {
    if (weight == 0) return;
    terms_[count_] = term;
    weights_[count_++] = T(weight);
  }
  /// `base` may be null, or `out` itself.
  void write(const Kernels<T>& kernels, T* out, const T* base, std::size_t size) const {
    kernels.combine(out, base, terms_.data(), weights_.data(), std::int32_t(count_), size);
  }

 private:
  std::array<const T*, most_stages> terms_;
  std::array<T, most_stages> weights_;
  std::size_t count_ = 0;
};

}  // namespace fathom::fused
