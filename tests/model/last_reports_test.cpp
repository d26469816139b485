/// What a model says of its last solve.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fathom/model/last_reports.hpp"
#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

TEST(LastReports, HaveMeansOfAllCountsRoundedUp) {
  SolveReport few, many;
  few.evaluations = 8, few.backward_evaluations = 6, few.scouting = 0, few.accepted = 1, few.rejected = 0;
  many.evaluations = 15, many.backward_evaluations = 12, many.scouting = 21, many.accepted = 2,
  many.rejected = 3;
  few.smallest_step = few.largest_step = 1;
  many.smallest_step = 0.25, many.largest_step = 2;
  const SolveReport mean = mean_of({std::make_shared<SolveReport>(few), std::make_shared<SolveReport>(many)});
  EXPECT_EQ(mean.evaluations, 12);
  EXPECT_EQ(mean.backward_evaluations, 9);
  EXPECT_EQ(mean.scouting, 11);
  EXPECT_EQ(mean.accepted, 2);
  EXPECT_EQ(mean.rejected, 2);
  EXPECT_EQ(mean.smallest_step, 0.25);
  EXPECT_EQ(mean.largest_step, 2);
}

TEST(LastReports, AreSafeWhereSeveralThreadsSolveWithOneModel) {
  torch::manual_seed(2);
  NeuralOde ode(autonomous(mlp({.features = {2, 8, 2}})));
  const Tensor x = torch::randn({5, 2}), y = torch::randn({5, 2});
  const Tensor expected = ode->forward(x).detach();
  const double loss = ode->loss(x, y).item<double>();
  const std::int64_t evaluations = ode->report().evaluations;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        if (!torch::equal(ode->forward(x).detach(), expected)) ++wrong;
        if (ode->loss(x, y).item<double>() != loss) ++wrong;
        if (ode->report().evaluations != evaluations) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// For ThreadSanitizer, which sees a count that is written while it is read.
TEST(LastReports, MayBeAskedForWhileAnotherThreadTakesTheGradient) {
  torch::manual_seed(2);
  const Tensor x = torch::randn({5, 2}), y = torch::randn({5, 2});
  for (const bool fused : {true, false}) {
    for (const Sensitivity& sensitivity : {Sensitivity(Discrete{}), Sensitivity(Adjoint{})}) {
      NeuralOde ode(autonomous(mlp({.features = {2, 8, 2}})),
                    {.solver = {.fused = fused}, .sensitivity = sensitivity});
      std::atomic<bool> done = false;
      std::int64_t before = 0, most = 0, shrunk = 0;
      std::vector<Tensor> losses;
      for (int i = 0; i < 10; ++i) losses.push_back(ode->loss(x, y));
      std::thread reader([&] {
        while (!done) {
          const std::int64_t count = ode->report().backward_evaluations;
          shrunk += count < before;
          before = count, most = std::max(most, count);
        }
      });
      for (const Tensor& loss : losses) backward(loss);
      done = true;
      reader.join();
      EXPECT_EQ(shrunk, 0);
      EXPECT_GE(ode->report().backward_evaluations, most);
      EXPECT_GT(ode->report().backward_evaluations, 0);
    }
  }
}

}  // namespace
}  // namespace fathom::testing
