/// Threads that share the tiles of a solve: they take the same steps and give the same numbers, for any number of them. Without torch, so
/// that ThreadSanitizer sees everything.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#endif

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>

#include "fathom/fused/pool.hpp"
#include "fused/small_networks.hpp"

namespace fathom::fused {
namespace {

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

#if defined( \
    __linux__)  // elsewhere a thread cannot say on which cores it may run, and the pool leaves it to the system

cpu_set_t allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

/// The thread that calls it is on this core afterwards, and allowed on all of them.
void go_to_core(int core, const cpu_set_t& allowed) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(std::size_t(core), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

/// The caller's part waits for the other one to begin, so that the caller does not take it over.
struct Meeting {
  std::atomic<bool> has_begun = false;
  void arrive(int part) {
    if (part == 1) has_begun = true;
    while (!has_begun) std::this_thread::yield();
  }
};

/// Where the system wakes it there, it would wait for the caller, and the caller for it.
TEST(Pool, LeavesTheCallersCoreToTheCaller) {
  const cpu_set_t allowed = allowed_cores();
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "needs two cores";
  std::vector<int> cores;
  std::thread caller([&] {
    const int core = sched_getcpu();
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(std::size_t(core), &here);
    for (int round = 0; round < 5; ++round) {
      Meeting there, elsewhere;
      run_in_parallel(2, 2, [&](std::int64_t, int thread) {
        there.arrive(thread);
        if (thread == 1) go_to_core(core, allowed);
      });
      ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);  // the caller itself is not to be moved
      cpu_set_t afterwards;
      run_in_parallel(2, 2, [&](std::int64_t, int thread) {
        elsewhere.arrive(thread);
        if (thread != 1) return;
        cores.push_back(sched_getcpu() - core);
        afterwards = allowed_cores();
      });
      EXPECT_TRUE(CPU_EQUAL(&afterwards, &allowed)) << "a worker may go where it was allowed to go before";
      ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
    }
  });
  caller.join();
  EXPECT_EQ(cores.size(), 5U);
  EXPECT_EQ(std::count(cores.begin(), cores.end(), 0), 0) << "the worker stayed on the caller's core";
}

/// Keeps threads from going on: a signal leads each into a handler that waits until this is destroyed.
class Detention {
 public:
  explicit Detention(const std::vector<pid_t>& threads) {
    held = 0;
    if (pipe(gate) != 0) throw std::runtime_error("no pipe");
    struct sigaction action = {}, before = {};
    action.sa_handler = [](int) {
      ++held;
      char none;
      while (read(gate[0], &none, 1) < 0) continue;  // interrupted
    };
    sigaction(signal, &action, &before);
    for (const pid_t thread : threads) syscall(SYS_tgkill, getpid(), thread, signal);
    while (held < int(threads.size())) std::this_thread::yield();
    sigaction(signal, &before, nullptr);
  }
  ~Detention() { close(gate[1]); }  // reading ends; the other side stays for those who are about to
  Detention(const Detention&) = delete;

 private:
  // One that ThreadSanitizer delivers at once; others it keeps until the thread calls the system by itself.
  static constexpr int signal = SIGSYS;
  static inline std::atomic<int> held = 0;
  static inline int gate[2] = {};
};

TEST(Pool, DoesNotWaitForThreadsThatDoNotCome) {
  std::vector<pid_t> others(3);
  std::atomic<int> begun = 0;
  run_in_parallel(4, 4, [&](std::int64_t, int part) {
    if (part > 0) others[std::size_t(part) - 1] = gettid();
    ++begun;
    while (begun < 4) std::this_thread::yield();  // so that nobody takes two parts
  });
  const Detention nobody_else(others);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> by_caller = 0;
  constexpr int rounds = 200;
  for (int round = 0; round < rounds; ++round) {
    run_in_parallel(4, 4, [&](std::int64_t, int) { by_caller += std::this_thread::get_id() == caller; });
  }
  EXPECT_EQ(by_caller, 4 * rounds);
}

#endif

void expect_same_steps(const ode::SolveReport& many, const ode::SolveReport& one) {
  EXPECT_EQ(many.accepted, one.accepted);
  EXPECT_EQ(many.rejected, one.rejected);
  EXPECT_EQ(many.last_step, one.last_step);
}

/// Gradients of weights are sums over samples, which threads divide among themselves.
void expect_near(const std::vector<double>& many, const std::vector<double>& one, double tolerance) {
  ASSERT_EQ(many.size(), one.size());
  for (std::size_t n = 0; n < one.size(); ++n)
    EXPECT_NEAR(many[n], one[n], tolerance * (std::abs(one[n]) + 1)) << "weight " << n;
}

TEST(FusedThreads, TakeTheSameStepsAndGiveTheSameNumbers) {
  const SmallNetwork<float> network(2, 16);
  const auto one = solved(network, 1000, 1);
  for (int threads : {2, 3, 7}) {
    const auto many = solved(network, 1000, threads);
    expect_same_steps(many.report, one.report);
    EXPECT_EQ(many.saved, one.saved);
    EXPECT_EQ(many.start_gradient, one.start_gradient);
    expect_near(many.weight_gradient, one.weight_gradient, 1e-9);
  }
}

TEST(FusedThreads, WorkInAChildOfFork) {
  const SmallNetwork<float> network(2, 16);
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

template <class T> std::vector<T> numbers_of(const Buffer<T>& buffer) {
  return {buffer.data(), buffer.data() + buffer.size()};
}

constexpr std::int64_t batch = 500;

/// [z, a] integrated backwards, with the integrals of a df/dtheta and a df/dx.
struct AdjointSolve {
  std::vector<double> end, inputs;
  std::vector<double> weights;
  ode::SolveReport report;
};

AdjointSolve adjoint_solve(const SmallNetwork<double>& network, int threads) {
  Problem<double> problem(network.program, network.spans(), batch, threads);
  std::vector<double> both = some_start<double>(batch);
  both.insert(both.end(), both.rbegin(), both.rend());
  const ode::AdaptiveSteps steps{.relative_tolerance = 1e-6, .absolute_tolerance = 1e-6};
  const ode::Method method = ode::dopri5();
  Engine<double> engine(problem, {.method = method, .adaptive = steps, .adjoint = true}, both.data(),
                        nullptr);
  AdjointSolve result{.end = std::vector<double>(both.size()),
                      .weights = std::vector<double>(problem.weights.gradient_size())};
  result.report = ode::integrate(engine, {.method = method, .steps = steps}, {3.0, 0.0});
  engine.read_state(result.end.data());
  Buffer<double> inputs(problem.inputs.size());
  engine.add_sums(result.weights, inputs);
  result.inputs = numbers_of(inputs);
  return result;
}

void expect_adjoint_of_threads_as_of_one(const SmallNetwork<double>& network) {
  const AdjointSolve one = adjoint_solve(network, 1), three = adjoint_solve(network, 3);
  expect_same_steps(three.report, one.report);
  EXPECT_EQ(three.end, one.end);
  EXPECT_EQ(three.inputs, one.inputs);
  expect_near(three.weights, one.weights, 1e-12);
}

TEST(FusedThreads, GiveTheSameAdjoint) { expect_adjoint_of_threads_as_of_one({2, 16}); }

TEST(FusedThreads, GiveTheSameAdjointOfControlsAndOfWeightsThatVary) {
  expect_adjoint_of_threads_as_of_one(SmallNetwork<double>::with_control_and_depth(batch));
}

TEST(FusedThreads, GiveTheSameLossAtTheEnd) {
  const auto network = SmallNetwork<double>::squared_error(batch);
  const Tiles tiles(batch, 16, 64);
  const std::vector<double> states = some_start<double>(std::int64_t(tiles.padded_batch()));
  struct Answer {
    double loss = 0;
    std::vector<double> adjoints, gradient;
  };
  const auto answer = [&](int threads) {
    EndLoss<double> loss(network.program, network.spans(), tiles, threads);
    Answer made{.adjoints = std::vector<double>(states.size())};
    made.loss = loss.evaluate(states.data(), 2, 1.0 / batch, made.adjoints.data());
    made.gradient = loss.gradient();
    return made;
  };
  const Answer one = answer(1), three = answer(3);
  EXPECT_EQ(three.loss, one.loss);
  EXPECT_EQ(three.adjoints, one.adjoints);
  expect_near(three.gradient, one.gradient, 1e-12);
}

/// A loss at the end of a solve, pulled back to the start: the last step as soon as a tile is there, the others afterwards.
struct LossSolve {
  double loss = 0;
  std::vector<double> start_gradient, input_gradient, weight_gradient, head_gradient;
  ode::SolveReport report;
};

LossSolve loss_solve(const SmallNetwork<double>& network, const Budgets& budgets, int threads) {
  const auto loss = SmallNetwork<double>::squared_error(batch);
  Problem<double> problem(network.program, network.spans(), batch, threads);
  const std::vector<double> start = some_start<double>(batch), depths = {0, 3};
  // So long a first step is rejected, and it is the last one as well: what follows it begins again.
  const ode::AdaptiveSteps steps{.relative_tolerance = 1e-6, .absolute_tolerance = 1e-6, .first_step = 3};
  const ode::Method method = ode::dopri5();
  Engine<double> engine(problem,
                        {.method = method,
                         .adaptive = steps,
                         .keeps_starts = true,
                         .activation_budget = budgets.activations,
                         .rate_budget = budgets.rates},
                        start.data(), nullptr);
  EndLoss<double> end(loss.program, loss.spans(), problem.tiles, threads);
  LossWayBack<double> way_back(problem, method, engine.activation_layout(), end);
  way_back.begin_solve(1.0 / batch, {});
  engine.follow_with(&way_back, depths.back());
  LossSolve result{.report = ode::integrate(engine, {.method = method, .steps = steps}, depths)};
  const auto last = way_back.finish();
  result.loss = end.finish(1.0 / batch);
  result.head_gradient = end.gradient();
  const SweepResult<double> back = way_back.pull_back({.problem = &problem,
                                                       .method = method,
                                                       .records = &engine.records(),
                                                       .layout = engine.activation_layout(),
                                                       .start = start.data(),
                                                       .depths = depths,
                                                       .bound = 2,
                                                       .given = 2,
                                                       .end_adjoint = last.adjoint.data()},
                                                      {});
  result.start_gradient = back.start;
  result.input_gradient = numbers_of(back.inputs);
  result.weight_gradient = back.weights;
  for (std::size_t n = 0; n < back.weights.size(); ++n)
    result.weight_gradient[n] += last.gradients.weights[n];
  return result;
}

void expect_loss_of_threads_as_of_one(const SmallNetwork<double>& network, const Budgets& budgets) {
  const LossSolve one = loss_solve(network, budgets, 1), three = loss_solve(network, budgets, 3);
  expect_same_steps(three.report, one.report);
  EXPECT_GT(one.report.rejected, 0);
  EXPECT_GT(one.report.accepted, 2);
  EXPECT_EQ(three.loss, one.loss);
  EXPECT_EQ(three.start_gradient, one.start_gradient);
  EXPECT_EQ(three.input_gradient, one.input_gradient);
  expect_near(three.weight_gradient, one.weight_gradient, 1e-12);
  expect_near(three.head_gradient, one.head_gradient, 1e-12);
}

/// Everything computed again; the first steps kept and the rates of others; all kept.
const std::vector<Budgets> kept_for_loss = {{}, {1 << 21, 1 << 17}, {1 << 26, 0}};

TEST(FusedThreads, GiveTheSameGradientOfALoss) {
  for (const Budgets& budgets : kept_for_loss) expect_loss_of_threads_as_of_one({2, 16}, budgets);
}

TEST(FusedThreads, GiveTheSameGradientOfALossToControlsAndWeightsThatVary) {
  for (const Budgets& budgets : kept_for_loss)
    expect_loss_of_threads_as_of_one(SmallNetwork<double>::with_control_and_depth(batch), budgets);
}

}  // namespace
}  // namespace fathom::fused
