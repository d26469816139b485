#include "fathom/train/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "fathom/field/mlp.hpp"
#include "fathom/model/neural_ode.hpp"
#include "fathom/support/error.hpp"
#include "fathom/train/batches.hpp"
#include "fathom/train/checkpoint.hpp"
#include "fathom/train/metrics_log.hpp"
#include "fathom/train/progress.hpp"
#include "fathom/train/run_folder.hpp"

namespace fathom {
namespace {

constexpr Optimizer all_optimizers[] = {Optimizer::adam, Optimizer::adamw, Optimizer::sgd, Optimizer::lbfgs};

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Fit, LowersTheLossWithEveryOptimiser) {
  for (const Optimizer optimizer : all_optimizers) {
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

TEST(Fit, AnIterationThatFailsIsTakenBackAndTheRestGoesOn) {
  torch::nn::Linear model(1, 1);
  std::vector<double> rates;
  const auto x = torch::ones({1, 1});
  const auto loss = [&](std::int64_t iteration) {
    if (iteration == 2) throw ode::SolveFailure(ode::FailureReason::too_many_steps, {}, "on purpose");
    return model->forward(x).square().sum() * (iteration == 4 ? NAN : 1.0);
  };
  const auto history = fit(*model, loss,
                           {.iterations = 40,
                            .optimizer = Optimizer::sgd,
                            .learning_rate = 0.1,
                            .observer =
                                [&](const FitRecord& record) {
                                  rates.push_back(record.learning_rate);
                                  return true;
                                },
                            .quiet = true});
  EXPECT_EQ(history.failures, 2);
  EXPECT_TRUE(std::isnan(history.losses[2]) && std::isnan(history.losses[4]));
  EXPECT_EQ(history.losses[3], history.losses[1]) << "the step that led to the failure must be undone";
  EXPECT_DOUBLE_EQ(rates[3], 0.05);
  EXPECT_DOUBLE_EQ(rates.back(), 0.1) << "the rate must recover";
  EXPECT_LT(history.losses.back(), history.losses.front());
}

TEST(Fit, GivesUpAfterManyFailuresInARowWithTheRemedyOfTheLast) {
  torch::nn::Linear model(1, 1);
  const auto loss = [&](std::int64_t) { return model->forward(torch::ones({1, 1})).sum() * NAN; };
  try {
    fit(*model, loss, {.iterations = 10, .failure_limit = 4, .quiet = true});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("4 failed iterations in a row"), std::string::npos) << message;
    EXPECT_NE(message.find("lower `learning_rate`"), std::string::npos) << message;
  }
}

TEST(Fit, AWrongArgumentIsNotRetried) {
  torch::nn::Linear model(1, 1);
  int calls = 0;
  const auto loss = [&](std::int64_t) -> Tensor {
    calls += 1;
    throw InvalidArgument("wrong");
  };
  EXPECT_THROW(fit(*model, loss, {.quiet = true}), InvalidArgument);
  EXPECT_EQ(calls, 1);
}

/// Training ends with an `Expected` in the first loss whose field calls `raise`.
template <class Expected, class Raise> void expect_no_second_call(Raise&& raise) {
  torch::nn::Linear model(1, 1);
  int calls = 0;
  NeuralOde faulty(own_field({.rate = [&](const Tensor&, const Tensor&, const Tensor& z) {
    raise();
    return -z;
  }}));
  const auto loss = [&](std::int64_t) {
    calls += 1;
    return faulty->forward(model->forward(torch::ones({2, 1}))).sum();
  };
  EXPECT_THROW(fit(*model, loss, {.quiet = true}), Expected);
  EXPECT_EQ(calls, 1);
}

TEST(Fit, AMistakeInTheFieldIsNotRetried) {
  expect_no_second_call<ode::SolveFailure>([] { torch::ones({2, 3}).matmul(torch::ones({2, 3})); });
  expect_no_second_call<ode::SolveFailure>([] { throw std::logic_error("not written yet"); });
}

TEST(Fit, TheWantOfMemoryIsNotRetriedAndKeepsItsType) {
  expect_no_second_call<std::bad_alloc>([] { throw std::bad_alloc(); });
}

TEST(Fit, AMistakeInTheFieldOfAValidationIsNotPassedOver) {
  torch::nn::Linear model(1, 1);
  const auto loss = [&](std::int64_t) { return model->forward(torch::ones({1, 1})).square().sum(); };
  const auto figures = []() -> Figures {
    throw ode::SolveFailure(ode::FailureReason::field_threw, {}, "on purpose");
  };
  EXPECT_THROW(fit(*model, loss, {.validation = {.figures = figures, .every = 1}, .quiet = true}),
               ode::SolveFailure);
}

TEST(Fit, AGradientThatIsTooLongIsScaledDown) {
  torch::nn::Linear model(torch::nn::LinearOptions(1, 1).bias(false));
  const double before = model->weight.item<double>();
  fit(*model, [&](std::int64_t) { return 1000 * model->weight.sum(); },
      {.iterations = 1,
       .optimizer = Optimizer::sgd,
       .learning_rate = 1,
       .largest_gradient = 0.5,
       .quiet = true});
  EXPECT_NEAR(before - model->weight.item<double>(), 0.5, 1e-5);
}

TEST(Fit, EndsWithTheBestParametersWhenTheValidationGetsWorse) {
  torch::nn::Linear model(torch::nn::LinearOptions(1, 1).bias(false));
  {
    torch::NoGradGuard no_graph;
    model->weight.fill_(0);
  }
  // Each step adds 1 to the weight; the validation likes 5.
  const auto history =
      fit(*model, [&](std::int64_t) { return -model->weight.sum(); },
          {.iterations = 100,
           .optimizer = Optimizer::sgd,
           .learning_rate = 1,
           .validation = {.figures = [&]() -> Figures {
                            return {{"distance", std::abs(model->weight.item<double>() - 5)}};
                          },
                          .every = 1,
                          .patience = 3},
           .quiet = true});
  EXPECT_EQ(history.end, FitEnd::no_improvement);
  EXPECT_EQ(history.iteration, 8);
  EXPECT_EQ(history.best_iteration, 5);
  EXPECT_EQ(model->weight.item<double>(), 5);
}

TEST(Fit, AValidationOfNaNIsNeverTheBest) {
  for (const std::vector<double>& figures : {std::vector<double>{NAN, 3, 2, 1, NAN, 5}, {4, NAN, 1, NAN}}) {
    torch::nn::Linear model(torch::nn::LinearOptions(1, 1).bias(false));
    torch::nn::init::zeros_(model->weight);
    std::size_t validation = 0;
    // Each step adds 1 to the weight.
    const auto history = fit(*model, [&](std::int64_t) { return -model->weight.sum(); },
                             {.iterations = std::int64_t(figures.size()),
                              .optimizer = Optimizer::sgd,
                              .learning_rate = 1,
                              .validation = {.figures = [&]() -> Figures {
                                               return {{"figure", figures.at(validation++)}};
                                             },
                                             .every = 1,
                                             .patience = 3},
                              .quiet = true});
    const auto best = std::find(figures.begin(), figures.end(), 1) - figures.begin() + 1;
    EXPECT_EQ(history.best_iteration, best);
    EXPECT_EQ(model->weight.item<double>(), double(best));
  }
}

TEST(Fit, WithoutAValidationThatIsANumberTheLastParametersStay) {
  torch::nn::Linear model(torch::nn::LinearOptions(1, 1).bias(false));
  torch::nn::init::zeros_(model->weight);
  const auto history = fit(*model, [&](std::int64_t) { return -model->weight.sum(); },
                           {.iterations = 6,
                            .optimizer = Optimizer::sgd,
                            .learning_rate = 1,
                            .validation = {.figures = []() -> Figures {
                                             return {{"figure", NAN}};
                                           },
                                           .every = 1},
                            .quiet = true});
  EXPECT_FALSE(history.best_iteration);
  EXPECT_EQ(model->weight.item<double>(), 6);
}

TEST(Fit, StopsWhenItsTimeIsUp) {
  torch::nn::Linear model(1, 1);
  const auto history = fit(*model,
                           [&](std::int64_t) {
                             return model->forward(torch::ones({1, 1})).sum();
                           },
                           {.iterations = 1'000'000'000, .time_budget = 0.05, .quiet = true});
  EXPECT_EQ(history.end, FitEnd::out_of_time);
  EXPECT_LT(history.seconds, 5);
}

/// A run of 30 iterations of a Neural ODE that uses torch's generator, validation and a failure; stopped after `stop`.
struct Sitting {
  NeuralOde model{nullptr};
  std::vector<double> losses;
};
Sitting sit(Optimizer optimizer, const std::filesystem::path& file, std::int64_t stop) {
  torch::manual_seed(3);
  Sitting sitting{.model = NeuralOde(autonomous(mlp({.features = {2, 8, 2}})))};
  Batches batches({.samples = 50, .size = optimizer == Optimizer::lbfgs ? 0 : 16, .seed = 4});
  const auto data = torch::randn({50, 2});
  const auto loss = [&](std::int64_t iteration) {
    if (iteration == 13) throw Error("on purpose");
    const auto x = data.index_select(0, batches.rows(iteration));
    const auto noise = optimizer == Optimizer::lbfgs ? torch::zeros({1}) : 0.1 * torch::randn({x.size(0), 2});
    return (sitting.model->forward(x) + x + noise).square().mean();
  };
  const FitOptions options{.iterations = 30,
                           .optimizer = optimizer,
                           .learning_rate = optimizer == Optimizer::lbfgs ? 1 : 0.02,
                           .momentum = optimizer == Optimizer::sgd ? 0.5 : 0,
                           .schedule = {.warm_up = 4, .decay = CosineDecay{}},
                           .validation = {.figures = [&]() -> Figures {
                                            const torch::NoGradGuard no_graph;
                                            const auto error = sitting.model->forward(data) + data;
                                            return {{"validation", error.square().mean().item<double>()}};
                                          },
                                          .every = 4},
                           .checkpoint = {.file = file, .resume = true},
                           .observer =
                               [&](const FitRecord& record) {
                                 sitting.losses.push_back(record.loss);
                                 return record.iteration != stop;
                               },
                           .quiet = true};
  fit(*sitting.model, loss, options);
  return sitting;
}

TEST(Fit, AResumedRunIsTheSameBitForBit) {
  const auto file =
      std::filesystem::temp_directory_path() / ("fathom checkpoint " + std::to_string(getpid()));
  for (const Optimizer optimizer : all_optimizers) {
    std::filesystem::remove(file);
    const Sitting whole = sit(optimizer, {}, -1);
    std::vector<double> losses;
    for (const std::int64_t stop : {1, 7, 13, 14, 21, -1}) {
      const Sitting part = sit(optimizer, file, stop);
      losses.insert(losses.end(), part.losses.begin(), part.losses.end());
      if (stop != -1) continue;
      for (std::size_t i = 0; i < whole.model->parameters().size(); ++i)
        EXPECT_TRUE(torch::equal(whole.model->parameters()[i], part.model->parameters()[i]));
    }
    ASSERT_EQ(losses.size(), whole.losses.size());
    EXPECT_EQ(std::count_if(losses.begin(), losses.end(), [](double loss) { return std::isnan(loss); }), 1);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_TRUE(losses[i] == whole.losses[i] || (std::isnan(losses[i]) && std::isnan(whole.losses[i])))
          << "optimiser " << int(optimizer) << ", iteration " << i + 1 << ": " << losses[i] << " and "
          << whole.losses[i];
    }
  }
  std::filesystem::remove(file);
}

TEST(Fit, ACheckpointOfAnotherModelIsRefused) {
  const auto file = std::filesystem::temp_directory_path() / ("fathom other " + std::to_string(getpid()));
  torch::nn::Linear small(1, 1), large(2, 1);
  write_checkpoint(file, {}, *small);
  try {
    fit(*large, [&](std::int64_t) { return large->weight.sum(); },
        {.checkpoint = {.file = file, .resume = true}, .quiet = true});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is of another model: its `weight`"), std::string::npos)
        << error.what();
  }
  std::filesystem::remove(file);
}

TEST(Schedule, WarmsUpThenDecays) {
  const Schedule steps{.warm_up = 4, .decay = StepDecay{.every = 3, .factor = 0.1}};
  EXPECT_DOUBLE_EQ(rate_factor(steps, 0, 100), 0.25);
  EXPECT_DOUBLE_EQ(rate_factor(steps, 3, 100), 1);
  EXPECT_DOUBLE_EQ(rate_factor(steps, 6, 100), 1);
  EXPECT_DOUBLE_EQ(rate_factor(steps, 7, 100), 0.1);
  const Schedule cosine{.decay = CosineDecay{.floor = 0.2}};
  EXPECT_DOUBLE_EQ(rate_factor(cosine, 0, 100), 1);
  EXPECT_DOUBLE_EQ(rate_factor(cosine, 50, 100), 0.6);
  EXPECT_DOUBLE_EQ(rate_factor(cosine, 100, 100), 0.2);
}

TEST(Batches, AnEpochSeesEveryRowOnceInAnOrderOfItsOwn) {
  Batches batches({.samples = 10, .size = 4, .seed = 1});
  ASSERT_EQ(batches.per_epoch(), 3);
  const auto epoch = [&](std::int64_t number) {
    return torch::cat({batches.rows(3 * number), batches.rows(3 * number + 1), batches.rows(3 * number + 2)});
  };
  EXPECT_TRUE(torch::equal(std::get<0>(epoch(0).sort()), torch::arange(10)));
  EXPECT_FALSE(torch::equal(epoch(0), epoch(1)));
  Batches again({.samples = 10, .size = 4, .seed = 1}), other({.samples = 10, .size = 4, .seed = 2});
  EXPECT_TRUE(torch::equal(again.rows(4), batches.rows(4)));
  EXPECT_FALSE(torch::equal(other.rows(4), batches.rows(4)));
}

TEST(Progress, TheBarFillsFromTheLeft) {
  EXPECT_EQ(bar_text(0.5, 4), "██░░");
  EXPECT_EQ(bar_text(2, 3), "███");
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
