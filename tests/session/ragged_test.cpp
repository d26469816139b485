/// A ragged batch is, to the last bit, a call for each of its samples; and its gradients are those of finite differences.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "fathom/support/error.hpp"
#include "session/session_problems.hpp"

namespace fathom {
namespace {

const SolveOptions fixed_steps{.steps = FixedSteps{.count = 5}};

/// Samples of 2 to 4 points over spans of their own, every third backwards, and some that begin elsewhere.
template <class T> struct Ragged {
  Ragged(const ProgramField& field, std::int64_t batch) : numbers(field, batch) {
    for (std::int64_t i = 0; i < batch; ++i) {
      const std::int64_t count = 2 + i % 3;
      const double first = 0.1 * double(i % 5), length = (i % 3 == 1 ? -1 : 1) * (0.4 + 0.05 * double(i % 7));
      for (std::int64_t n = 0; n < count; ++n)
        depths.push_back(first + length * double(n) / double(count - 1));
      counts.push_back(count);
    }
    numbers.depths = depths;  // a gradient has a number for each point
  }

  RaggedDepths view() const { return {.depths = depths, .counts = counts}; }
  std::int64_t points() const { return std::int64_t(depths.size()); }
  std::int64_t batch() const { return std::int64_t(counts.size()); }
  std::int64_t begin(std::int64_t sample) const {
    return std::accumulate(counts.begin(), counts.begin() + sample, std::int64_t(0));
  }
  /// One sample as a batch of its own.
  std::span<const double> depths_of(std::int64_t i) const {
    return std::span(depths).subspan(std::size_t(begin(i)), std::size_t(counts[std::size_t(i)]));
  }
  Data<T> data_of(std::int64_t i) const {
    Data<T> data = numbers.data();
    const auto row = [&](View<const T>& view) { view = {view.data + i * view.columns, 1, view.columns}; };
    row(data.start);
    for (View<const T>& input : data.inputs) row(input);
    return data;
  }

  Numbers<T> numbers;
  std::vector<double> depths;
  std::vector<std::int64_t> counts;
};

/// What a Session says to one sample after the other.
template <class T> struct OneByOne {
  OneByOne(Session<T>& session, const Ragged<T>& ragged, const std::vector<T>& up)
      : states(up.size()), gradient(ragged.numbers), parameters(ragged.numbers.parameters.size(), 0.0) {
    const std::int64_t features = ragged.numbers.features;
    std::vector<T> slope(parameters.size());
    for (std::int64_t i = 0; i < ragged.batch(); ++i) {
      const auto depths = ragged.depths_of(i);
      const std::int64_t at = ragged.begin(i), count = std::int64_t(depths.size());
      session.solve(ragged.data_of(i), depths, {states.data() + at * features, count, features});
      Gradient<T> to{.start = {gradient.start.data() + i * features, 1, features},
                     .parameters = slope,
                     .depths = std::span(gradient.depths).subspan(std::size_t(at), depths.size())};
      for (std::size_t k = 0; k < gradient.inputs.size(); ++k) {
        const std::int64_t columns = ragged.numbers.input_columns[k];
        to.inputs.push_back({gradient.inputs[k].data() + i * columns, 1, columns});
      }
      session.backward({up.data() + at * features, count, features}, to);
      for (std::size_t n = 0; n < slope.size(); ++n) parameters[n] += double(slope[n]);
    }
  }
  std::vector<T> states;
  OwnedGradient<T> gradient;
  std::vector<double> parameters;
};

template <class T> void expect_sums(const std::vector<T>& found, const std::vector<double>& expected) {
  const double rounding = sizeof(T) == 4 ? 1e-5 : 1e-13;
  for (std::size_t n = 0; n < found.size(); ++n)
    EXPECT_NEAR(found[n], expected[n], rounding * (1 + std::abs(expected[n]))) << n;
}

template <class T> void expect_one_by_one(const ProgramField& field, const SolveOptions& options) {
  const Ragged<T> ragged(field, 40);
  Session<T> alone(field, options), session(field, options);
  const std::vector<T> up = some_numbers<T>(ragged.points() * ragged.numbers.features, 7);
  const OneByOne<T> expected(alone, ragged, up);
  for (int round = 0; round < 2; ++round) {
    std::vector<T> states(up.size());
    OwnedGradient<T> found(ragged.numbers);
    const SolveReport report =
        session.solve(ragged.numbers.data(), ragged.view(), view_of(states, ragged.numbers.features));
    EXPECT_EQ(states, expected.states);
    ASSERT_EQ(session.sample_reports().size(), 40u);
    std::int64_t evaluations = 0;
    for (const SolveReport& one : session.sample_reports()) evaluations += one.evaluations;
    EXPECT_EQ(report.evaluations, evaluations);
    session.backward(view_of(up, ragged.numbers.features), found.view());
    EXPECT_EQ(found.start, expected.gradient.start);
    EXPECT_EQ(found.inputs, expected.gradient.inputs);
    EXPECT_EQ(found.depths, expected.gradient.depths);
    expect_sums(found.parameters, expected.parameters);
  }
}

TEST(RaggedSession, IsACallForEachSample) {
  for (const int threads : {1, 2}) {
    SolveOptions options;
    options.threads = threads;
    expect_one_by_one<float>(controlled_field(), options);
    expect_one_by_one<double>(plain_field(), options);
  }
  SolveOptions checkpoints = fixed_steps;
  checkpoints.checkpoint_every = 2;
  expect_one_by_one<double>(controlled_field(), checkpoints);
}

TEST(RaggedSession, SumsDoNotDependOnTheNumberOfThreads) {
  const ProgramField field = plain_field();
  const Ragged<float> ragged(field, 100);
  const std::vector<float> targets = some_numbers<float>(ragged.points() * 2, 5);
  std::vector<std::vector<float>> slopes;
  std::vector<double> values;
  for (const int threads : {1, 2, 3}) {
    Session<float> session(field, {.threads = threads});
    std::vector<float>& slope = slopes.emplace_back(ragged.numbers.parameters.size());
    const Gradient<float> gradient{.parameters = slope};
    values.push_back(
        session.loss(ragged.numbers.data(), ragged.view(), {.targets = view_of(targets, 2)}, &gradient));
  }
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
  EXPECT_EQ(slopes[0], slopes[1]);
  EXPECT_EQ(slopes[0], slopes[2]);
}

/// A loss with everything: a head, weights of points, numbers that are missing.
struct FullLoss {
  explicit FullLoss(const Ragged<double>& ragged, bool at_end)
      : rows(at_end ? ragged.batch() : ragged.points()),
        targets(some_numbers<double>(rows * 3, 8)),
        mask(targets.size(), 1.0),
        weights(std::size_t(rows)) {
    for (std::size_t n = 0; n < weights.size(); ++n) weights[n] = 0.5 + 0.25 * double(n % 4);
    for (std::size_t n = 0; n < mask.size(); n += 5) mask[n] = 0;
    for (std::size_t n = 0; n < mask.size(); n += 5) targets[n] = std::numeric_limits<double>::quiet_NaN();
    head_numbers = initial_parameters<double>(head_parameters(2, head), 4);
  }
  Loss<double> view(std::int64_t begin, std::int64_t count) const {
    const auto some = [&](const std::vector<double>& all) {
      return View<const double>{all.data() + begin * 3, count, 3};
    };
    return {.head = head,
            .head_parameters = head_numbers,
            .targets = some(targets),
            .mask = some(mask),
            .depth_weights = std::span(weights).subspan(std::size_t(begin), std::size_t(count))};
  }
  /// What the loss of these rows is divided by.
  double total(std::int64_t begin, std::int64_t count) const {
    double sum = 0;
    for (std::int64_t n = 3 * begin; n < 3 * (begin + count); ++n)
      sum += weights[std::size_t(n / 3)] * mask[std::size_t(n)];
    return sum;
  }

  std::int64_t rows;
  std::vector<double> targets, mask, weights, head_numbers;
  std::vector<Layer> head = {{4, Activation::tanh}, {3}};
};

TEST(RaggedSession, TakesTheLossOfEachSample) {
  const ProgramField field = controlled_field();
  const Ragged<double> ragged(field, 35);
  for (const bool at_end : {false, true}) {
    SCOPED_TRACE(at_end ? "at the end" : "at all points");
    const FullLoss loss(ragged, at_end);
    Session<double> session(field), alone(field);
    double expected = 0;
    std::vector<double> slope(ragged.numbers.parameters.size(), 0.0),
        expected_head(loss.head_numbers.size(), 0.0);
    for (std::int64_t i = 0; i < ragged.batch(); ++i) {
      const std::int64_t begin = at_end ? i : ragged.begin(i),
                         count = at_end ? 1 : ragged.counts[std::size_t(i)];
      std::vector<double> own(slope.size()), own_head(expected_head.size());
      const Gradient<double> to{.parameters = own, .head = own_head};
      const double share = loss.total(begin, count) / loss.total(0, loss.rows);
      expected += share * alone.loss(ragged.data_of(i), ragged.depths_of(i), loss.view(begin, count), &to);
      for (std::size_t n = 0; n < own.size(); ++n) slope[n] += share * own[n];
      for (std::size_t n = 0; n < own_head.size(); ++n) expected_head[n] += share * own_head[n];
    }
    OwnedGradient<double> found(ragged.numbers, loss.head_numbers.size());
    const Gradient<double> all = found.view();
    const Loss<double> given = loss.view(0, loss.rows);
    EXPECT_NEAR(session.loss(ragged.numbers.data(), ragged.view(), given, &all), expected, 1e-14);
    EXPECT_EQ(session.loss(ragged.numbers.data(), ragged.view(), given),
              session.loss(ragged.numbers.data(), ragged.view(), given, &all));
    expect_sums(found.parameters, slope);
    expect_sums(found.head, expected_head);
  }
}

TEST(RaggedSession, GradientsOfALossAreThoseOfFiniteDifferences) {
  const ProgramField field = controlled_field();
  Ragged<double> ragged(field, 4);
  for (const bool at_end : {false, true}) {
    SCOPED_TRACE(at_end ? "at the end" : "at all points");
    FullLoss loss(ragged, at_end);
    Session<double> session(field, fixed_steps);
    OwnedGradient<double> found(ragged.numbers, loss.head_numbers.size());
    const Gradient<double> all = found.view();
    const auto take = [&](const Gradient<double>* to = nullptr) {
      return session.loss(ragged.numbers.data(), ragged.view(), loss.view(0, loss.rows), to);
    };
    take(&all);
    expect_slopes(
        ragged.numbers.start, found.start, [&] { return take(); }, 1e-9, "start");
    expect_slopes(
        ragged.numbers.parameters, found.parameters, [&] { return take(); }, 1e-9, "parameter");
    expect_slopes(
        ragged.numbers.inputs[0], found.inputs[0], [&] { return take(); }, 1e-9, "input");
    expect_slopes(
        loss.head_numbers, found.head, [&] { return take(); }, 1e-9, "head");
    expect_slopes(
        ragged.depths, found.depths, [&] { return take(); }, 1e-7, "depth");
  }
}

TEST(RaggedSession, AddsRunningLossesOfEachSamplesWay) {
  const ProgramField field = network_field({.features = 2,
                                            .layers = {{6, Activation::tanh}, {2}},
                                            .running = {Running::path_length, Running::kinetic_energy}});
  Ragged<double> ragged(field, 5);
  Session<double> session(field, fixed_steps);
  const std::vector<double> weights = {0.3, 0.7};
  const Loss<double> loss{.function = LossFunction::none, .running_weights = weights};
  std::vector<double> states(std::size_t(ragged.points()) * 2), running(states.size());
  session.solve(ragged.numbers.data(), ragged.view(), view_of(states, 2), view_of(running, 2));
  double expected = 0;
  for (std::int64_t i = 0; i < 5; ++i) {
    const std::size_t last = std::size_t(ragged.begin(i) + ragged.counts[std::size_t(i)] - 1);
    expected += (0.3 * running[2 * last] + 0.7 * running[2 * last + 1]) / 5;
  }
  OwnedGradient<double> found(ragged.numbers);
  const Gradient<double> all = found.view();
  const auto take = [&](const Gradient<double>* to = nullptr) {
    return session.loss(ragged.numbers.data(), ragged.view(), loss, to);
  };
  EXPECT_NEAR(take(&all), expected, 1e-14);
  expect_slopes(
      ragged.numbers.parameters, found.parameters, [&] { return take(); }, 1e-9, "parameter");
  expect_slopes(
      ragged.numbers.start, found.start, [&] { return take(); }, 1e-9, "start");
}

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "no complaint";
}

TEST(RaggedSession, BadCallsAreNamed) {
  const ProgramField field = plain_field();
  const Ragged<double> ragged(field, 3);  // of 2, 3 and 4 points
  Session<double> session(field);
  std::vector<double> states(2 * 9);
  const auto solve = [&](const std::vector<std::int64_t>& counts) {
    return complaint([&] {
      session.solve(ragged.numbers.data(), {.depths = ragged.depths, .counts = counts}, view_of(states, 2));
    });
  };
  EXPECT_NE(solve({2, 3}).find("for each of the 3 samples, got 2"), std::string::npos) << solve({2, 3});
  EXPECT_NE(solve({2, 3, 1}).find("a start and an end"), std::string::npos);
  EXPECT_NE(solve({2, 3, 5}).find("a start and an end"), std::string::npos);
  EXPECT_NE(solve({2, 3, 3}).find("has 1 more than"), std::string::npos);
  EXPECT_EQ(solve({2, 3, 4}), "no complaint");
  SolveOptions adjoint;
  adjoint.derivative = Derivative::adjoint;
  Session<double> other(field, adjoint);
  EXPECT_NE(complaint([&] {
              other.solve(ragged.numbers.data(), ragged.view(), view_of(states, 2));
            }).find("`discrete` or `none`"),
            std::string::npos);
}

TEST(RaggedSession, TakesTurnsWithOtherCalls) {
  const ProgramField field = plain_field();
  const Ragged<double> ragged(field, 3);
  const Numbers<double> even(field, 6);
  Session<double> session(field);
  std::vector<double> states(2 * 9), even_states(even.depths.size() * even.start.size());
  std::vector<double> slope(even.parameters.size()), expected(slope.size());
  const std::vector<double> up(even_states.size(), 1.0);
  session.solve(even.data(), even.depths, view_of(even_states, 12));
  session.backward(view_of(up, 12), {.parameters = expected});
  session.solve(ragged.numbers.data(), ragged.view(), view_of(states, 2));
  session.solve(even.data(), even.depths, view_of(even_states, 12));
  EXPECT_TRUE(session.sample_reports().empty());
  session.backward(view_of(up, 12), {.parameters = slope});
  EXPECT_EQ(slope, expected);
}

/// z' = -1000 z: the way of the second sample is long enough for its steps to be held by stability.
TEST(RaggedSession, TellsThatStabilityLimitsASample) {
  Session<double> session(network_field({.features = 1, .layers = {{1}}}));
  const std::vector<double> start = {1, 1}, parameters = {-1000, 0}, depths = {0, 1e-4, 0, 10};
  const std::vector<std::int64_t> counts = {2, 2};
  std::vector<double> states(4);
  const SolveReport report =
      session.solve({.start = view_of(start, 1), .parameters = parameters},
                    RaggedDepths{.depths = depths, .counts = counts}, view_of(states, 1));
  EXPECT_FALSE(session.sample_reports()[0].limits.stability_from);
  EXPECT_TRUE(session.sample_reports()[1].limits.stability_from);
  EXPECT_EQ(report.limits.stability_from, session.sample_reports()[1].limits.stability_from);
}

}  // namespace
}  // namespace fathom
