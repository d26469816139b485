#include "fathom/train/learn.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "fathom/model/regularizers.hpp"
#include "fathom/support/error.hpp"
#include "fathom/train/windows.hpp"

namespace fathom {
namespace {

const auto f64 = torch::TensorOptions(torch::kFloat64);

ModelSpec series_spec() {
  ModelSpec spec{.task = Task::series, .inputs = {"x", "v"}};
  spec.head = HeadKind::none;
  spec.field.hidden = {6};
  spec.solver.relative_tolerance = spec.solver.absolute_tolerance = 1e-9;
  spec.precision = Precision::float64;
  return spec;
}

/// Two courses at irregular times.
std::vector<Course> two_courses() {
  torch::manual_seed(2);
  return {{"a", {0, 0.3, 0.35, 1.1, 1.9}, torch::randn({5, 2}, f64)},
          {"b", {5, 5.2, 6.9}, torch::randn({3, 2}, f64)}};
}

TEST(Windows, OverlappingOnesStartAtEveryObservationThatHasEnoughAfterIt) {
  const auto windows = all_windows(two_courses(), {.length = 3, .overlapping = true});
  ASSERT_EQ(windows.size(), 3u);  // two of the first course; the second is shorter than a window and is one
  EXPECT_EQ(windows[1].first, 1);
  EXPECT_EQ(windows[1].later, 3);
  EXPECT_EQ(windows[2].course, 1u);
  EXPECT_EQ(windows[2].later, 2);
}

TEST(Windows, OthersCoverEveryObservationButTheFirstOnce) {
  std::int64_t later = 0;
  for (const Window& window : all_windows(two_courses(), {.length = 3})) later += window.later;
  EXPECT_EQ(later, 4 + 2);
}

TEST(Windows, WithoutALengthACourseIsOne) {
  EXPECT_EQ(all_windows(two_courses(), {.length = 0, .overlapping = true}).size(), 2u);
}

TEST(Windows, OneJointSolveGivesWhatSeparateOnesGive) {
  torch::manual_seed(1);
  Model model = build_model(series_spec());
  const auto courses = two_courses();
  const auto windows = all_windows(courses, {.length = 2, .overlapping = true});
  const JointTimes joint = joint_times(courses, windows);
  const auto together =
      model->trajectory(joint.starts, joint.depths).flatten(0, 1).index_select(0, joint.places);
  std::vector<Tensor> apart, observed;
  for (const Window& window : windows) {
    const Course& course = courses[window.course];
    std::vector<double> depths;
    for (std::int64_t j = 0; j <= window.later; ++j)
      depths.push_back(course.times[std::size_t(window.first + j)] - course.times[std::size_t(window.first)]);
    apart.push_back(
        model->trajectory(course.states.narrow(0, window.first, 1), depths).select(1, 0).slice(0, 1));
    observed.push_back(course.states.narrow(0, window.first + 1, window.later));
  }
  EXPECT_TRUE(torch::allclose(together, torch::cat(apart), 0, 1e-7));
  EXPECT_TRUE(torch::equal(joint.observed, torch::cat(observed)));
}

TEST(Windows, EquallySpacedTimesAreKeptOnceEach) {
  Course course{"", {}, torch::zeros({50, 1}, f64)};
  for (int i = 0; i < 50; ++i) course.times.push_back(0.1 * i);
  const auto windows = all_windows({course}, {.length = 7, .overlapping = true});
  EXPECT_EQ(joint_times({course}, windows).depths.size(), 8u);
}

TEST(Learn, FindsTheDynamicsOfALinearSpiralFromItsCourses) {
  std::vector<Course> courses;
  for (int k = 0; k < 4; ++k) {
    Course course;
    std::vector<Tensor> states;
    for (int i = 0; i < 20; ++i) {
      const double t = 0.1 * i + 0.03 * ((i * 7 + k) % 3);
      course.times.push_back(t);
      states.push_back(torch::tensor(
          {std::exp(-0.2 * t) * std::cos(2 * t + k), std::exp(-0.2 * t) * std::sin(2 * t + k)}, f64));
    }
    course.states = torch::stack(states);
    courses.push_back(course);
  }
  torch::manual_seed(1);
  ModelSpec spec = series_spec();
  spec.field.hidden = {};  // a linear field is exact here
  Model model = build_model(spec);
  const LearnOptions options{.window = 5};
  const auto history =
      fit(*model, learn(model, courses, options), {.iterations = 400, .learning_rate = 0.05, .quiet = true});
  EXPECT_LT(judged(model, courses, options)[1].second, 1e-3) << history.losses.back();
}

TEST(Learn, KineticEnergyIsAddedToTheLoss) {
  torch::manual_seed(1);
  ModelSpec spec{.task = Task::regression, .inputs = {"a", "b"}, .targets = {"y"}};
  spec.precision = Precision::float64;
  Model model = build_model(spec);
  const Rows rows{torch::randn({9, 2}, f64), torch::randn({9, 1}, f64)};
  const double plain = learn(model, rows, {})(0).item<double>();
  const double heavy = learn(model, rows, {.kinetic = 2})(0).item<double>();
  const double energy = model->ode()->solve(rows.inputs).running_loss[-1].mean().item<double>();
  EXPECT_GT(energy, 0);
  EXPECT_NEAR(heavy, plain + 2 * energy, 1e-6);
}

TEST(Learn, AccuracyAndErrorsAreInTheUnitsOfTheData) {
  torch::manual_seed(1);
  ModelSpec spec{.task = Task::regression, .inputs = {"a"}, .targets = {"y"}};
  spec.precision = Precision::float64;
  spec.target_scale = {{10}, {3}};
  Model model = build_model(spec);
  const Tensor x = torch::randn({20, 1}, f64), off = torch::full({20, 1}, 2.0, f64);
  const Rows rows{x, answers(model, x) + off};  // wrong by two deviations of 3
  for (const auto& [name, value] : judged(model, rows, {})) {
    if (name == "loss") {
      EXPECT_NEAR(value, 4, 1e-9);
    } else if (name == "rmse" || name == "mae") {
      EXPECT_NEAR(value, 6, 1e-9);
    }
  }
}

TEST(Learn, ALossThatDoesNotFitTheTaskIsRefused) {
  ModelSpec spec{.task = Task::regression, .inputs = {"a"}, .targets = {"y"}};
  Model model = build_model(spec);
  try {
    learn(model, Rows{torch::zeros({2, 1}), torch::zeros({2, 1})}, {.loss = LossKind::cross_entropy});
    FAIL() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "the loss of a regression is mse, l1 or huber, got `cross-entropy`");
  }
}

}  // namespace
}  // namespace fathom
