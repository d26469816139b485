/// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) on borrowed numbers.
///   m = beta_1 m + (1 - beta_1) g,   v = beta_2 v + (1 - beta_2) g^2
///   value = (1 - rate decay) value - rate (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon)
///
///   Adam<float> adam({.rate = 1e-3});
///   adam.step(parameters, gradient);        // as often as wanted; allocates in the first step only
///
/// Spans are used during the call alone. An Adam is for one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fathom {

struct AdamOptions {
  double rate = 1e-3;
  double mean_decay = 0.9;      ///< beta_1
  double square_decay = 0.999;  ///< beta_2
  double epsilon = 1e-8;
  double weight_decay = 0;
  /// Adam's own: decay is added to the gradient. Otherwise AdamW's: values shrink apart from it.
  bool decays_gradient = false;
};

/// T: float or double.
template <class T> class Adam {
 public:
  explicit Adam(const AdamOptions& options = {});

  /// The same numbers in the same order at every step.
  void step(std::span<T> values, std::span<const T> gradient);

  AdamOptions& options() { return options_; }  ///< may change between steps, such as the rate
  std::int64_t steps() const { return steps_; }

  /// What it remembers, for a checkpoint: m and v, empty before the first step.
  std::span<const T> means() const { return means_; }
  std::span<const T> squares() const { return squares_; }
  void restore(std::int64_t steps, std::span<const T> means, std::span<const T> squares);

 private:
  AdamOptions options_;
  std::int64_t steps_ = 0;
  std::vector<T> means_, squares_;
};

}  // namespace fathom
