/// Models with known answers, run without torch.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "runtime/small_models.hpp"

namespace fathom::runtime {
namespace {

TEST(Runtime, a_series_turns_as_it_must) {
  const Model model(linear_series({0, 1, -1, 0}));
  const Numbers times = {5, 6, 9, 15};
  const Numbers states = model.forecast(Numbers{12, 0, 10, 4}, times);  // x = 10 + 2 cos, x = 10 + 4 sin
  ASSERT_EQ(states.size(), times.size() * 4);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double s = (times[i] - 5) / 2;
    EXPECT_NEAR(states[4 * i + 0], 10 + 2 * std::cos(s), 1e-9);
    EXPECT_NEAR(states[4 * i + 1], -2 * std::sin(s), 1e-9);
    EXPECT_NEAR(states[4 * i + 2], 10 + 4 * std::sin(s), 1e-9);
    EXPECT_NEAR(states[4 * i + 3], 4 * std::cos(s), 1e-9);
  }
}

TEST(Runtime, a_forecast_may_run_backwards) {
  const Model model(linear_series({0, 1, -1, 0}));
  const Numbers there = model.forecast(Numbers{12, 1}, {5, 9});
  const Numbers back = model.forecast(Numbers{there[2], there[3]}, {9, 5});
  EXPECT_NEAR(back[2], 12, 1e-9);
  EXPECT_NEAR(back[3], 1, 1e-9);
}

TEST(Runtime, classes_are_probabilities_of_the_score) {
  const Model model(decay_classifier());
  const Numbers rows = {2, -3, 0, 700};
  const Numbers found = model.predict(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double expected = 1 / (1 + std::exp(-rows[i] * std::exp(-1)));
    EXPECT_NEAR(found[2 * i], expected, 1e-8);
    EXPECT_NEAR(found[2 * i] + found[2 * i + 1], 1, 1e-15);
  }
  EXPECT_EQ(model.label(std::span(found).first(2)), "high");
  EXPECT_EQ(model.label(std::span(found).subspan(2, 2)), "low");
  EXPECT_GT(model.solve_rows(rows).report.evaluations, 0);
}

TEST(Runtime, threads_may_share_a_model) {
  const Model model(decay_classifier(), {.threads = 2});
  Numbers rows;
  for (int i = 0; i < 500; ++i) rows.push_back(std::sin(i) * 4);
  const Numbers alone = model.predict(rows);
  std::vector<Numbers> found(4);
  std::vector<std::thread> threads;
  for (Numbers& each : found) threads.emplace_back([&] { each = model.predict(rows); });
  for (std::thread& thread : threads) thread.join();
  for (const Numbers& each : found) EXPECT_EQ(each, alone);
}

/// z' = -z at a loose tolerance: the larger z, the smaller its steps.
ModelFile loose_classifier(bool steps_per_sample) {
  ModelFile file = decay_classifier();
  file.spec.solver = {
      .relative_tolerance = 1e-4, .absolute_tolerance = 1e-4, .steps_per_sample = steps_per_sample};
  return file;
}

TEST(Runtime, a_row_with_steps_of_its_own_has_the_same_bits_alone_and_among_a_thousand) {
  Numbers rows;
  for (int i = 0; i < 1000; ++i) rows.push_back(1.2 * std::sin(i) * (i % 100 == 0 ? 10 : 1));
  for (const int threads : {1, 2}) {
    const Model apart(loose_classifier(true), {.threads = threads}), joint(loose_classifier(false));
    const Answer all = apart.solve_rows(rows);
    const Numbers together = joint.predict(rows);
    double joint_differs = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Numbers alone = apart.predict(Numbers{rows[i]});
      EXPECT_EQ(all.values[2 * i], alone[0]) << i;
      EXPECT_EQ(all.values[2 * i + 1], alone[1]) << i;
      EXPECT_EQ(alone, joint.predict(Numbers{rows[i]}));
      joint_differs = std::max(joint_differs, std::abs(together[2 * i] - alone[0]));
    }
    EXPECT_GT(joint_differs, 1e-7) << "with joint steps a row depends on the others";
    EXPECT_LT(joint_differs, 1e-4);
    EXPECT_GT(all.report.evaluations, 0);
    EXPECT_GT(all.report.seconds, 0);
  }
}

TEST(Runtime, a_row_with_steps_of_its_own_that_fails_is_named) {
  ModelFile file = linear_series({1e4, 0, 0, 1e4});
  file.spec.solver.steps_per_sample = true;
  const std::string message = complaint([&] {
    Model(file).forecast(Numbers{10, 0, 10, 0, 12, 1}, {5, 5000});
  });
  EXPECT_NE(message.find("z[2, "), std::string::npos) << message;
}

TEST(Runtime, no_rows_give_no_answers) {
  EXPECT_TRUE(Model(decay_classifier()).predict({}).empty());
  EXPECT_TRUE(Model(linear_series({0, 1, -1, 0})).forecast({}, {5, 6}).empty());
}

TEST(Runtime, bad_questions_are_named) {
  const Model series(linear_series({0, 1, -1, 0})), classes(decay_classifier());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto complains = [](const char* expected, const std::function<void()>& work) {
    const std::string message = complaint(work);
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  complains("rows of 2 columns, got 3 number(s)", [&] { series.forecast(Numbers{1, 2, 3}, {5, 6}); });
  complains("row 2 has no finite number in column `v`", [&] {
    series.forecast(Numbers{1, 2, 3, nan}, {5, 6});
  });
  complains("not predicted", [&] { series.predict(Numbers{1, 2}); });
  complains("only the model of a series can forecast; this one is for classification", [&] {
    classes.forecast(Numbers{1}, {0, 1});
  });
  complains("only the model of a density can be sampled", [&] { classes.sample(3); });
  complains("has 2 probabilities, got 3", [&] { classes.label(Numbers{0, 1, 0}); });
  complains("at least 1 thread", [] { Model(decay_classifier(), {.threads = 0}); });
  complains("there is no file `none.safetensors`", [] { load("none.safetensors"); });
}

TEST(Runtime, a_flow_that_explodes_is_a_failure_with_a_place) {
  const Model model(linear_series({1e4, 0, 0, 1e4}));
  EXPECT_NE(complaint([&] {
              model.forecast(Numbers{12, 1}, {5, 5000});
            }).find("solve failed at depth"),
            std::string::npos);
}

TEST(Runtime, weights_that_are_not_numbers_are_a_failure_too) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Model model(linear_series({nan, 0, 0, 1}));
  EXPECT_NE(complaint([&] {
              model.forecast(Numbers{12, 1}, {5, 6});
            }).find("is nan (step size "),
            std::string::npos)
      << complaint([&] {
           model.forecast(Numbers{12, 1}, {5, 6});
         });
}

}  // namespace
}  // namespace fathom::runtime
