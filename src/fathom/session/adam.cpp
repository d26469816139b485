#include "fathom/adam.hpp"

#include <cmath>

#include "fathom/fused/kernels.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

void check(const AdamOptions& options) {
  const auto in_unit_interval = [](double value) { return value >= 0 && value < 1; };
  require(std::isfinite(options.rate) && options.rate >= 0, "`rate` must not be negative, got ",
          options.rate);
  require(in_unit_interval(options.mean_decay), "`mean_decay` must be in [0, 1), got ", options.mean_decay);
  require(in_unit_interval(options.square_decay), "`square_decay` must be in [0, 1), got ",
          options.square_decay);
  require(options.epsilon >= 0, "`epsilon` must not be negative, got ", options.epsilon);
  require(options.weight_decay >= 0, "`weight_decay` must not be negative, got ", options.weight_decay);
}

}  // namespace

template <class T> Adam<T>::Adam(const AdamOptions& options) : options_(options) { check(options); }

template <class T> void Adam<T>::step(std::span<T> values, std::span<const T> gradient) {
  check(options_);
  require(gradient.size() == values.size(), "a step needs a gradient of ", values.size(), " numbers, got ",
          gradient.size());
  if (steps_ == 0) {
    means_.assign(values.size(), T(0));
    squares_.assign(values.size(), T(0));
  }
  require(means_.size() == values.size(), "this Adam has stepped ", means_.size(), " numbers so far, got ",
          values.size(), "; make another one for others");
  ++steps_;
  // The means begin at 0, which 1 - beta^steps makes up for.
  const double rate = options_.rate / (1 - std::pow(options_.mean_decay, double(steps_)));
  const double root_scale = 1 / std::sqrt(1 - std::pow(options_.square_decay, double(steps_)));
  const double shrink = options_.decays_gradient ? 1 : 1 - options_.rate * options_.weight_decay;
  fused::best_kernels<T>().adam({.values = values.data(),
                                 .gradients = gradient.data(),
                                 .means = means_.data(),
                                 .squares = squares_.data(),
                                 .count = values.size(),
                                 .mean_decay = T(options_.mean_decay),
                                 .mean_gain = T(1 - options_.mean_decay),
                                 .square_decay = T(options_.square_decay),
                                 .square_gain = T(1 - options_.square_decay),
                                 .rate = T(rate),
                                 .root_scale = T(root_scale),
                                 .epsilon = T(options_.epsilon),
                                 .shrink = T(shrink),
                                 .gradient_decay = T(options_.decays_gradient ? options_.weight_decay : 0)});
}

template <class T>
void Adam<T>::restore(std::int64_t steps, std::span<const T> means, std::span<const T> squares) {
  require(steps >= 0 && means.size() == squares.size() && (steps > 0 || means.empty()),
          "a state of Adam has as many means as squares, and none before the first step; got ", means.size(),
          " and ", squares.size(), " after ", steps, " step(s)");
  steps_ = steps;
  means_.assign(means.begin(), means.end());
  squares_.assign(squares.begin(), squares.end());
}

template class Adam<float>;
template class Adam<double>;

}  // namespace fathom
