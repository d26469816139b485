/// Adam steps as its papers say, in both types, and goes on from a checkpoint as if it had never stopped.
#include "fathom/adam.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "fathom/support/error.hpp"

namespace fathom {
namespace {

/// The formulas, one number at a time.
struct ByHand {
  double value = 0, mean = 0, square = 0;
  int steps = 0;

  void step(double gradient, const AdamOptions& o) {
    if (o.decays_gradient) gradient += o.weight_decay * value;
    ++steps;
    mean = o.mean_decay * mean + (1 - o.mean_decay) * gradient;
    square = o.square_decay * square + (1 - o.square_decay) * gradient * gradient;
    const double m = mean / (1 - std::pow(o.mean_decay, steps)),
                 v = square / (1 - std::pow(o.square_decay, steps));
    if (!o.decays_gradient) value *= 1 - o.rate * o.weight_decay;
    value -= o.rate * m / (std::sqrt(v) + o.epsilon);
  }
};

template <class T> void expect_steps_of(const AdamOptions& options, double tolerance) {
  constexpr std::size_t count = 37;  // no whole number of vectors
  std::vector<T> values(count), gradient(count);
  std::vector<ByHand> expected(count);
  for (std::size_t n = 0; n < count; ++n) expected[n].value = values[n] = T(std::cos(double(n)));
  Adam<T> adam(options);
  for (int step = 0; step < 20; ++step) {
    for (std::size_t n = 0; n < count; ++n) {
      gradient[n] = T(std::sin(double(n * 7) + step));
      expected[n].step(double(gradient[n]), options);
    }
    adam.step(values, gradient);
  }
  for (std::size_t n = 0; n < count; ++n) EXPECT_NEAR(values[n], expected[n].value, tolerance);
}

TEST(Adam, StepsAsItsFormulasSay) {
  for (const AdamOptions& options :
       {AdamOptions{}, AdamOptions{.rate = 0.1, .mean_decay = 0.5, .square_decay = 0.7},
        AdamOptions{.rate = 0.01, .weight_decay = 0.1},
        AdamOptions{.rate = 0.01, .weight_decay = 0.1, .decays_gradient = true}}) {
    expect_steps_of<double>(options, 1e-13);
    expect_steps_of<float>(options, 2e-6);
  }
}

TEST(Adam, GoesOnFromACheckpoint) {
  const std::vector<double> gradient = {1, -2, 3};
  std::vector<double> whole(3, 1.0), parts(3, 1.0);
  Adam<double> adam, before;
  for (int step = 0; step < 6; ++step) adam.step(whole, gradient);
  for (int step = 0; step < 3; ++step) before.step(parts, gradient);
  Adam<double> after;
  after.restore(before.steps(), before.means(), before.squares());
  for (int step = 0; step < 3; ++step) after.step(parts, gradient);
  EXPECT_EQ(parts, whole);
}

TEST(Adam, SaysWhatDoesNotFit) {
  Adam<float> adam;
  std::vector<float> values(3), gradient(2);
  EXPECT_THROW(adam.step(values, gradient), InvalidArgument);
  gradient.resize(3);
  adam.step(values, gradient);
  values.resize(4), gradient.resize(4);
  EXPECT_THROW(adam.step(values, gradient), InvalidArgument);
  EXPECT_THROW(Adam<float>({.mean_decay = 1}), InvalidArgument);
}

}  // namespace
}  // namespace fathom
