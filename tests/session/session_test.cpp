/// A Session solves what it is given, and its gradients are those of finite differences: for start, parameters, inputs, bounds and saved
/// depths, by either derivative, of states and of every loss.
#include "fathom/session.hpp"

#include <gtest/gtest.h>

#include <numbers>

#include "fathom/support/error.hpp"
#include "session/session_problems.hpp"

namespace fathom {
namespace {

const SolveOptions fixed_steps{.steps = FixedSteps{.count = 6}};
const SolveOptions careful{.steps = AdaptiveSteps{.relative_tolerance = 1e-11, .absolute_tolerance = 1e-11}};

/// z' = a z with one parameter a.
ProgramField linear_field() { return network_field({.features = 1, .layers = {{1}}}); }

TEST(Session, SolvesALinearEquation) {
  Session<double> session(linear_field(), careful);
  const std::vector<double> start = {1, -2}, parameters = {0.7, 0}, depths = {0, 0.5, 2};
  std::vector<double> states(6);
  const SolveReport report =
      session.solve({.start = view_of(start, 1), .parameters = parameters}, depths, view_of(states, 2));
  EXPECT_GT(report.accepted, 0);
  for (std::size_t d = 0; d < 3; ++d) {
    EXPECT_NEAR(states[2 * d], std::exp(0.7 * depths[d]), 1e-9);
    EXPECT_NEAR(states[2 * d + 1], -2 * std::exp(0.7 * depths[d]), 1e-9);
  }
}

/// dz(S)/da = S z(S), dz(S)/dz0 = z(S)/z0, dz(S)/dS = a z(S): in closed form.
TEST(Session, GivesTheGradientOfALinearEquation) {
  for (const Derivative derivative : {Derivative::discrete, Derivative::adjoint}) {
    SolveOptions options = careful;
    options.derivative = derivative;
    Session<double> session(linear_field(), options);
    const std::vector<double> start = {1.5}, parameters = {0.7, 0}, depths = {0, 2};
    std::vector<double> states(2), adjoint = {0, 1}, of_start(1), of_parameters(2), of_depths(2);
    session.solve({.start = view_of(start, 1), .parameters = parameters}, depths, view_of(states, 1));
    session.backward(view_of(adjoint, 1),
                     {.start = view_of(of_start, 1), .parameters = of_parameters, .depths = of_depths});
    const double end = 1.5 * std::exp(1.4);
    EXPECT_NEAR(of_start[0], end / 1.5, 1e-8);
    EXPECT_NEAR(of_parameters[0], 2 * end, 1e-8);
    EXPECT_NEAR(of_depths[1], 0.7 * end, 1e-8);
    EXPECT_NEAR(of_depths[0], -0.7 * end, 1e-8);
  }
}

/// sum over depths and numbers of weight x state, so that every state counts by itself.
double weighted_sum(Session<double>& session, const Numbers<double>& numbers,
                    const std::vector<double>& weights) {
  std::vector<double> states(weights.size());
  session.solve(numbers.data(), numbers.depths, view_of(states, numbers.batch * numbers.features));
  double sum = 0;
  for (std::size_t n = 0; n < weights.size(); ++n) sum += weights[n] * states[n];
  return sum;
}

void expect_gradient_of_states(const ProgramField& field, const SolveOptions& options, std::int64_t batch,
                               double tolerance) {
  Session<double> session(field, options);
  Numbers<double> numbers(field, batch);
  const std::vector<double> weights =
      some_numbers<double>(std::int64_t(numbers.depths.size()) * batch * 2, 7);
  const auto loss = [&] { return weighted_sum(session, numbers, weights); };
  OwnedGradient<double> gradient(numbers);
  loss();
  session.backward(view_of(weights, batch * 2), gradient.view());
  expect_slopes(numbers.start, gradient.start, loss, tolerance, "start");
  expect_slopes(numbers.parameters, gradient.parameters, loss, tolerance, "parameter");
  for (std::size_t i = 0; i < numbers.inputs.size(); ++i)
    expect_slopes(numbers.inputs[i], gradient.inputs[i], loss, tolerance, "input");
  expect_slopes(numbers.depths, gradient.depths, loss, tolerance, "depth");
}

TEST(Session, DiscreteGradientsAreThoseOfFiniteDifferences) {
  for (const std::int64_t batch : {1, 3, 40}) {
    SCOPED_TRACE(batch);
    expect_gradient_of_states(controlled_field(), fixed_steps, batch, 2e-9);
    expect_gradient_of_states(plain_field(), fixed_steps, batch, 2e-9);
  }
}

TEST(Session, DiscreteGradientsSurviveCheckpoints) {
  SolveOptions options = fixed_steps;
  options.checkpoint_every = 3;
  expect_gradient_of_states(controlled_field(), options, 3, 2e-9);
  options = fixed_steps;
  options.memory_budget = 64;
  expect_gradient_of_states(controlled_field(), options, 3, 2e-9);
}

TEST(Session, AdjointGradientsAreThoseOfFiniteDifferences) {
  SolveOptions options = careful;
  options.derivative = Derivative::adjoint;
  for (const std::int64_t batch : {1, 20})
    expect_gradient_of_states(controlled_field(), options, batch, 1e-7);
}

/// A loss with all that it reads.
struct LossCase {
  const char* name;
  LossFunction function;
  std::vector<Layer> head = {};
  bool at_all_depths = false;
  enum class Mask { none, rows, numbers } mask = Mask::none;
};

struct OwnedLoss {
  OwnedLoss(const LossCase& test, const Numbers<double>& numbers)
      : function(test.function),
        head(test.head),
        parameters(initial_parameters<double>(head_parameters(numbers.features, head), 5)),
        points(test.at_all_depths ? std::int64_t(numbers.depths.size()) : 1),
        rows(points * numbers.batch),
        answers(head.empty() ? numbers.features : head.back().features),
        targets(some_numbers<double>(rows * answers, 8)) {
    for (std::int64_t n = 0; n < rows; ++n) labels.push_back(n % answers);
    for (std::int64_t n = 0; n < points; ++n) depth_weights.push_back(1 + double(n));
    const bool by_number = test.mask == LossCase::Mask::numbers;
    if (test.mask != LossCase::Mask::none) mask.assign(std::size_t(by_number ? rows * answers : rows), 1);
    for (std::size_t n = 1; n < mask.size(); n += 3) {
      mask[n] = 0;
      const std::size_t first = by_number ? n : n * std::size_t(answers),
                        count = by_number ? 1 : std::size_t(answers);
      std::fill_n(targets.begin() + std::ptrdiff_t(first), count, std::nan(""));
    }
  }

  Loss<double> view() const {
    Loss<double> loss{
        .function = function, .huber_threshold = 0.8, .head = head, .head_parameters = parameters};
    if (function == LossFunction::cross_entropy) {
      loss.labels = labels;
    } else if (function != LossFunction::normal_likelihood) {
      loss.targets = view_of(targets, answers);
    }
    if (!mask.empty()) loss.mask = {mask.data(), rows, std::int64_t(mask.size()) / rows};
    if (points > 1) loss.depth_weights = depth_weights;
    return loss;
  }

  LossFunction function;
  std::vector<Layer> head;
  std::vector<double> parameters;
  std::int64_t points, rows, answers;
  std::vector<double> targets, mask, depth_weights;
  std::vector<std::int64_t> labels;
};

const std::vector<LossCase> loss_cases = {
    {"squares", LossFunction::squares},
    {"squares with a head", LossFunction::squares, {{3, Activation::tanh}, {1}}},
    {"absolute", LossFunction::absolute, {{2}}},
    {"huber", LossFunction::huber, {{2}}},
    {"cross entropy", LossFunction::cross_entropy, {{3}}},
    {"likelihood", LossFunction::normal_likelihood},
    {"squares at all depths", LossFunction::squares, {}, true},
    {"huber of a head at all depths", LossFunction::huber, {{3, Activation::tanh}, {2}}, true},
    {"masked numbers at all depths", LossFunction::squares, {{2}}, true, LossCase::Mask::numbers},
    {"masked rows at all depths", LossFunction::absolute, {}, true, LossCase::Mask::rows},
    {"masked labels at all depths", LossFunction::cross_entropy, {{3}}, true, LossCase::Mask::rows},
    {"masked numbers at the end", LossFunction::huber, {{2}}, false, LossCase::Mask::numbers}};

void expect_gradient_of_loss(const LossCase& test, const ProgramField& field, const SolveOptions& options,
                             std::int64_t batch, double tolerance) {
  SCOPED_TRACE(test.name);
  Session<double> session(field, options);
  Numbers<double> numbers(field, batch);
  OwnedLoss owned(test, numbers);
  const auto loss = [&] { return session.loss(numbers.data(), numbers.depths, owned.view()); };
  OwnedGradient<double> all(numbers, owned.parameters.size()),
      without_depths(numbers, owned.parameters.size());
  const Gradient<double> wanted = all.view();
  Gradient<double> fewer = without_depths.view();
  fewer.depths = {};
  const double value = session.loss(numbers.data(), numbers.depths, owned.view(), &wanted);
  const double again = session.loss(numbers.data(), numbers.depths, owned.view(), &fewer);
  EXPECT_NEAR(value, loss(), 1e-13 * std::abs(value));
  EXPECT_NEAR(value, again, 1e-13 * std::abs(value));
  expect_slopes(numbers.start, all.start, loss, tolerance, "start");
  expect_slopes(numbers.parameters, all.parameters, loss, tolerance, "parameter");
  for (std::size_t i = 0; i < numbers.inputs.size(); ++i)
    expect_slopes(numbers.inputs[i], all.inputs[i], loss, tolerance, "input");
  expect_slopes(owned.parameters, all.head, loss, tolerance, "head");
  expect_slopes(numbers.depths, all.depths, loss, tolerance, "depth");
  // Gradients of depths take another way through the last step; the others must not notice.
  const auto expect_same = [&](const std::vector<double>& one, const std::vector<double>& other,
                               const char* what) {
    for (std::size_t n = 0; n < one.size(); ++n) EXPECT_NEAR(one[n], other[n], 1e-12) << what << " " << n;
  };
  expect_same(without_depths.start, all.start, "start");
  expect_same(without_depths.parameters, all.parameters, "parameters");
  expect_same(without_depths.head, all.head, "head");
}

TEST(SessionLoss, HasTheGradientOfFiniteDifferences) {
  for (const LossCase& test : loss_cases) {
    expect_gradient_of_loss(test, controlled_field(), fixed_steps, 5, 1e-9);
    expect_gradient_of_loss(test, plain_field(), fixed_steps, 1, 1e-9);
  }
}

TEST(SessionLoss, HasItByTheAdjointToo) {
  SolveOptions options = careful;
  options.derivative = Derivative::adjoint;
  for (const LossCase& test : loss_cases) {
    // |d| has a corner that a difference may step over.
    if (test.function != LossFunction::absolute)
      expect_gradient_of_loss(test, controlled_field(), options, 4, 1e-7);
  }
}

/// Written out from the states.
TEST(SessionLoss, IsTheWeightedMeanOfWhatCounts) {
  const ProgramField field = plain_field();
  Session<double> session(field, fixed_steps);
  const Numbers<double> numbers(field, 4);
  const OwnedLoss owned({"", LossFunction::squares, {}, true, LossCase::Mask::numbers}, numbers);
  std::vector<double> states(owned.targets.size());
  session.solve(numbers.data(), numbers.depths, view_of(states, 8));
  double sum = 0, total = 0;
  for (std::size_t n = 0; n < states.size(); ++n) {
    if (owned.mask[n] == 0) continue;
    const double weight = owned.depth_weights[n / 8], difference = states[n] - owned.targets[n];
    sum += weight * difference * difference;
    total += weight;
  }
  EXPECT_NEAR(session.loss(numbers.data(), numbers.depths, owned.view()), sum / total, 1e-13);
}

TEST(SessionLoss, DoesNotChangeWithTheScaleOfItsWeights) {
  const ProgramField field = plain_field();
  Session<double> session(field, fixed_steps);
  const Numbers<double> numbers(field, 4);
  OwnedLoss owned({"", LossFunction::huber, {}, true}, numbers);
  const double before = session.loss(numbers.data(), numbers.depths, owned.view());
  for (double& weight : owned.depth_weights) weight *= 8;
  EXPECT_EQ(session.loss(numbers.data(), numbers.depths, owned.view()), before);
}

TEST(SessionLoss, AddsRunningLossesAtTheEnd) {
  const ProgramField field = network_field({.features = 2,
                                            .layers = {{6, Activation::tanh}, {2}},
                                            .running = {Running::path_length, Running::kinetic_energy}});
  for (const Derivative derivative : {Derivative::discrete, Derivative::adjoint}) {
    SolveOptions options = derivative == Derivative::discrete ? fixed_steps : careful;
    options.derivative = derivative;
    Session<double> session(field, options);
    Numbers<double> numbers(field, 3);
    const OwnedLoss owned({"", LossFunction::squares}, numbers);
    const std::vector<double> running_weights = {0.5, 2};
    const auto call = [&] {
      Loss<double> loss = owned.view();
      loss.running_weights = running_weights;
      return loss;
    };
    const auto loss = [&] { return session.loss(numbers.data(), numbers.depths, call()); };
    std::vector<double> states(numbers.depths.size() * 6), running(numbers.depths.size() * 6);
    session.solve(numbers.data(), numbers.depths, view_of(states, 6), view_of(running, 6));
    double expected = session.loss(numbers.data(), numbers.depths, owned.view());
    for (std::size_t n = 0; n < 6; ++n) expected += running_weights[n % 2] * running[12 + n] / 3;
    EXPECT_NEAR(loss(), expected, 1e-12);
    OwnedGradient<double> gradient(numbers);
    const Gradient<double> wanted = gradient.view();
    session.loss(numbers.data(), numbers.depths, call(), &wanted);
    expect_slopes(numbers.start, gradient.start, loss, 1e-7, "start");
    expect_slopes(numbers.parameters, gradient.parameters, loss, 1e-7, "parameter");
    expect_slopes(numbers.depths, gradient.depths, loss, 1e-7, "depth");
  }
}

/// Of z' = a z + b the divergence is a: log p(x) = log N(z(S)) + a S.
TEST(SessionLoss, IsTheLikelihoodOfALinearFlow) {
  const ProgramField with_divergence = network_field(
      {.features = 1, .layers = {{1, Activation::tanh}, {1}}, .running = {Running::divergence}});
  Session<double> session(with_divergence, careful);
  const std::vector<double> depths = {0, 1}, weights = {-1};
  // tanh is linear to rounding near 0: v tanh(w z) = v w z.
  const double w = 1e-4, rate = 0.3;
  const std::vector<double> parameters = {w, 0, rate / w, 0}, start = {0.4, -0.9};
  const double found =
      session.loss({.start = view_of(start, 1), .parameters = parameters}, depths,
                   {.function = LossFunction::normal_likelihood, .running_weights = weights});
  double expected = 0;
  for (const double x : start) {
    const double z = x * std::exp(rate);
    expected -= (-0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi) + rate) / 2;
  }
  EXPECT_NEAR(found, expected, 1e-7);
}

template <class T> std::vector<T> solved_states(Session<T>& session, const Numbers<T>& numbers) {
  std::vector<T> states(numbers.depths.size() * numbers.start.size());
  session.solve(numbers.data(), numbers.depths, view_of(states, std::int64_t(numbers.start.size())));
  return states;
}

TEST(Session, GivesTheSameWhateverItSolvedBefore) {
  const ProgramField field = controlled_field();
  Session<float> session(field);
  std::vector<std::vector<float>> first, again;
  const std::vector<std::int64_t> batches = {1, 7, 100, 3, 64, 200};
  for (const std::int64_t batch : batches)
    first.push_back(solved_states(session, Numbers<float>(field, batch)));
  for (const std::int64_t batch : batches) {
    Session<float> fresh(field);
    again.push_back(solved_states(session, Numbers<float>(field, batch)));
    EXPECT_EQ(again.back(), solved_states(fresh, Numbers<float>(field, batch)));
  }
  EXPECT_EQ(first, again);
}

TEST(Session, TakesTheSameStepsForAnyNumberOfThreads) {
  const ProgramField field = plain_field();
  Session<float> one(field), three(field, {.threads = 3});
  const Numbers<float> numbers(field, 700);
  EXPECT_EQ(solved_states(one, numbers), solved_states(three, numbers));
}

TEST(Session, NeedsNothingOfTheCallersForItsGradient) {
  const ProgramField field = controlled_field();
  for (const Derivative derivative : {Derivative::discrete, Derivative::adjoint}) {
    Session<double> session(field, {.derivative = derivative, .checkpoint_every = 2});
    Numbers<double> numbers(field, 3);
    const std::vector<double> adjoint(numbers.depths.size() * 6, 1.0);
    OwnedGradient<double> expected(numbers), found(numbers);
    solved_states(session, numbers);
    session.backward(view_of(adjoint, 6), expected.view());
    solved_states(session, numbers);
    for (auto* list : {&numbers.start, &numbers.parameters, &numbers.inputs[0]})
      std::fill(list->begin(), list->end(), std::nan(""));
    session.backward(view_of(adjoint, 6), found.view());
    EXPECT_EQ(found.start, expected.start);
    EXPECT_EQ(found.parameters, expected.parameters);
    EXPECT_EQ(found.inputs, expected.inputs);
    EXPECT_EQ(found.depths, expected.depths);
  }
}

TEST(Session, StopsWhereTheObserverSays) {
  const ProgramField field = plain_field();
  Session<double> session(field, {.steps = FixedSteps{.count = 10}, .observer = [](const StepEvent& event) {
                                    return event.step.end > 0.45 ? Next::stop : Next::proceed;
                                  }});
  const Numbers<double> numbers(field, 2, {0, 0.3, 0.8, 1});
  std::vector<double> states(16, -77), adjoint(16, 1.0);
  const SolveReport report = session.solve(numbers.data(), numbers.depths, view_of(states, 4));
  EXPECT_TRUE(report.stopped);
  EXPECT_NEAR(report.reached, 0.5, 1e-12);
  EXPECT_NE(states[4], -77);
  EXPECT_EQ(states[8], -77) << "not reached";
  OwnedGradient<double> gradient(numbers);
  session.backward(view_of(adjoint, 4), gradient.view());
  const std::vector<double> up = {1, 1, 1, 1, 1, 1, 1, 1};
  Session<double> shorter(field, {.steps = FixedSteps{.grid = {0, 0.1, 0.2, 0.3, 0.4, 0.5}}});
  const Numbers<double> reached(field, 2, {0, 0.3});
  OwnedGradient<double> expected(reached);
  solved_states(shorter, reached);
  shorter.backward(view_of(up, 4), expected.view());
  for (std::size_t n = 0; n < expected.parameters.size(); ++n)
    EXPECT_NEAR(gradient.parameters[n], expected.parameters[n], 1e-7);
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

TEST(Session, SaysWhatDoesNotFit) {
  const ProgramField field = controlled_field();
  Session<double> session(field);
  const Numbers<double> numbers(field, 3);
  std::vector<double> states(18), few(3);
  const auto solve = [&](const Data<double>& data, View<double> to) {
    return message_of([&] { session.solve(data, numbers.depths, to); });
  };
  Data<double> data = numbers.data();
  EXPECT_EQ(solve(data, view_of(states, 5)), "`states` must be 3 x 6, got 3 x 5");
  data.parameters = few;
  EXPECT_EQ(solve(data, view_of(states, 6)), "`parameters` must be the 52 numbers of the field, got 3");
  data = numbers.data();
  data.inputs.clear();
  EXPECT_EQ(solve(data, view_of(states, 6)), "the field has 1 input(s), got 0");
  data = numbers.data();
  data.start = {};
  EXPECT_EQ(solve(data, view_of(states, 6)), "a solve needs at least one sample, got 0");
  EXPECT_EQ(message_of([&] { session.backward(view_of(states, 6), {}); }),
            "backward() needs a solve() before it, with a derivative that is not `none`");
  EXPECT_EQ(message_of([&] { session.loss(numbers.data(), numbers.depths, {}); }),
            "the loss needs `targets`, got none");
  const std::vector<std::int64_t> labels = {0, 1, 2};
  EXPECT_EQ(message_of([&] {
              session.loss(numbers.data(), numbers.depths,
                           {.function = LossFunction::cross_entropy, .labels = labels});
            }),
            "labels must be 0 to 1 for 2 scores, got 2");
  const std::vector<double> targets(6), mask(3, 0.0);
  EXPECT_EQ(message_of([&] {
              session.loss(numbers.data(), numbers.depths,
                           {.targets = view_of(targets, 2), .mask = view_of(mask, 1)});
            }),
            "a loss needs a number that counts; all are masked, or have the weight 0");
}

TEST(Session, CanBeUsedAfterAFailure) {
  const ProgramField field = linear_field();
  Session<double> session(field);
  const std::vector<double> start = {1}, good = {0.5, 0}, bad = {std::nan(""), 0}, depths = {0, 1};
  std::vector<double> states(2), expected(2);
  session.solve({.start = view_of(start, 1), .parameters = good}, depths, view_of(expected, 1));
  EXPECT_THROW(session.solve({.start = view_of(start, 1), .parameters = bad}, depths, view_of(states, 1)),
               SolveFailure);
  session.solve({.start = view_of(start, 1), .parameters = good}, depths, view_of(states, 1));
  EXPECT_EQ(states, expected);
}

TEST(ProgramField, IsComparedByWhatItIs) {
  EXPECT_EQ(controlled_field(), controlled_field());
  EXPECT_FALSE(controlled_field() == plain_field());
  const auto with = [](const Basis& basis) {
    return network_field({.features = 2, .layers = {{4, Activation::tanh, basis}, {2}}});
  };
  const Basis five{.kind = BasisKind::chebyshev, .size = 5},
      wider{.kind = BasisKind::chebyshev, .size = 5, .span = {0, 2}};
  EXPECT_EQ(with(five), with(five));
  EXPECT_FALSE(with(five) == with(wider));
}

TEST(ProgramField, NamesItsParameters) {
  const ProgramField field = controlled_field();
  ASSERT_EQ(field.parameters().size(), 4U);
  EXPECT_EQ(field.parameters()[0].name, "layer.1.weight");
  EXPECT_EQ(field.parameters()[0].shape, (std::vector<std::int64_t>{2, 5, 3}));
  EXPECT_EQ(field.parameters()[3].shape, (std::vector<std::int64_t>{2}));
  const auto fresh = initial_parameters<float>(field, 1);
  EXPECT_EQ(std::int64_t(fresh.size()), field.parameter_count());
  for (std::size_t n = 0; n < 15; ++n) {
    EXPECT_LE(std::abs(fresh[n]), 1 / std::sqrt(3.0f));
    EXPECT_EQ(fresh[15 + n], 0) << "a fresh layer does not vary with depth";
  }
}

/// The promise spares a Session what it knows already, for every batch size that it has kept.
TEST(SessionParameters, ThatAreUnchangedAreReadOnce) {
  const ProgramField field = plain_field();
  Session<double> session(field), fresh(field);
  const Numbers<double> one(field, 1), many(field, 40);
  const std::vector<double> others(one.parameters.size(), 0.1);
  const auto end_of = [&](Session<double>& which, const Numbers<double>& numbers,
                          const std::vector<double>& parameters, bool unchanged) {
    Data<double> data = numbers.data();
    data.parameters = parameters;
    data.parameters_unchanged = unchanged;
    std::vector<double> states(numbers.depths.size() * numbers.start.size());
    which.solve(data, numbers.depths, view_of(states, std::int64_t(numbers.start.size())));
    return states;
  };
  const auto expected = end_of(fresh, one, one.parameters, false);
  const auto expected_of_many = end_of(fresh, many, one.parameters, false);
  EXPECT_EQ(end_of(session, one, one.parameters, true), expected);  // the first call reads them nevertheless
  EXPECT_EQ(end_of(session, one, others, true), expected);          // a broken promise: nobody looked
  EXPECT_NE(end_of(session, one, others, false), expected);
  EXPECT_EQ(end_of(session, many, one.parameters, false), expected_of_many);
  EXPECT_EQ(end_of(session, one, one.parameters, true), expected);  // this batch size has not read them yet
}

/// Its gradient is still of the depths of that solve, not of those that were refused.
TEST(Session, KeepsItsSolveWhereALaterCallIsRefused) {
  const ProgramField field = plain_field();
  const Numbers<double> numbers(field, 2);
  Session<double> session(field);
  std::vector<double> states(3 * 4), expected(numbers.parameters.size()), found(expected.size());
  const std::vector<double> up(states.size(), 1.0);
  session.solve(numbers.data(), numbers.depths, view_of(states, 4));
  session.backward(view_of(up, 4), {.parameters = expected});
  EXPECT_THROW(session.solve(numbers.data(), std::vector<double>{0, 1}, view_of(states, 4)), InvalidArgument);
  EXPECT_THROW(session.backward({up.data(), 2, 4}, {.parameters = found}), InvalidArgument);
  session.backward(view_of(up, 4), {.parameters = found});
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace fathom
