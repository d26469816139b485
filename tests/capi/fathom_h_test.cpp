/// fathom.h as a careless caller uses it: whatever it is given, it answers with a code and a message that say what is wrong.
#include "fathom/fathom.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using Numbers = std::vector<double>;

fathom_error error;

fathom_view view(const Numbers& numbers, int64_t rows = 1) {
  return fathom_f64(numbers.data(), rows, int64_t(numbers.size()) / rows);
}
fathom_out out(Numbers& numbers, int64_t rows = 1) {
  return fathom_out_f64(numbers.data(), rows, int64_t(numbers.size()) / rows);
}

std::string model_path(const std::string& name) {
  return FATHOM_SOURCE_DIR "/fuzz/corpus/model_file/good-" + name + ".safetensors";
}

/// Handles that are freed where they end.
struct Model {
  explicit Model(const std::string& name) {
    EXPECT_EQ(fathom_model_load(model_path(name).c_str(), nullptr, &handle, &error), FATHOM_OK)
        << error.message;
  }
  ~Model() { fathom_model_free(handle); }
  fathom_model* handle = nullptr;
};

struct Field {
  Field(std::vector<fathom_layer> layers, int64_t features) {
    fathom_network_options options = {};
    options.size = sizeof options;
    options.features = features;
    options.layers = layers.data();
    options.layer_count = layers.size();
    EXPECT_EQ(fathom_field_network(&options, &handle, &error), FATHOM_OK) << error.message;
  }
  explicit Field(const fathom_callback_options& options) {
    EXPECT_EQ(fathom_field_callbacks(&options, &handle, &error), FATHOM_OK) << error.message;
  }
  explicit Field(const Model& model) {
    EXPECT_EQ(fathom_field_of_model(model.handle, &handle, &error), FATHOM_OK) << error.message;
  }
  ~Field() { fathom_field_free(handle); }
  fathom_field* handle = nullptr;
};

fathom_layer layer(int64_t features, int32_t activation = FATHOM_IDENTITY) {
  return {sizeof(fathom_layer), features, activation, 0};
}

struct Session {
  explicit Session(const Field& field, fathom_session_options options = {}) {
    options.size = sizeof options;
    EXPECT_EQ(fathom_session_create(field.handle, &options, &handle, &error), FATHOM_OK) << error.message;
  }
  ~Session() { fathom_session_free(handle); }
  fathom_session* handle = nullptr;
};

/// z' = theta z of one feature, by callbacks that count.
struct Growth {
  fathom_callback_options options() {
    fathom_callback_options made = {};
    made.size = sizeof made;
    made.type = FATHOM_FLOAT64;
    made.features = 1;
    made.parameters = 1;
    made.context = this;
    made.rate = [](void* self, const fathom_evaluation* at, void* rate) {
      Growth& growth = *static_cast<Growth*>(self);
      ++growth.calls;
      if (growth.inside) growth.inside();
      for (int64_t i = 0; i < at->samples; ++i)
        static_cast<double*>(rate)[i] =
            *static_cast<const double*>(at->parameters) * static_cast<const double*>(at->state)[i];
      return growth.answer;
    };
    made.product = [](void*, const fathom_evaluation* at, const void* adjoint, const fathom_product* to) {
      const auto* a = static_cast<const double*>(adjoint);
      const auto* z = static_cast<const double*>(at->state);
      const double theta = *static_cast<const double*>(at->parameters);
      for (int64_t i = 0; i < at->samples; ++i) {
        static_cast<double*>(to->state)[i] += theta * a[i];
        if (to->parameters) *static_cast<double*>(to->parameters) += z[i] * a[i];
      }
      return 0;
    };
    return made;
  }
  int calls = 0;
  int32_t answer = 0;
  std::function<void()> inside = {};
};

fathom_data data_of(const Numbers& start, int64_t samples, const Numbers& parameters) {
  fathom_data data = {};
  data.size = sizeof data;
  data.start = view(start, samples);
  data.parameters = view(parameters);
  return data;
}

/// The code is the expected one, and the message says so.
void expect_refused(fathom_code code, fathom_code expected, const std::string& said) {
  EXPECT_EQ(code, expected);
  EXPECT_EQ(error.code, expected);
  EXPECT_NE(std::string(error.message).find(said), std::string::npos) << error.message;
}

TEST(CModels, DescribeThemselves) {
  const Model model("classes");
  fathom_model_description about = {};
  about.size = sizeof about;
  ASSERT_EQ(fathom_model_describe(model.handle, &about, &error), FATHOM_OK);
  EXPECT_EQ(about.task, FATHOM_CLASSIFICATION);
  EXPECT_EQ(about.inputs, 2);
  EXPECT_EQ(about.answers, 2);
  EXPECT_STREQ(about.columns[1], "b");
  EXPECT_STREQ(about.labels[1], "y");
  EXPECT_EQ(about.targets, nullptr);
  EXPECT_NE(std::strstr(about.specification, "\"classification\""), nullptr);
  EXPECT_EQ(about.parameters, 3 * 3 + 3 + 3 * 3 + 3);
}

TEST(CModels, AnswerWithAndWithoutAWorkspace) {
  const Model model("classes");
  fathom_workspace* workspace = nullptr;
  ASSERT_EQ(fathom_workspace_create(model.handle, &workspace, &error), FATHOM_OK);
  const Numbers rows = {1, 2, 3, 4};
  Numbers one(4), other(4);
  EXPECT_EQ(fathom_model_predict(model.handle, view(rows, 2), out(one, 2), nullptr, &error), FATHOM_OK);
  EXPECT_EQ(fathom_model_predict(model.handle, view(rows, 2), out(other, 2), workspace, &error), FATHOM_OK);
  EXPECT_EQ(one, other);
  EXPECT_NEAR(one[0] + one[1], 1, 1e-12);
  fathom_workspace_free(workspace);
}

TEST(CModels, ForecastAndSample) {
  const Model series("series"), density("density");
  fathom_model_description about = {};
  about.size = sizeof about;
  fathom_model_describe(series.handle, &about, &error);
  const Numbers state(size_t(about.inputs), 0.5), times = {0, 0.5, 1};
  Numbers answers(3 * size_t(about.answers));
  EXPECT_EQ(
      fathom_model_forecast(series.handle, view(state), times.data(), 3, out(answers, 3), nullptr, &error),
      FATHOM_OK)
      << error.message;
  fathom_model_describe(density.handle, &about, &error);
  Numbers samples(5 * size_t(about.inputs)), again(samples.size());
  EXPECT_EQ(fathom_model_sample(density.handle, 7, out(samples, 5), &error), FATHOM_OK) << error.message;
  EXPECT_EQ(fathom_model_sample(density.handle, 7, out(again, 5), &error), FATHOM_OK);
  EXPECT_EQ(samples, again);
}

TEST(CModels, AreTheSameFromTheirBytes) {
  std::ifstream file(model_path("classes"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  fathom_model* model = nullptr;
  ASSERT_EQ(fathom_model_parse(bytes.data(), bytes.size(), nullptr, &model, &error), FATHOM_OK);
  fathom_model_free(model);
  expect_refused(fathom_model_parse(bytes.data(), bytes.size() / 2, nullptr, &model, &error), FATHOM_FILE,
                 "");
  EXPECT_EQ(model, nullptr);
}

TEST(CModels, RefuseWhatDoesNotFit) {
  const Model classes("classes"), other("series");
  Numbers row = {1, 2}, answers(2), three(3);
  std::vector<float> single = {1, 2};
  fathom_workspace* foreign = nullptr;
  ASSERT_EQ(fathom_workspace_create(other.handle, &foreign, &error), FATHOM_OK);
  const auto predict = [&](fathom_view rows, fathom_out to, fathom_workspace* work = nullptr) {
    return fathom_model_predict(classes.handle, rows, to, work, &error);
  };
  expect_refused(predict(view(three), out(answers)), FATHOM_INVALID_ARGUMENT,
                 "`rows` must be 1 x 2, got 1 x 3");
  expect_refused(predict(view(row), out(three)), FATHOM_INVALID_ARGUMENT,
                 "`answers` must be 1 x 2, got 1 x 3");
  expect_refused(predict(view(row), {}), FATHOM_INVALID_ARGUMENT, "`answers` must be 1 x 2, got none");
  expect_refused(predict(fathom_f32(single.data(), 1, 2), out(answers)), FATHOM_INVALID_ARGUMENT,
                 "of the type 2 (FATHOM_FLOAT64), got 1");
  expect_refused(predict(view(row), out(answers), foreign), FATHOM_INVALID_ARGUMENT, "for the model");
  expect_refused(predict(fathom_f64(row.data(), INT64_MAX / 2, 2), out(answers)), FATHOM_INVALID_ARGUMENT,
                 "cannot have");
  expect_refused(predict(fathom_f64(row.data(), -1, 2), out(answers)), FATHOM_INVALID_ARGUMENT,
                 "cannot have");
  expect_refused(fathom_model_forecast(classes.handle, view(row), row.data(), 2, out(three), nullptr, &error),
                 FATHOM_INVALID_ARGUMENT, "");
  expect_refused(fathom_model_predict(nullptr, view(row), out(answers), nullptr, &error),
                 FATHOM_INVALID_ARGUMENT, "`model` must be given, got NULL");
  EXPECT_EQ(fathom_model_predict(nullptr, view(row), out(answers), nullptr, nullptr),
            FATHOM_INVALID_ARGUMENT);
  fathom_workspace_free(foreign);
}

TEST(CSessions, TrainTheFieldOfAModelFurther) {
  const Model model("classes");
  const Field field(model);
  fathom_field_description about = {};
  about.size = sizeof about;
  ASSERT_EQ(fathom_field_describe(field.handle, &about, &error), FATHOM_OK);
  Numbers parameters(size_t(about.parameters)), slope(parameters.size());
  ASSERT_EQ(fathom_model_parameters(model.handle, out(parameters), &error), FATHOM_OK) << error.message;
  fathom_session_options options = {};
  options.relative_tolerance = options.absolute_tolerance = 1e-9;
  const Session session(field, options);
  const Numbers start = {0.1, 0.2, 0.3}, targets = {1, 0, 0}, depths = {0, 1};
  const fathom_data data = data_of(start, 1, parameters);
  fathom_loss loss = {};
  loss.size = sizeof loss;
  loss.targets = view(targets);
  fathom_gradient gradient = {};
  gradient.size = sizeof gradient;
  gradient.parameters = out(slope);
  const auto take = [&] {
    double value = 0;
    EXPECT_EQ(fathom_session_loss(session.handle, &data, depths.data(), 2, &loss, &gradient, &value, &error),
              FATHOM_OK)
        << error.message;
    return value;
  };
  take();
  const Numbers found = slope;
  for (const size_t n : {size_t(0), parameters.size() - 1}) {
    const double there = parameters[n], width = 1e-5;
    parameters[n] = there + width;
    const double above = take();
    parameters[n] = there - width;
    const double below = take();
    parameters[n] = there;
    EXPECT_NEAR((above - below) / (2 * width), found[n], 1e-7);
  }
}

TEST(CSessions, SolveCallbacksAndPullBack) {
  Growth growth;
  const Field field(growth.options());
  fathom_session_options options = {};
  options.relative_tolerance = options.absolute_tolerance = 1e-10;
  const Session session(field, options);
  const Numbers start = {1, 2}, theta = {0.5}, depths = {0, 1}, up = {0, 0, 1, 1};
  Numbers states(4), of_theta(1), of_start(2), of_depths(2);
  fathom_report report = {};
  report.size = sizeof report;
  const fathom_data data = data_of(start, 2, theta);
  ASSERT_EQ(fathom_session_solve(session.handle, &data, depths.data(), 2, out(states, 4), &report, &error),
            FATHOM_OK)
      << error.message;
  EXPECT_NEAR(states[3], 2 * std::exp(0.5), 1e-8);
  EXPECT_EQ(report.evaluations, growth.calls);
  fathom_gradient gradient = {};
  gradient.size = sizeof gradient;
  gradient.parameters = out(of_theta), gradient.start = out(of_start, 2), gradient.depths = out(of_depths);
  ASSERT_EQ(fathom_session_backward(session.handle, view(up, 4), &gradient, &error), FATHOM_OK)
      << error.message;
  EXPECT_NEAR(of_theta[0], 3 * std::exp(0.5), 1e-8);
  EXPECT_NEAR(of_start[1], std::exp(0.5), 1e-8);
  EXPECT_NEAR(of_depths[1], 3 * 0.5 * std::exp(0.5), 1e-7);
}

/// Two samples: one at 0, 1 and 2, the other at 0 and 0.5.
TEST(CSessions, SolveSamplesOverDepthsOfTheirOwn) {
  Growth growth;
  const Field field(growth.options());
  fathom_session_options options = {};
  options.relative_tolerance = options.absolute_tolerance = 1e-10;
  const Session session(field, options);
  const Numbers start = {1, 2}, theta = {0.5}, depths = {0, 1, 2, 0, 0.5}, up = {0, 0, 1, 0, 1};
  const std::vector<int64_t> counts = {3, 2};
  Numbers states(5), of_theta(1);
  fathom_data data = data_of(start, 2, theta);
  data.depth_counts = counts.data();
  data.depth_counts_size = 1;
  expect_refused(
      fathom_session_solve(session.handle, &data, depths.data(), 5, out(states, 5), nullptr, &error),
      FATHOM_INVALID_ARGUMENT, "`counts` needs a number of depths for each of the 2 samples, got 1");
  data.depth_counts_size = 2;
  ASSERT_EQ(fathom_session_solve(session.handle, &data, depths.data(), 5, out(states, 5), nullptr, &error),
            FATHOM_OK)
      << error.message;
  EXPECT_NEAR(states[2], std::exp(1.0), 1e-8);
  EXPECT_NEAR(states[4], 2 * std::exp(0.25), 1e-8);
  fathom_gradient gradient = {};
  gradient.size = sizeof gradient;
  gradient.parameters = out(of_theta);
  ASSERT_EQ(fathom_session_backward(session.handle, view(up, 5), &gradient, &error), FATHOM_OK)
      << error.message;
  EXPECT_NEAR(of_theta[0], 2 * std::exp(1.0) + 0.5 * 2 * std::exp(0.25), 1e-7);
  fathom_loss loss = {};
  loss.size = sizeof loss;
  loss.targets = view(states, 5);
  double value = 1;
  ASSERT_EQ(fathom_session_loss(session.handle, &data, depths.data(), 5, &loss, nullptr, &value, &error),
            FATHOM_OK)
      << error.message;
  EXPECT_EQ(value, 0);
}

TEST(CSessions, RefuseWhatDoesNotFit) {
  Growth growth;
  const Field field(growth.options());
  const Session session(field);
  const Numbers start = {1}, theta = {0.5}, none, depths = {0, 1};
  Numbers states(2), three(3);
  fathom_data data = data_of(start, 1, theta);
  const auto solve = [&](Numbers& to) {
    return fathom_session_solve(session.handle, &data, depths.data(), 2, out(to, int64_t(to.size())), nullptr,
                                &error);
  };
  expect_refused(solve(three), FATHOM_INVALID_ARGUMENT, "`states` must be 2 x 1, got 3 x 1");
  fathom_gradient gradient = {};
  gradient.size = sizeof gradient;
  expect_refused(fathom_session_backward(session.handle, view(states, 2), &gradient, &error),
                 FATHOM_INVALID_ARGUMENT, "needs a solve before it");
  data.parameters = {};
  expect_refused(solve(states), FATHOM_INVALID_ARGUMENT, "`parameters` must be the 1 numbers");
  data.parameters = view(theta);
  data.size = 3;
  expect_refused(solve(states), FATHOM_INVALID_ARGUMENT,
                 "`size` of `fathom_data` must be sizeof(fathom_data)");
  data.size = sizeof data;
  EXPECT_EQ(solve(states), FATHOM_OK) << error.message;
  growth.answer = 42;
  expect_refused(solve(states), FATHOM_CALLBACK, "the callback `rate` returned 42");
  growth.answer = 0;
  EXPECT_EQ(solve(states), FATHOM_OK) << "a session can be used again";
  fathom_session* other = nullptr;
  fathom_session_options options = {};
  options.size = sizeof options, options.type = FATHOM_FLOAT32;
  expect_refused(fathom_session_create(field.handle, &options, &other, &error), FATHOM_INVALID_ARGUMENT,
                 "are of the type 2, and the session is of the type 1");
  options.type = 0, options.method = "dopri6";
  expect_refused(fathom_session_create(field.handle, &options, &other, &error), FATHOM_INVALID_ARGUMENT,
                 "did you mean `dopri5`");
  EXPECT_EQ(other, nullptr);
}

TEST(CSessions, TellWhyASolveFailed) {
  Growth growth;
  const Field field(growth.options());
  fathom_session_options options = {};
  options.step_limit = 2;
  const Session session(field, options);
  const Numbers start = {1}, theta = {3}, depths = {0, 50};
  Numbers states(2);
  const fathom_data data = data_of(start, 1, theta);
  expect_refused(
      fathom_session_solve(session.handle, &data, depths.data(), 2, out(states, 2), nullptr, &error),
      FATHOM_TOO_MANY_STEPS, "solve failed at depth");
  const Numbers nan = {NAN};
  const fathom_data bad = data_of(start, 1, nan);
  expect_refused(
      fathom_session_solve(session.handle, &bad, depths.data(), 2, out(states, 2), nullptr, &error),
      FATHOM_NOT_FINITE, "nan");
}

TEST(CSessions, RefuseTheirOwnCallback) {
  Growth growth;
  const Field field(growth.options());
  const Session session(field);
  const Numbers start = {1}, theta = {0.5}, depths = {0, 1};
  Numbers states(2), inner(2);
  const fathom_data data = data_of(start, 1, theta);
  const auto solve = [&](Numbers& to) {
    return fathom_session_solve(session.handle, &data, depths.data(), 2, out(to, 2), nullptr, &error);
  };
  bool refused = false;
  growth.inside = [&] { refused = solve(inner) == FATHOM_INVALID_ARGUMENT; };
  EXPECT_EQ(solve(states), FATHOM_OK);
  EXPECT_TRUE(refused);
}

/// Members that a newer caller has are refused where they say something, and an older caller's shorter struct has defaults.
TEST(CStructs, OfOtherVersionsAreUnderstood) {
  struct Newer {
    fathom_model_options known;
    int64_t later;
  };
  Newer options = {};
  options.known.size = sizeof options;
  fathom_model* model = nullptr;
  EXPECT_EQ(fathom_model_load(model_path("classes").c_str(), &options.known, &model, &error), FATHOM_OK);
  options.later = 1;
  fathom_model* other = nullptr;
  expect_refused(fathom_model_load(model_path("classes").c_str(), &options.known, &other, &error),
                 FATHOM_INVALID_ARGUMENT, "does not know");
  fathom_model_description about = {};
  about.size = offsetof(fathom_model_description, inputs);
  about.inputs = -1;
  EXPECT_EQ(fathom_model_describe(model, &about, &error), FATHOM_OK);
  EXPECT_EQ(about.task, FATHOM_CLASSIFICATION);
  EXPECT_EQ(about.inputs, -1) << "beyond the size";
  fathom_model_free(model);
}

TEST(CThreads, ShareAModelAndAFieldWithSessionsOfTheirOwn) {
  const Model model("classes");
  const Field field({layer(8, FATHOM_TANH), layer(1)}, 1);
  const Numbers row = {1, 2}, start(50, 0.3), depths = {0, 1};
  Numbers parameters(8 + 8 + 8 + 1);
  ASSERT_EQ(fathom_field_initialise(field.handle, 1, out(parameters), &error), FATHOM_OK) << error.message;
  std::vector<Numbers> answers(4, Numbers(2)), states(4, Numbers(100));
  std::vector<int> codes(4, -1);
  std::vector<std::thread> threads;
  for (size_t n = 0; n < 4; ++n) {
    threads.emplace_back([&, n] {
      fathom_session_options options = {};
      options.size = sizeof options, options.threads = 2;
      fathom_session* session = nullptr;
      const fathom_data data = data_of(start, 50, parameters);
      int code = fathom_session_create(field.handle, &options, &session, nullptr);
      for (int round = 0; round < 5; ++round) {
        code |= fathom_session_solve(session, &data, depths.data(), 2, out(states[n], 100), nullptr, nullptr);
        code |= fathom_model_predict(model.handle, view(row), out(answers[n]), nullptr, nullptr);
      }
      fathom_session_free(session);
      codes[n] = code;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(codes[n], FATHOM_OK);
    EXPECT_EQ(answers[n], answers[0]);
    EXPECT_EQ(states[n], states[0]);
  }
}

}  // namespace
