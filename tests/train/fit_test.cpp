#include "fathom/train/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "fathom/support/error.hpp"
#include "fathom/train/progress.hpp"
#include "fathom/train/run_folder.hpp"

namespace fathom {
namespace {

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
  std::ifstream file(folder / "a.txt");
  std::string content;
  file >> content;
  EXPECT_EQ(content, "second");
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
