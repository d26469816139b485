/// The same answer again: flat memory over many solves, the same bits with one thread, the same steps with any number.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

double resident_megabytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * double(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void solve_once(const Sensitivity& sensitivity) {
  const Tensor theta = variable(0.5), z0 = torch::ones({8, 2}, float64).requires_grad_();
  const VectorField field{.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; },
                          .parameters = {theta}};
  const Solution solution = solve(field, z0, {0.0, 1.0}, fixed(euler(), 2), sensitivity);
  solution.states[-1].sum().backward();
}

TEST(Memory, IsFlatOverTenThousandSolvesWithGradients) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  const auto& all = all_sensitivities();
  const auto solve_many = [&](int count) {
    for (int n = 0; n < count; ++n) solve_once(all[std::size_t(n) % all.size()].value);
  };
  solve_many(1000);
  const double before = resident_megabytes();
  solve_many(9000);
  EXPECT_LT(resident_megabytes() - before, 2);
}

TEST(Memory, IsFlatOverSolvesThatFail) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  const VectorField field{.rate = [](const Tensor&, const Tensor& z) { return z.log(); }};
  const Tensor z0 = -torch::ones({1000}, float64);
  const auto fail_many = [&](int count) {
    for (int n = 0; n < count; ++n) EXPECT_TRUE(failure_of([&] { solve(field, z0, {0.0, 1.0}); }));
  };
  fail_many(200);
  const double before = resident_megabytes();
  fail_many(2000);
  EXPECT_LT(resident_megabytes() - before, 2);
}

/// A small model on the fused engine, solved ten thousand times.
class MemoryOfAFusedModel : public ::testing::Test {
 protected:
  static NeuralOde model(const Sensitivity& sensitivity) {
    return NeuralOde(
        autonomous(mlp({.features = {2, 8, 2}})),
        NeuralOdeOptions{.solver = {.steps = FixedSteps{.count = 3}}, .sensitivity = sensitivity});
  }

  template <class Work> static void expect_flat(NeuralOde& ode, Work&& solve) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
    for (int n = 0; n < 1000; ++n) solve();
    const double before = resident_megabytes();
    for (int n = 0; n < 9000; ++n) solve();
    EXPECT_LT(resident_megabytes() - before, 1);
    EXPECT_EQ(ode->report().engine, "fused");
  }

  const Tensor x_ = torch::randn({20, 2}), y_ = torch::randn({20, 2});
};

TEST_F(MemoryOfAFusedModel, IsFlatWithoutGradients) {
  NeuralOde ode = model(Discrete{});
  const torch::NoGradGuard no_graph;
  expect_flat(ode, [&] { ode->forward(x_); });
}

TEST_F(MemoryOfAFusedModel, IsFlatWithTheExactGradient) {
  NeuralOde ode = model(Discrete{});
  expect_flat(ode, [&] { ode->forward(x_).square().mean().backward(); });
}

TEST_F(MemoryOfAFusedModel, IsFlatWithTheAdjoint) {
  NeuralOde ode = model(Adjoint{});
  expect_flat(ode, [&] { ode->forward(x_).square().mean().backward(); });
}

TEST_F(MemoryOfAFusedModel, IsFlatWithALossInOnePiece) {
  NeuralOde ode = model(Discrete{});
  expect_flat(ode, [&] { backward(ode->loss(x_, y_)); });
}

TEST_F(MemoryOfAFusedModel, IsFlatWithALossWhoseGradientNobodyTakes) {
  NeuralOde ode = model(Discrete{});
  expect_flat(ode, [&] { ode->loss(x_, y_); });
}

struct Answer {
  std::vector<double> grid;
  std::vector<Tensor> tensors;  // states, then gradients
};

Answer answer(int threads, const Sensitivity& sensitivity, std::int64_t batch) {
  const int before = torch::get_num_threads();
  torch::set_num_threads(threads);
  torch::manual_seed(4);
  const Tensor W = torch::randn({4, 4}, float64).requires_grad_();
  const Tensor z0 = torch::randn({batch, 4}, float64).requires_grad_();
  const VectorField field{
      .rate = [W](const Tensor& s, const Tensor& z) { return torch::tanh(z.matmul(W)) * torch::cos(s); },
      .parameters = {W}};
  const Solution solution = solve(field, z0, {0.0, 0.3, 0.6}, adaptive(dopri5(), 1e-4), sensitivity);
  const Tensor loss = solution.states.square().mean();
  Answer result{solution.grid, {solution.states.detach(), gradient(loss, W), gradient(loss, z0)}};
  torch::set_num_threads(before);
  return result;
}

class Repeated : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, Repeated, ::testing::ValuesIn(all_sensitivities()), name_of);

TEST_P(Repeated, OneThreadGivesTheSameBits) {
  const Answer first = answer(1, sensitivity(), 64), second = answer(1, sensitivity(), 64);
  EXPECT_EQ(first.grid, second.grid);
  for (std::size_t i = 0; i < first.tensors.size(); ++i)
    EXPECT_TRUE(torch::equal(first.tensors[i], second.tensors[i])) << "tensor " << i;
}

TEST_P(Repeated, TwoThreadsTakeTheSameStepsToTheSameNumbers) {
  const Answer one = answer(1, sensitivity(), 9000), two = answer(2, sensitivity(), 9000);
  ASSERT_EQ(one.grid.size(), two.grid.size());
  // A step follows from an error that is itself a difference, so rounding reaches it magnified by 1 / tolerance.
  for (std::size_t i = 0; i < one.grid.size(); ++i) EXPECT_NEAR(one.grid[i], two.grid[i], 1e-11);
  EXPECT_LT(distance(two.tensors, one.tensors), 1e-12);
}

}  // namespace
}  // namespace fathom::testing
