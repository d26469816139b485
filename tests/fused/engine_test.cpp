/// What a fused step costs besides arithmetic: no allocation, and threads that agree.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <thread>

#include "fathom/fused/engine.hpp"
#include "fathom/fused/pool.hpp"
#include "fathom/fused/sweep.hpp"
#include "fathom/ode/methods.hpp"
#include "fathom/support/error.hpp"

namespace {
std::atomic<std::int64_t> allocations = 0;
}

// Every way to get memory in this program is counted.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }  // NOLINT
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++allocations;
  return memalign(alignment, size);
}

namespace fathom::fused {
namespace {

std::shared_ptr<const Program> small_network(std::int32_t features, std::int32_t hidden) {
  Builder build(features);
  const auto first = build.matrix({.weight = 0, .bias = 1, .outputs = hidden, .inputs = features});
  const auto last = build.matrix({.weight = 2, .bias = 3, .outputs = features, .inputs = hidden});
  build.give(build.layer(build.layer(build.state(), first, {FunctionKind::tanh}), last, {}));
  return std::make_shared<Program>(std::move(build).finish());
}

template <class T> struct Network {
  Network(std::int32_t features, std::int32_t hidden)
      : program(small_network(features, hidden)),
        tensors{std::vector<T>(std::size_t(features * hidden)), std::vector<T>(std::size_t(hidden)),
                std::vector<T>(std::size_t(features * hidden)), std::vector<T>(std::size_t(features))} {
    T next = T(0.3);
    for (auto& tensor : tensors) {
      for (T& value : tensor) value = T(0.5) * std::sin(next += T(1.7));
    }
  }
  Tensors<T> spans() const {
    Tensors<T> all;
    for (const auto& tensor : tensors) all.emplace_back(tensor.data(), tensor.size());
    return all;
  }
  std::shared_ptr<const Program> program;
  std::vector<std::vector<T>> tensors;
};

/// Allocations of a solve with so many steps.
std::int64_t allocations_of(std::int64_t steps, bool keeps_starts, std::int64_t batch) {
  const Network<float> network(2, 16);
  Problem<float> problem(network.program, network.spans(), batch, 1);
  const std::vector<float> start(std::size_t(batch) * 2, 0.5f);
  std::vector<float> saved(2 * start.size());
  Engine<float> engine(problem, {.method = ode::dopri5(), .keeps_starts = keeps_starts}, start.data(),
                       saved.data());
  const ode::Plan plan{.method = ode::dopri5(), .steps = ode::FixedSteps{.count = steps}};
  const std::int64_t before = allocations;
  ode::integrate(engine, plan, {0.0, 1.0});
  return allocations - before;
}

TEST(FusedSteps, AllocateNothing) {
  for (std::int64_t batch : {1, 100}) {
    // The lists of steps grow by doubling, the start states kept for gradients in blocks: not with every step.
    const auto more = [&](bool keeps_starts) {
      return allocations_of(16000, keeps_starts, batch) - allocations_of(1000, keeps_starts, batch);
    };
    EXPECT_LE(more(false), 20);
    EXPECT_LE(more(true), 60);
  }
}

TEST(FusedSteps, AllocateNothingUnderErrorControl) {
  const Network<double> network(2, 16);
  const auto cost = [&](double last) {
    Problem<double> problem(network.program, network.spans(), 20, 1);
    const std::vector<double> start(40, 0.5);
    std::vector<double> saved(2 * start.size());
    const ode::AdaptiveSteps steps{
        .relative_tolerance = 1e-9, .absolute_tolerance = 1e-9, .largest_step = 0.01};
    Engine<double> engine(problem, {.method = ode::dopri5(), .adaptive = steps}, start.data(), saved.data());
    const std::int64_t before = allocations;
    const auto report = ode::integrate(engine, {.method = ode::dopri5(), .steps = steps}, {0.0, last});
    EXPECT_GE(double(report.accepted), last / 0.0101);
    return allocations - before;
  };
  EXPECT_LE(cost(80) - cost(10), 4);
}

TEST(Pool, GivesEveryIndexToOneThreadAndTheSameOneEachTime) {
  for (int threads : {1, 2, 3, 8}) {
    std::vector<int> first(1000, -1);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> calls(1000);
      std::vector<int> owner(1000, -1);
      run_in_parallel(1000, threads, [&](std::int64_t index, int thread) {
        ++calls[std::size_t(index)];
        owner[std::size_t(index)] = thread;
      });
      for (const auto& count : calls) ASSERT_EQ(count, 1);
      if (round == 0) first = owner;
      ASSERT_EQ(owner, first);
    }
  }
}

TEST(Pool, ServesSeveralCallersAtOnce) {
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        run_in_parallel(10, 2, [&](std::int64_t index, int) { sum += index; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 45);
}

template <class T> struct Solved {
  std::vector<T> saved, start_gradient;
  std::vector<double> weight_gradient;
  std::int64_t recomputed = 0;
  ode::SolveReport report;
};

struct Budgets {
  std::int64_t activations = 0;
  std::int64_t rates = 0;
};

template <class T>
Solved<T> solved(const Network<T>& network, std::int64_t batch, int threads, const Budgets& budgets = {}) {
  Problem<T> problem(network.program, network.spans(), batch, threads);
  std::vector<T> start(std::size_t(batch) * 2);
  for (std::size_t n = 0; n < start.size(); ++n) start[n] = T(std::sin(double(n)));
  Solved<T> result;
  result.saved.resize(2 * start.size());
  const ode::AdaptiveSteps steps{.relative_tolerance = 1e-6, .absolute_tolerance = 1e-6};
  const ode::ButcherTableau method = ode::dopri5();
  Engine<T> engine(problem,
                   {.method = method,
                    .adaptive = steps,
                    .keeps_starts = true,
                    .activation_budget = budgets.activations,
                    .rate_budget = budgets.rates},
                   start.data(), result.saved.data());
  result.report = ode::integrate(engine, {.method = method, .steps = steps}, {0.0, 3.0});
  const Pass<T> pass{.problem = &problem,
                     .method = method,
                     .records = &engine.records(),
                     .layout = engine.activation_layout(),
                     .start = start.data(),
                     .depths = {0.0, 3.0},
                     .bound = 2,
                     .given = 2};
  const std::vector<T> up(result.saved.size(), T(1));
  const SweepResult<T> back = pull_back(pass, up.data(), {});
  result.start_gradient = back.start;
  result.weight_gradient = back.weights;
  result.recomputed = back.recomputed;
  return result;
}

TEST(FusedThreads, TakeTheSameStepsAndGiveTheSameNumbers) {
  const Network<float> network(2, 16);
  const auto one = solved(network, 1000, 1);
  for (int threads : {2, 3, 7}) {
    const auto many = solved(network, 1000, threads);
    EXPECT_EQ(many.report.accepted, one.report.accepted);
    EXPECT_EQ(many.report.last_step, one.report.last_step);
    EXPECT_EQ(many.saved, one.saved);
    EXPECT_EQ(many.start_gradient, one.start_gradient);
    for (std::size_t n = 0; n < one.weight_gradient.size(); ++n) {
      EXPECT_NEAR(many.weight_gradient[n], one.weight_gradient[n],
                  1e-9 * std::abs(one.weight_gradient[n]) + 1e-9);
    }
  }
}

TEST(KeptActivations, GiveTheBitsThatRecomputingGives) {
  const Network<float> network(2, 16);
  for (std::int64_t batch : {1, 5, 200}) {
    const auto recomputed = solved(network, batch, 1);
    std::int64_t before = recomputed.recomputed;
    for (std::int64_t budget : {64 * 1024, 256 * 1024, 16 * 1024 * 1024}) {
      const auto kept = solved(network, batch, 1, {.activations = budget});
      EXPECT_EQ(kept.start_gradient, recomputed.start_gradient);
      EXPECT_EQ(kept.weight_gradient, recomputed.weight_gradient);
      EXPECT_LE(kept.recomputed, before);
      before = kept.recomputed;
    }
    EXPECT_EQ(before, 0) << "all stages were kept";
  }
}

template <class T> void expect_same_bits_from_rates() {
  const Network<T> network(2, 16);
  for (std::int64_t batch : {1, 5, 200, 1500}) {
    const auto recomputed = solved(network, batch, 1);
    const std::int64_t step_bytes = (batch + 64) * 2 * 7 * std::int64_t(sizeof(T));
    for (const Budgets& budgets :
         {Budgets{0, 2 * step_bytes}, Budgets{0, 1 << 24}, Budgets{step_bytes * 16, 2 * step_bytes},
          Budgets{step_bytes * 16, 1 << 24}}) {
      const auto kept = solved(network, batch, 2, budgets);
      EXPECT_EQ(kept.start_gradient, recomputed.start_gradient);
      for (std::size_t n = 0; n < kept.weight_gradient.size(); ++n) {
        EXPECT_NEAR(kept.weight_gradient[n], recomputed.weight_gradient[n],
                    1e-9 * std::abs(kept.weight_gradient[n]));
      }
    }
  }
}

TEST(KeptRates, GiveTheBitsThatRecomputingGives) {
  expect_same_bits_from_rates<float>();
  expect_same_bits_from_rates<double>();
}

TEST(FusedThreads, WorkInAChildOfFork) {
  const Network<float> network(2, 16);
  const auto expected = solved(network, 1000, 2);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(solved(network, 1000, 2).saved == expected.saved ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

TEST(FusedProblem, OfNoSamplesIsSolved) {
  const auto nothing = solved(Network<float>(2, 16), 0, 1);
  EXPECT_TRUE(nothing.saved.empty());
}

TEST(FusedProblem, RefusesTensorsOfAnotherSizeThanTheProgramReads) {
  Network<float> network(2, 16);
  network.tensors[2].resize(3);
  EXPECT_THROW(Problem<float>(network.program, network.spans(), 4, 1), InvalidArgument);
  network.tensors.pop_back();
  EXPECT_THROW(Problem<float>(network.program, network.spans(), 4, 1), InvalidArgument);
}

TEST(FusedSweep, IsRightAgainAfterABasisThrewInIt) {
  int calls_left = 1'000'000;
  Builder build(2);
  const auto basis = build.basis({.size = 1,
                                  .values =
                                      [&](double) {
                                        if (--calls_left == 0) throw std::runtime_error("basis");
                                        return std::vector<double>{1.0};
                                      },
                                  .slopes = [](double) { return std::vector<double>{0.0}; }});
  const auto first = build.matrix({.weight = 0, .bias = 1, .outputs = 16, .inputs = 2, .basis = basis});
  const auto last = build.matrix({.weight = 2, .bias = 3, .outputs = 2, .inputs = 16});
  build.give(build.layer(build.layer(build.state(), first, {FunctionKind::tanh}), last, {}));
  const Network<float> network(2, 16);
  Problem<float> problem(std::make_shared<Program>(std::move(build).finish()), network.spans(), 10, 1);
  const std::vector<float> start(20, 0.5f), up(40, 1.0f);
  std::vector<float> saved(40);
  const ode::ButcherTableau method = ode::rk4();
  Engine<float> engine(problem, {.method = method, .keeps_starts = true, .keep_every = 4}, start.data(),
                       saved.data());
  ode::integrate(engine, {.method = method, .steps = ode::FixedSteps{.count = 8}}, {0.0, 1.0});
  const Pass<float> pass{.problem = &problem,
                         .method = method,
                         .records = &engine.records(),
                         .start = start.data(),
                         .depths = {0.0, 1.0},
                         .bound = 2,
                         .given = 2};
  const auto expected = pull_back(pass, up.data(), {}).start;
  calls_left = 20;
  EXPECT_THROW(pull_back(pass, up.data(), {}), std::runtime_error);
  calls_left = 1'000'000;
  EXPECT_EQ(pull_back(pass, up.data(), {}).start, expected);
}

/// y' = y^2 from 1 has no end beyond depth 1; nobody waits for a solve that creeps there.
TEST(FusedEngine, FindsABlowUpInFewEvaluations) {
  Builder build(1);
  build.give(build.multiply(build.state(), build.state()));
  const auto program = std::make_shared<Program>(std::move(build).finish());
  for (const ode::ButcherTableau& method : ode::all_methods()) {
    if (!method.adaptive()) continue;
    Problem<double> problem(program, {}, 1, 1);
    const ode::AdaptiveSteps steps;
    const double start = 1;
    Engine<double> engine(problem, {.method = method, .adaptive = steps}, &start, nullptr);
    try {
      ode::integrate(engine, {.method = method, .steps = steps}, {0.0, 2.0});
      FAIL() << method.name << " came through";
    } catch (const ode::SolveFailure& failure) {
      EXPECT_LT(failure.site.evaluations, 1000) << method.name;
      EXPECT_NEAR(failure.site.depth, 1, 0.05) << method.name;
    }
  }
}

}  // namespace
}  // namespace fathom::fused
