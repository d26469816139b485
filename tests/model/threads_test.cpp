/// How many threads a solve starts, and that they do not keep the processor busy when it is done.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

/// What `work` gives, from 0 to 255, in a process of one thread in which nothing was solved before; -1 where it does not come to an end.
template <class Work> int in_fresh_process(Work&& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit([&]() noexcept { return work(); }());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int threads_of_process() {
  using std::filesystem::directory_iterator;
  return int(std::distance(directory_iterator("/proc/self/task"), directory_iterator()));
}

/// As a model is trained and as it is asked.
void solve(std::int64_t batch) {
  NeuralOde ode(autonomous(mlp({.features = {2, 32, 2}})));
  const Tensor x = torch::randn({batch, 2});
  backward(ode->loss(x, x.flip(1)));
  require(ode->report().engine == "fused", "this test is about the fused engine");
  const torch::NoGradGuard no_graph;
  ode->forward(x);
}

int threads_started(int allowed, std::int64_t batch) {
  return in_fresh_process([&] {
    at::set_num_threads(allowed);
    const int before = threads_of_process();
    solve(batch);
    return threads_of_process() - before;
  });
}

TEST(ThreadsOfASolve, AreAsManyAsTorchIsAllowed) {
  EXPECT_EQ(threads_started(2, 1024), 1);
  EXPECT_EQ(threads_started(3, 1024), 2);
}

TEST(ThreadsOfASolve, AreNoMoreThanTheCallersWhereTorchIsAllowedOne) {
  EXPECT_EQ(threads_started(1, 1024), 0);
}

TEST(ThreadsOfASolve, AreNoMoreThanTheCallersForABatchOfOne) { EXPECT_EQ(threads_started(4, 1), 0); }

/// Whether all threads but this one sleep, as the system sees it: "PID (NAME) STATE ...".
bool others_sleep() {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == std::to_string(gettid())) continue;
    std::ifstream file(thread.path() / "stat");
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    if (line.at(line.rfind(')') + 2) != 'S') return false;
  }
  return true;
}

/// One that looks for work all the time would be running, or about to, for ever; then the alarm of the process rings.
TEST(ThreadsOfASolve, SleepWhenItIsDone) {
  EXPECT_EQ(in_fresh_process([] {
              at::set_num_threads(2);
              const int before = threads_of_process();
              solve(1024);
              while (!others_sleep()) std::this_thread::yield();
              return threads_of_process() - before;
            }),
            1);
}

}  // namespace
}  // namespace fathom::testing
