/// Fields with their numbers, and gradients by finite differences, for the tests of Session.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "fathom/random.hpp"
#include "fathom/session.hpp"

namespace fathom {

/// z' = V tanh((W + s W') [z, u] + b + s b') + c: weights on a basis of depth, and a control.
inline ProgramField controlled_field() {
  return network_field(
      {.features = 2,
       .inputs = 1,
       .layers = {{5, Activation::tanh, Basis{.kind = BasisKind::polynomial, .size = 1}}, {2}}});
}

inline ProgramField plain_field() {
  return network_field({.features = 2, .layers = {{6, Activation::tanh}, {2}}});
}

template <class T> std::vector<T> some_numbers(std::int64_t count, std::uint64_t seed, double scale = 1) {
  const Random random(seed, 99);
  std::vector<T> numbers;
  for (std::int64_t n = 0; n < count; ++n) numbers.push_back(T(scale * random.normal(std::uint64_t(n))));
  return numbers;
}

/// Everything that a solve reads, owned.
template <class T> struct Numbers {
  Numbers(const ProgramField& field, std::int64_t batch_, std::vector<double> depths_ = {0, 0.4, 1})
      : batch(batch_),
        features(field.features()),
        start(some_numbers<T>(batch * features, 1)),
        parameters(initial_parameters<T>(field, 2)),
        depths(std::move(depths_)) {
    for (const std::int64_t columns : field.inputs())
      inputs.push_back(some_numbers<T>(batch * columns, 3 + inputs.size())), input_columns.push_back(columns);
  }

  Data<T> data() const {
    Data<T> data{.start = {start.data(), batch, features}, .parameters = parameters, .inputs = {}};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      data.inputs.push_back({inputs[i].data(), batch, input_columns[i]});
    return data;
  }

  std::int64_t batch, features;
  std::vector<T> start, parameters;
  std::vector<std::vector<T>> inputs;
  std::vector<std::int64_t> input_columns;
  std::vector<double> depths;
};

/// A gradient with memory for every part.
template <class T> struct OwnedGradient {
  OwnedGradient(const Numbers<T>& numbers, std::size_t head_size = 0)
      : start(numbers.start.size()),
        parameters(numbers.parameters.size()),
        head(head_size),
        depths(numbers.depths.size()),
        batch(numbers.batch),
        features(numbers.features) {
    for (const auto& input : numbers.inputs) inputs.emplace_back(input.size());
  }

  Gradient<T> view() {
    Gradient<T> gradient{
        .start = {start.data(), batch, features}, .parameters = parameters, .depths = depths, .head = head};
    for (auto& input : inputs)
      gradient.inputs.push_back({input.data(), batch, std::int64_t(input.size()) / batch});
    return gradient;
  }

  std::vector<T> start, parameters, head;
  std::vector<std::vector<T>> inputs;
  std::vector<double> depths;
  std::int64_t batch, features;
};

/// dL/d(number), fourth order.
inline double slope_at(double& number, const std::function<double()>& loss) {
  const double here = number, h = 1e-3;
  const auto at = [&](double step) {
    number = here + step;
    const double value = loss();
    number = here;
    return value;
  };
  return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
}

inline void expect_slopes(std::vector<double>& numbers, const std::vector<double>& gradient,
                          const std::function<double()>& loss, double tolerance, const char* what) {
  ASSERT_EQ(numbers.size(), gradient.size());
  for (std::size_t n = 0; n < numbers.size(); ++n)
    EXPECT_NEAR(gradient[n], slope_at(numbers[n], loss), tolerance) << what << " " << n;
}

}  // namespace fathom
