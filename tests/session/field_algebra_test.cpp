/// Sums and products of fields are solved like the one field that they are, with gradients for all parameters of both.
#include <gtest/gtest.h>

#include "fathom/callback_field.hpp"
#include "fathom/support/error.hpp"
#include "session/session_problems.hpp"

namespace fathom {
namespace {

/// q' = p, p' = -k sin q + u: one parameter, one control of each sample.
CallbackField<double> pendulum() {
  CallbackField<double> field{.features = 2, .parameters = 1, .inputs = 1};
  field.rate = [](const Evaluation<double>& at, std::span<double> rate) {
    for (std::size_t i = 0; i < std::size_t(at.samples); ++i) {
      rate[2 * i] = at.state[2 * i + 1];
      rate[2 * i + 1] = -at.parameters[0] * std::sin(at.state[2 * i]) + at.input[i];
    }
  };
  field.product = [](const Evaluation<double>& at, std::span<const double> a,
                     const AdjointProduct<double>& to) {
    for (std::size_t i = 0; i < std::size_t(at.samples); ++i) {
      to.state[2 * i] += -a[2 * i + 1] * at.parameters[0] * std::cos(at.state[2 * i]);
      to.state[2 * i + 1] += a[2 * i];
      if (!to.parameters.empty()) to.parameters[0] += -a[2 * i + 1] * std::sin(at.state[2 * i]);
      if (!to.input.empty()) to.input[i] += a[2 * i + 1];
    }
  };
  return field;
}

void expect_gradients(const ProgramField& field, const SolveOptions& options, std::int64_t batch,
                      double tolerance) {
  Session<double> session(field, options);
  Numbers<double> numbers(field, batch, {0.1, 0.5, 1.2});
  if (field.parameters().front().bound == 0)
    numbers.parameters.front() = 1.3;  // a callback's own begins with 0
  const std::vector<double> targets = some_numbers<double>(3 * batch * 2, 4);
  const Loss<double> mean_square{.targets = view_of(targets, 2)};
  const auto loss = [&] { return session.loss(numbers.data(), numbers.depths, mean_square); };
  OwnedGradient<double> gradient(numbers);
  const Gradient<double> wanted = gradient.view();
  session.loss(numbers.data(), numbers.depths, mean_square, &wanted);
  expect_slopes(numbers.start, gradient.start, loss, tolerance, "start");
  expect_slopes(numbers.parameters, gradient.parameters, loss, tolerance, "parameter");
  for (std::size_t n = 0; n < numbers.inputs.size(); ++n)
    expect_slopes(numbers.inputs[n], gradient.inputs[n], loss, tolerance, "input");
  expect_slopes(numbers.depths, gradient.depths, loss, tolerance, "depth");
}

/// Networks of every kind that a program can hold: with a control, depth, a basis, a slope of its own, a pair, cheap rows.
std::vector<ProgramField> networks() {
  const Basis basis{.kind = BasisKind::polynomial, .size = 1};
  return {network_field({.features = 2, .inputs = 1, .layers = {{6, Activation::tanh}, {2}}}),
          network_field(
              {.features = 2, .layers = {{5, Activation::softplus, basis}, {4, Activation::tanh}, {2}}}),
          network_field({.features = 2,
                         .layers = {{6, Activation::silu, {}, true}, {2, Activation::identity, {}, true}}}),
          network_field({.features = 2, .layers = {{3, Activation::tanh}, {1}}, .order = 2})};
}

TEST(FieldAlgebra, SumsAndProductsHaveTheGradientsOfFiniteDifferences) {
  const std::vector<ProgramField> fields = networks();
  const SolveOptions options{.steps = FixedSteps{.count = 5}};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (std::size_t j = 0; j < fields.size(); ++j) {
      SCOPED_TRACE(testing::Message() << i << " and " << j);
      const ProgramField f = named("f", fields[i]), g = named("g", fields[j]);
      expect_gradients(f + g, options, 3, 1e-8);
      expect_gradients(f * g, options, 20, 1e-8);
    }
  }
}

TEST(FieldAlgebra, AGreyBoxOfCallbacksAndANetworkHasThemByBothDerivatives) {
  const ProgramField grey = named("known", pendulum().field()) + named("friction", networks()[0]);
  for (const std::int64_t batch : {1, 3, 20})
    expect_gradients(grey, {.steps = FixedSteps{.count = 5}}, batch, 1e-8);
  const AdaptiveSteps careful{.relative_tolerance = 1e-11, .absolute_tolerance = 1e-11};
  expect_gradients(grey, {.steps = careful, .derivative = Derivative::adjoint}, 3, 1e-8);
}

TEST(FieldAlgebra, TwoCallbacksMayBeCombined) {
  expect_gradients(named("a", pendulum().field()) + named("b", pendulum().field()),
                   {.steps = FixedSteps{.count = 5}}, 3, 1e-8);
}

/// A sum of three is the network whose hidden layers lie side by side.
TEST(FieldAlgebra, ASumOfNetworksIsTheWiderNetwork) {
  const auto narrow = [] { return network_field({.features = 2, .layers = {{4, Activation::tanh}, {2}}}); };
  const ProgramField sum = named("a", narrow()) + named("b", narrow()) + named("c", narrow());
  const ProgramField wide = network_field({.features = 2, .layers = {{12, Activation::tanh}, {2}}});
  const Numbers<double> numbers(sum, 33);
  std::vector<double> joined(std::size_t(wide.parameter_count()));
  constexpr std::size_t own = 2 * 4 + 4 + 4 * 2 + 2;  // numbers of a narrow one
  for (std::size_t part = 0; part < 3; ++part) {
    const double* from = numbers.parameters.data() + part * own;
    std::copy_n(from, 8, joined.data() + part * 8);
    std::copy_n(from + 8, 4, joined.data() + 24 + part * 4);
    for (std::size_t row = 0; row < 2; ++row)
      std::copy_n(from + 12 + row * 4, 4, joined.data() + 36 + row * 12 + part * 4);
    for (std::size_t row = 0; row < 2; ++row) joined[60 + row] += from[20 + row];
  }
  Session<double> of_sum(sum), of_wide(wide);
  std::vector<double> one(3 * 66), other(3 * 66);
  of_sum.solve(numbers.data(), numbers.depths, view_of(one, 66));
  Data<double> data = numbers.data();
  data.parameters = joined;
  of_wide.solve(data, numbers.depths, view_of(other, 66));
  for (std::size_t n = 0; n < one.size(); ++n) EXPECT_NEAR(one[n], other[n], 1e-12);
}

TEST(FieldAlgebra, AnswersAreTheSameInFloat32) {
  const ProgramField sum = named("f", networks()[0]) + named("g", networks()[1]);
  const Numbers<double> exact(sum, 20);
  Numbers<float> rounded(sum, 20);
  Session<double> session(sum, {.steps = FixedSteps{.count = 5}});
  Session<float> single(sum, {.steps = FixedSteps{.count = 5}});
  std::vector<double> states(3 * 40);
  std::vector<float> floats(3 * 40);
  session.solve(exact.data(), exact.depths, view_of(states, 40));
  single.solve(rounded.data(), rounded.depths, view_of(floats, 40));
  for (std::size_t n = 0; n < states.size(); ++n) EXPECT_NEAR(states[n], floats[n], 1e-5);
}

/// z' = -z + u(s), u = 0 until 1, then 2 (s - 1): in closed form.
TEST(FieldAlgebra, ASampledSignalIsIntegratedExactly) {
  const std::vector<double> knots = {0, 1, 3}, values = {0, 0, 4};
  const ProgramField field =
      network_field({.features = 1, .signal = sampled(knots, values), .layers = {{1}}});
  Session<double> session(field,
                          {.steps = AdaptiveSteps{.relative_tolerance = 1e-11, .absolute_tolerance = 1e-11}});
  const std::vector<double> start = {1}, parameters = {-1, 1, 0}, depths = {0, 1, 3};
  std::vector<double> states(3);
  session.solve({.start = view_of(start, 1), .parameters = parameters}, depths, view_of(states, 1));
  EXPECT_NEAR(states[1], std::exp(-1), 1e-10);
  EXPECT_NEAR(states[2], std::exp(-3) + 2 * (2 - 1 + std::exp(-2)), 1e-9);
}

TEST(FieldAlgebra, RefusesWhatDoesNotFit) {
  const auto message = [](auto&& work) {
    try {
      work();
    } catch (const InvalidArgument& error) { return std::string(error.what()); }
    return std::string("nothing");
  };
  const ProgramField plain = plain_field(), three = network_field({.features = 3, .layers = {{3}}});
  const ProgramField lossy =
      network_field({.features = 2, .layers = {{2}}, .running = {Running::path_length}});
  EXPECT_EQ(message([&] { plain + plain; }),
            "both fields have a parameter `layer.1.weight`; give one a name: named(\"part\", field)");
  EXPECT_EQ(message([&] { plain + three; }),
            "fields are combined where their states have the same features, got 2 and 3");
  EXPECT_EQ(message([&] { named("a", plain) + lossy; }),
            "fields with running losses cannot be combined; combine them without, got 0 and 1");
  const ProgramField two = network_field({.features = 2, .inputs = 2, .layers = {{2}}});
  EXPECT_EQ(
      message([&] { named("a", controlled_field()) + two; }),
      "fields that are combined share their inputs, but input 0 has 1 features in one and 2 in the other");
  const std::vector<double> back = {0, 1, 1}, values = {0, 0, 0};
  EXPECT_EQ(message([&] { sampled(back, values); }), "the depths of a sampled signal must increase");
}

}  // namespace
}  // namespace fathom
