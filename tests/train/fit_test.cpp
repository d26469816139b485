#include "fathom/train/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "fathom/support/error.hpp"
#include "fathom/train/metrics_log.hpp"
#include "fathom/train/progress.hpp"
#include "fathom/train/run_folder.hpp"

namespace fathom {
namespace {

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Fit, LowersTheLossWithEveryOptimiser) {
  for (const Optimizer optimizer : {Optimizer::adam, Optimizer::adamw, Optimizer::sgd}) {
    torch::manual_seed(1);
    torch::nn::Linear model(2, 1);
    const auto x = torch::randn({64, 2}), y = x.sum(1, true);
    const auto history =
        fit(*model, [&](std::int64_t) { return torch::mse_loss(model->forward(x), y); },
            {.iterations = 200, .optimizer = optimizer, .learning_rate = 0.05, .quiet = true});
    ASSERT_EQ(history.losses.size(), 200u);
    EXPECT_LT(history.losses.back(), 0.01 * history.losses.front());
  }
}

TEST(Fit, CountsTheWorkOfEveryIteration) {
  torch::nn::Linear model(1, 1);
  const auto history =
      fit(*model,
          [&](std::int64_t) {
            return model->forward(torch::ones({1, 1})).square().sum();
          },
          {.iterations = 2,
           .report = [] { return ode::SolveReport{.evaluations = 26, .backward_evaluations = 24}; },
           .quiet = true});
  EXPECT_EQ(history.evaluations, (std::vector<std::int64_t>{26, 26}));
  EXPECT_EQ(history.backward_evaluations, (std::vector<std::int64_t>{24, 24}));
}

TEST(Fit, TheObserverSeesEveryIterationAndMayStop) {
  torch::nn::Linear model(1, 1);
  std::vector<std::int64_t> seen;
  const auto history = fit(*model,
                           [&](std::int64_t) {
                             return model->forward(torch::ones({1, 1})).sum();
                           },
                           {.iterations = 10,
                            .observer =
                                [&](const FitRecord& record) {
                                  seen.push_back(record.iteration);
                                  return record.iteration < 3;
                                },
                            .quiet = true});
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(history.losses.size(), 3u);
}

TEST(MetricsLog, IsALineAnIterationThatCanBeReadWhileTraining) {
  const auto folder = std::filesystem::temp_directory_path() / ("fathom log " + std::to_string(getpid()));
  make_run_folder(folder);
  MetricsLog log(folder);
  log.write("vanilla", {.iteration = 1, .loss = 0.5, .evaluations = 26, .seconds = 0.25},
            {{"accuracy", 0.5}});
  log.write("vanilla", {.iteration = 2, .loss = NAN});
  EXPECT_EQ(
      content(folder / "metrics.jsonl"),
      R"({"model":"vanilla","iteration":1,"loss":0.5,"evaluations":26,"backward_evaluations":0,)"
      R"("seconds":0.25,"accuracy":0.5})"
      "\n"
      R"({"model":"vanilla","iteration":2,"loss":null,"evaluations":0,"backward_evaluations":0,"seconds":0.0})"
      "\n");
  std::filesystem::remove_all(folder);
}

TEST(MetricsLog, AResumedOneKeepsWholeLinesUpToTheCheckpoint) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("fathom resumed log " + std::to_string(getpid()));
  make_run_folder(folder);
  std::ofstream(folder / "metrics.jsonl")
      << "{\"iteration\":1}\n{\"iteration\":2}\n{\"iteration\":3}\n{\"iter";
  MetricsLog log(folder, {.keep_until = 2});
  EXPECT_EQ(content(folder / "metrics.jsonl"), "{\"iteration\":1}\n{\"iteration\":2}\n");
  std::filesystem::remove_all(folder);
}

TEST(Fit, StopsWhenTheLossIsNotFinite) {
  torch::nn::Linear model(1, 1);
  const auto loss = [&](std::int64_t iteration) {
    return model->forward(torch::ones({1, 1})).sum() * (iteration == 3 ? NAN : 1.0);
  };
  try {
    fit(*model, loss, {.iterations = 10, .quiet = true});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("iteration 4"), std::string::npos) << error.what();
  }
}

TEST(Duration, IsWrittenForPeople) {
  EXPECT_EQ(duration_text(3.2), "4 s");
  EXPECT_EQ(duration_text(125), "2 min 5 s");
  EXPECT_EQ(duration_text(4200), "1 h 10 min");
}

TEST(RunFolder, AWriteLeavesNoDraftAndReplacesTheWholeFile) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("fathom run folder " + std::to_string(getpid()));
  make_run_folder(folder);
  write_atomically(folder / "a.txt", "first");
  write_atomically(folder / "a.txt", "second");
  EXPECT_EQ(content(folder / "a.txt"), "second");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(RunFolder, AFailedWriteIsAnErrorAndHarmsNothing) {
  EXPECT_THROW(write_atomically("/no/such/folder/metrics.json", "x"), Error);
}

TEST(RunFolder, TheTableAlignsItsColumns) {
  const RunMetrics metrics{.models = {{"a", {{"loss", 0.5}}}, {"longer", {{"loss", 12}}}}};
  EXPECT_EQ(table(metrics), "model   loss\na        0.5\nlonger    12\n");
}

}  // namespace
}  // namespace fathom
