/// Answers with a kept workspace are those without one, to the last bit.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "fathom/ode/failure.hpp"
#include "runtime/small_models.hpp"

namespace fathom::runtime {
namespace {

const Numbers times = {1, 2, 4, 5};

TEST(RuntimeWorkspace, GivesTheBitsOfACallWithoutIt) {
  for (const ModelFile& file : models_of_every_task()) {
    const Model model(file);
    Workspace workspace(model);
    for (const std::size_t rows : {1, 70, 1, 3, 2, 5, 4, 70}) {  // more batch sizes than are kept
      SCOPED_TRACE(testing::Message() << std::string(name_of(model.spec().task)) << ", " << rows << " rows");
      const Numbers data = some_rows(model, rows, double(rows));
      const Numbers expected = answers_of(model, data, times);
      Numbers found(expected.size());
      answers_into(model, data, times, found, workspace);
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(RuntimeWorkspace, OutlivesItsModelAndMoves) {
  std::optional<Model> model(decay_classifier());
  const Numbers expected = model->predict(Numbers{2});
  Workspace workspace(*model);
  Workspace moved(std::move(workspace));
  const Model copy = *model;
  model.reset();
  Numbers found(2);
  copy.predict_into(Numbers{2}, found, moved);
  EXPECT_EQ(found, expected);
  EXPECT_GT(moved.report().evaluations, 0);
}

TEST(RuntimeWorkspace, IsOneForEachThread) {
  const std::vector<ModelFile> files = models_of_every_task();
  for (const ModelFile& file : files) {
    const Model model(file, {.threads = 2});
    const Numbers data = some_rows(model, 100), expected = answers_of(model, data, times);
    std::vector<Numbers> found(3, Numbers(expected.size()));
    std::vector<std::thread> threads;
    for (Numbers& each : found) {
      threads.emplace_back([&] {
        Workspace workspace(model);
        for (int round = 0; round < 5; ++round) answers_into(model, data, times, each, workspace);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Numbers& each : found) EXPECT_EQ(each, expected);
  }
}

TEST(RuntimeWorkspace, CanBeUsedAgainAfterAFailure) {
  const Model model(linear_series({1e4, 0, 0, 1e4}));
  Workspace workspace(model);
  Numbers found(4);
  EXPECT_THROW(model.forecast_into(Numbers{12, 1}, Numbers{5, 5000}, found, workspace), ode::SolveFailure);
  model.forecast_into(Numbers{12, 1}, Numbers{5, 5.0001}, found, workspace);
  EXPECT_EQ(found, model.forecast(Numbers{12, 1}, {5, 5.0001}));
}

TEST(RuntimeWorkspace, BadCallsAreNamed) {
  const Model one(decay_classifier()), other(decay_classifier());
  Workspace workspace(one);
  Numbers answers(2);
  const auto complains = [](const char* expected, const std::function<void()>& work) {
    EXPECT_NE(complaint(work).find(expected), std::string::npos) << complaint(work);
  };
  complains("for the model that it was made with",
            [&] { other.predict_into(Numbers{1}, answers, workspace); });
  complains("must have room for 4 number(s), got 2", [&] {
    one.predict_into(Numbers{1, 2}, answers, workspace);
  });
}

}  // namespace
}  // namespace fathom::runtime
