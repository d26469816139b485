/// A call like an earlier one allocates nothing: solves, gradients, losses and steps of Adam, for one sample and many, one thread and two.
#include <gtest/gtest.h>

#include "fathom/adam.hpp"
#include "session/session_problems.hpp"
#include "support/plain/allocations.hpp"

namespace fathom {
namespace {

using test::allocations_of;

struct Setting {
  const char* name;
  ProgramField field;
  SolveOptions options;
};

std::vector<Setting> settings() {
  const ProgramField varying =
      network_field({.features = 2,
                     .inputs = 1,
                     .layers = {{5, Activation::tanh, Basis{.kind = BasisKind::fourier, .size = 2}}, {2}}});
  const ProgramField stacked = network_field(
      {.features = 2,
       .layers = {{5, Activation::tanh, Basis{.kind = BasisKind::piecewise_constant, .size = 3}}, {2}}});
  SolveOptions adjoint, checkpoints, two_threads, fixed;
  adjoint.derivative = Derivative::adjoint;
  checkpoints.checkpoint_every = 3;
  checkpoints.steps = FixedSteps{.count = 10};
  two_threads.threads = 2;
  fixed.method = rk4();
  fixed.steps = FixedSteps{.count = 7};
  return {{"plain", plain_field(), {}},
          {"varying", varying, {}},
          {"stacked", stacked, {}},
          {"adjoint", varying, adjoint},
          {"checkpoints", plain_field(), checkpoints},
          {"two threads", plain_field(), two_threads},
          {"fixed steps", varying, fixed}};
}

TEST(SteadySession, SolvesAndPullsBackWithoutAllocating) {
  for (const Setting& setting : settings()) {
    for (const std::int64_t batch : {1, 50, 400}) {
      SCOPED_TRACE(testing::Message() << setting.name << ", batch " << batch);
      Session<float> session(setting.field, setting.options);
      const Numbers<float> numbers(setting.field, batch, {0, 0.2, 0.4, 0.9, 1});
      std::vector<float> states(numbers.depths.size() * numbers.start.size());
      const std::vector<float> up(states.size(), 1.0f);
      const Data<float> data = numbers.data();
      OwnedGradient<float> gradient(numbers);
      const Gradient<float> all = gradient.view();
      Gradient<float> parameters_only;
      parameters_only.parameters = gradient.parameters;
      const std::int64_t columns = batch * 2;
      EXPECT_EQ(allocations_of([&] { session.solve(data, numbers.depths, view_of(states, columns)); }), 0)
          << "solve";
      EXPECT_EQ(allocations_of([&] {
                  session.solve(data, numbers.depths, view_of(states, columns));
                  session.backward(view_of(up, columns), all);
                  session.backward(view_of(up, columns), parameters_only);
                }),
                0)
          << "gradients";
    }
  }
}

TEST(SteadySession, TakesLossesWithoutAllocating) {
  const std::vector<Layer> head = {{1}};
  const std::vector<float> head_numbers = initial_parameters<float>(head_parameters(2, head), 1);
  for (const Setting& setting : settings()) {
    for (const std::int64_t batch : {1, 50, 400}) {
      SCOPED_TRACE(testing::Message() << setting.name << ", batch " << batch);
      Session<float> session(setting.field, setting.options);
      const Numbers<float> numbers(setting.field, batch, {0, 0.2, 0.4, 0.9, 1});
      const std::vector<float> at_end(std::size_t(batch), 0.5f), at_all(5 * std::size_t(batch), 0.5f);
      const std::vector<float> mask(at_all.size(), 1.0f);
      const Data<float> data = numbers.data();
      OwnedGradient<float> gradient(numbers, head_numbers.size());
      Gradient<float> wanted = gradient.view();
      wanted.depths = {};
      const Loss<float> last{.head = head, .head_parameters = head_numbers, .targets = view_of(at_end, 1)};
      const Loss<float> all{.head = head,
                            .head_parameters = head_numbers,
                            .targets = view_of(at_all, 1),
                            .mask = view_of(mask, 1)};
      for (const Loss<float>* loss : {&last, &all}) {
        EXPECT_EQ(allocations_of([&] { session.loss(data, numbers.depths, *loss); }), 0) << "value";
        EXPECT_EQ(allocations_of([&] { session.loss(data, numbers.depths, *loss, &wanted); }), 0)
            << "gradient";
      }
    }
  }
}

/// As at the end of an epoch.
TEST(SteadySession, TakesTurnsOfBatchSizesWithoutAllocating) {
  const ProgramField field = plain_field();
  Session<float> session(field);
  const Numbers<float> large(field, 64), small(field, 17);
  std::vector<float> states(3 * large.start.size());
  const Data<float> of_large = large.data(), of_small = small.data();
  EXPECT_EQ(allocations_of([&] {
              session.solve(of_large, large.depths, {states.data(), 3, 128});
              session.solve(of_small, small.depths, {states.data(), 3, 34});
            }),
            0);
}

TEST(SteadyAdam, StepsWithoutAllocating) {
  Adam<float> adam;
  std::vector<float> values(100, 1.0f);
  const std::vector<float> gradient(100, 0.1f);
  EXPECT_EQ(allocations_of([&] { adam.step(values, gradient); }), 0);
}

}  // namespace
}  // namespace fathom
