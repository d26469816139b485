/// The arithmetic of the fused engine, compiled once for each instruction set and chosen when the program runs.
///
///   const Kernels<float>& kernels = best_kernels<float>();   // "avx2" on most machines of today
#pragma once

#include <vector>

#include "fathom/fused/code.hpp"

namespace fathom::fused {

/// Error of a trial step on one tile, scaled by the tolerance.
template <class T> struct ErrorFrame {
  std::int32_t rows = 0;
  std::int32_t width = 0;
  std::int32_t samples = 0;  ///< that count; the rest of the width is padding
  const T* values = nullptr;
  const T* from = nullptr;  ///< the tolerance is absolute + relative max(|from|, |to|)
  const T* to = nullptr;
  T relative = 0;
  T absolute = 0;
  double divisor = 1;           ///< of every ratio, against overflow of its square
  double largest = 0;           ///< answer: largest |ratio|; NaN where one is
  double squares = 0;           ///< answer: sum of (ratio / divisor)^2
  double* by_sample = nullptr;  ///< (width), those sums for each sample, added to; may be null
};

/// One step of Adam on `count` numbers:
///   m = beta_1 m + (1 - beta_1) g,   v = beta_2 v + (1 - beta_2) g^2,   value = shrink value - rate m / (root_scale sqrt(v) + epsilon)
template <class T> struct AdamFrame {
  T* values = nullptr;
  const T* gradients = nullptr;
  T* means = nullptr;    ///< m
  T* squares = nullptr;  ///< v
  std::size_t count = 0;
  T mean_decay = 0;    ///< beta_1
  T mean_gain = 0;     ///< 1 - beta_1: of a rounded beta it would be off by many roundings
  T square_decay = 0;  ///< beta_2
  T square_gain = 0;   ///< 1 - beta_2
  T rate = 0;          ///< with the correction of m's bias
  T root_scale = 1;    ///< the correction of v's bias
  T epsilon = 0;
  T shrink = 1;          ///< AdamW's weight decay
  T gradient_decay = 0;  ///< Adam's weight decay: g + decay value
};

template <class T> struct Kernels {
  const char* name;
  std::int32_t lanes;
  bool has_pairs;  ///< two layers with few rows at both ends as one, see Op::is_pair_with_next
  /// Runs the code forwards: the rate, and registers where the frame has them, from argument and inputs.
  void (*evaluate)(const Code&, const Frame<T>&);
  /// Runs it backwards, on a frame with what `evaluate` has left: adjoints of argument, inputs and matrices from that of the rate.
  void (*pull_back)(const Code&, const Frame<T>&);
  /// out = base + sum_j weights[j] terms[j]; base may be null or out itself.
  void (*combine)(T* out, const T* base, const T* const* terms, const T* weights, std::int32_t count,
                  std::size_t size);
  /// rows (features, width) = samples (count, features), filled up with copies of the last one; and back, without those.
  void (*pack)(T* rows, const T* samples, std::int32_t features, std::int32_t count, std::int32_t width);
  void (*unpack)(T* samples, const T* rows, std::int32_t features, std::int32_t count, std::int32_t width);
  void (*scaled_error)(ErrorFrame<T>&);
  /// sum_i a[i] b[i] over the first `samples` of each row.
  double (*dot)(const T* a, const T* b, std::int32_t rows, std::int32_t width, std::int32_t samples);
  /// totals += values, values = 0
  void (*move_to_totals)(T* values, double* totals, std::size_t size);
  bool (*all_finite)(const T* values, std::size_t size);
  void (*adam)(const AdamFrame<T>&);
  /// The elementwise functions by themselves, for tests: value and slope of `count` numbers.
  void (*apply)(const Function&, const T* in, T* out, T* slope, std::size_t count);
};

/// The fastest set that this processor has. The environment variable FATHOM_KERNELS names another one.
template <class T> const Kernels<T>& best_kernels();

/// All sets that this processor can run, fastest first.
template <class T> std::vector<const Kernels<T>*> available_kernels();

}  // namespace fathom::fused
