/// A field of callbacks is solved and differentiated like a program: the same states, and gradients of finite differences for everything.
#include "fathom/callback_field.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "fathom/ode/methods.hpp"
#include "fathom/support/error.hpp"
#include "session/session_problems.hpp"

namespace fathom {
namespace {

/// q' = p, p' = -k sin q - c p + u cos s: two parameters, a control of each sample, and depth.
CallbackField<double> pendulum() {
  CallbackField<double> field{.features = 2, .parameters = 2, .inputs = 1};
  field.rate = [](const Evaluation<double>& at, std::span<double> rate) {
    for (std::size_t i = 0; i < std::size_t(at.samples); ++i) {
      const double q = at.state[2 * i], p = at.state[2 * i + 1];
      rate[2 * i] = p;
      rate[2 * i + 1] =
          -at.parameters[0] * std::sin(q) - at.parameters[1] * p + at.input[i] * std::cos(at.depth);
    }
  };
  field.product = [](const Evaluation<double>& at, std::span<const double> a,
                     const AdjointProduct<double>& to) {
    for (std::size_t i = 0; i < std::size_t(at.samples); ++i) {
      const double q = at.state[2 * i], p = at.state[2 * i + 1], up = a[2 * i + 1];
      to.state[2 * i] += -up * at.parameters[0] * std::cos(q);
      to.state[2 * i + 1] += a[2 * i] - up * at.parameters[1];
      if (!to.parameters.empty()) {
        to.parameters[0] += -up * std::sin(q);
        to.parameters[1] += -up * p;
      }
      if (!to.input.empty()) to.input[i] += up * std::cos(at.depth);
      if (!to.depth.empty()) to.depth[i] += -up * at.input[i] * std::sin(at.depth);
    }
  };
  return field;
}

Numbers<double> pendulum_numbers(const ProgramField& field, std::int64_t batch) {
  Numbers<double> numbers(field, batch, {0.1, 0.5, 1.2});
  numbers.parameters = {1.3, 0.2};
  return numbers;
}

void expect_gradients(const SolveOptions& options, std::int64_t batch, double tolerance) {
  const ProgramField field = pendulum().field();
  Session<double> session(field, options);
  Numbers<double> numbers = pendulum_numbers(field, batch);
  const std::vector<double> targets = some_numbers<double>(3 * batch * 2, 4);
  const Loss<double> mean_square{.targets = view_of(targets, 2)};
  const auto loss = [&] { return session.loss(numbers.data(), numbers.depths, mean_square); };
  OwnedGradient<double> gradient(numbers);
  const Gradient<double> wanted = gradient.view();
  session.loss(numbers.data(), numbers.depths, mean_square, &wanted);
  expect_slopes(numbers.start, gradient.start, loss, tolerance, "start");
  expect_slopes(numbers.parameters, gradient.parameters, loss, tolerance, "parameter");
  expect_slopes(numbers.inputs[0], gradient.inputs[0], loss, tolerance, "input");
  expect_slopes(numbers.depths, gradient.depths, loss, tolerance, "depth");
}

TEST(CallbackField, HasTheGradientOfFiniteDifferencesByEveryMethod) {
  for (const ode::ButcherTableau& method : ode::all_methods()) {
    SCOPED_TRACE(method.name);
    for (const std::int64_t batch : {1, 3, 20})
      expect_gradients({.method = method, .steps = FixedSteps{.count = 5}}, batch, 1e-9);
  }
}

TEST(CallbackField, HasItByTheAdjoint) {
  const AdaptiveSteps steps{.relative_tolerance = 1e-11, .absolute_tolerance = 1e-11};
  expect_gradients({.steps = steps, .derivative = Derivative::adjoint}, 3, 1e-8);
}

/// z' = W z + b, once by callbacks and once as a program.
TEST(CallbackField, SolvesLikeAProgram) {
  CallbackField<double> field{.features = 2, .parameters = 6};
  field.rate = [](const Evaluation<double>& at, std::span<double> rate) {
    for (std::size_t n = 0; n < rate.size(); ++n) {
      const std::size_t row = n % 2, sample = n - row;
      rate[n] = at.parameters[2 * row] * at.state[sample] +
                at.parameters[2 * row + 1] * at.state[sample + 1] + at.parameters[4 + row];
    }
  };
  field.product = [](const Evaluation<double>& at, std::span<const double> a,
                     const AdjointProduct<double>& to) {
    for (std::size_t n = 0; n < a.size(); ++n) {
      const std::size_t row = n % 2, sample = n - row;
      for (std::size_t c = 0; c < 2; ++c) {
        to.state[sample + c] += a[n] * at.parameters[2 * row + c];
        if (!to.parameters.empty()) to.parameters[2 * row + c] += a[n] * at.state[sample + c];
      }
      if (!to.parameters.empty()) to.parameters[4 + row] += a[n];
    }
  };
  const ProgramField program = network_field({.features = 2, .layers = {{2}}});
  Session<double> by_callbacks(field.field()), by_program(program);
  const Numbers<double> numbers(program, 37);
  const std::vector<double> up = some_numbers<double>(3 * 74, 6);
  std::vector<std::vector<double>> states, slopes, starts;
  for (Session<double>* session : {&by_callbacks, &by_program}) {
    OwnedGradient<double> gradient(numbers);
    states.emplace_back(up.size());
    session->solve(numbers.data(), numbers.depths, view_of(states.back(), 74));
    session->backward(view_of(up, 74), gradient.view());
    slopes.push_back(gradient.parameters), starts.push_back(gradient.start);
  }
  for (std::size_t n = 0; n < up.size(); ++n) EXPECT_NEAR(states[0][n], states[1][n], 1e-13);
  for (std::size_t n = 0; n < slopes[0].size(); ++n) EXPECT_NEAR(slopes[0][n], slopes[1][n], 1e-11);
  for (std::size_t n = 0; n < starts[0].size(); ++n) EXPECT_NEAR(starts[0][n], starts[1][n], 1e-13);
}

TEST(CallbackField, IsCalledWithAllSamplesAtOnce) {
  CallbackField<float> field{.features = 1};
  std::int64_t calls = 0, samples = 0;
  field.rate = [&](const Evaluation<float>& at, std::span<float> rate) {
    ++calls, samples = at.samples;
    EXPECT_EQ(at.state.size(), rate.size());
    for (std::size_t i = 0; i < rate.size(); ++i) rate[i] = -at.state[i];
  };
  Session<float> session(field.field(), {.derivative = Derivative::none, .threads = 2});
  const std::vector<float> start(333, 1.0f);
  const std::vector<double> depths = {0, 1};
  std::vector<float> states(666);
  const SolveReport report = session.solve({.start = view_of(start, 1)}, depths, view_of(states, 333));
  EXPECT_EQ(samples, 333);
  EXPECT_EQ(calls, report.evaluations);
  EXPECT_NEAR(states[333 + 17], std::exp(-1.0f), 1e-4);
}

TEST(CallbackField, MayThrow) {
  bool is_broken = true;
  CallbackField<double> field{.features = 1};
  field.rate = [&](const Evaluation<double>& at, std::span<double> rate) {
    if (is_broken && at.depth > 0.5) throw std::runtime_error("no data beyond 0.5");
    rate[0] = -at.state[0];
  };
  Session<double> session(field.field());
  const std::vector<double> start = {1}, depths = {0, 1}, up = {0, 1};
  std::vector<double> states(2), slope(1);
  const auto solve = [&] { session.solve({.start = view_of(start, 1)}, depths, view_of(states, 1)); };
  try {
    solve();
    FAIL() << "threw nothing";
  } catch (const SolveFailure& failure) {
    EXPECT_EQ(failure.reason, FailureReason::field_threw);
    EXPECT_NE(std::string(failure.what()).find("no data beyond 0.5"), std::string::npos);
  }
  is_broken = false;
  solve();
  EXPECT_NEAR(states[1], std::exp(-1), 1e-4);
  try {
    session.backward(view_of(up, 1), {.start = view_of(slope, 1)});
    FAIL() << "threw nothing";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "this field has a rate but no vector-Jacobian product; give it one for gradients");
  }
}

}  // namespace
}  // namespace fathom
