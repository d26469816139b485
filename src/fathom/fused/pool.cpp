#include "fathom/fused/pool.hpp"

#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fathom::fused {

namespace {

/// How often a thread looks before it sleeps. For more work, about 75 microseconds: as long as a framework takes between the way forth
/// and the way back of a small model.
constexpr int looks_for_work = 3000;
/// For the end of a job, about a millisecond: longer than it takes to wake the others, which is 100 microseconds and more on a virtual
/// machine. Who sleeps sooner has to be woken in turn, the others sleep meanwhile, and so on for the rest of the solve.
constexpr int looks_for_end = 40000;

void breathe() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns once `value` differs from `old`.
template <class Number> Number await_change(const std::atomic<Number>& value, Number old, int looks) {
  for (int look = 0; look < looks; ++look) {
    if (const Number now = value.load(std::memory_order_acquire); now != old) return now;
    breathe();
  }
  for (;;) {
    value.wait(old, std::memory_order_acquire);
    if (const Number now = value.load(std::memory_order_acquire); now != old) return now;
  }
}

constexpr int unknown_core = -1;

int current_core() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return unknown_core;
#endif
}

/// A thread that slept may be woken on the core of the one that woke it. They would take turns there from then on, for as long as
/// the solve lasts: each sleeps while the other works, so that the system never sees two that want the core, and moves neither. An
/// iteration of 80 microseconds took 650.
void leave_core([[maybe_unused]] int core) {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(std::size_t(core), &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
    sched_setaffinity(0, sizeof allowed, &allowed);  // it stays where it has gone
#endif
}

struct Job {
  void (*work)(void*, std::int64_t, int) noexcept = nullptr;
  void* context = nullptr;
  std::int64_t count = 0;
  int threads = 1;
  int core = unknown_core;  // of the calling thread

  void run(int thread) const {
    const std::int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
    for (std::int64_t index = begin; index < end; ++index) work(context, index, thread);
  }
};

class Pool {
 public:
  void run(const Job& job) {
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock) {
      Job alone = job;
      alone.threads = 1;
      alone.run(0);
      return;
    }
    job_ = job;
    job_.core = current_core();
    job_.threads = std::min(job.threads, 1 + provide_workers(job.threads - 1));
    unfinished_.store(job_.threads - 1, std::memory_order_relaxed);
    round_.store((++rounds_ << thread_bits) | std::uint64_t(job_.threads), std::memory_order_release);
    round_.notify_all();
    job_.run(0);
    for (int left = unfinished_.load(std::memory_order_acquire); left != 0;)
      left = await_change(unfinished_, left, looks_for_end);
  }

 private:
  static constexpr int thread_bits = 16;

  /// Starts what is missing of `wanted` workers; gives how many there are, fewer where the system allows no more.
  int provide_workers(int wanted) {
    while (int(workers_.size()) < wanted) {
      try {
        workers_.emplace_back(
            [this, thread = int(workers_.size()) + 1, round = round_.load()] { serve(thread, round); });
        workers_.back().detach();
      } catch (const std::system_error&) { break; }
    }
    return int(workers_.size());
  }

  void serve(int thread, std::uint64_t round) {
    for (;;) {
      round = await_change(round_, round, looks_for_work);
      // Those who are not wanted must not look at the job: it may be the next one by now.
      const int wanted = int(round & ((std::uint64_t(1) << thread_bits) - 1));
      if (thread >= wanted) continue;
      if (job_.core != unknown_core && job_.core == current_core()) leave_core(job_.core);
      job_.run(thread);
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    }
  }

  // A line of the cache for each that somebody looks at all the time: to write to another one does not disturb them.
  static constexpr std::size_t line = 64;
  std::mutex busy_;
  std::vector<std::thread> workers_;
  std::uint64_t rounds_ = 0;
  alignas(line) Job job_;
  alignas(line) std::atomic<std::uint64_t> round_ = 0;  // number of the round, and how many threads take part
  alignas(line) std::atomic<int> unfinished_ = 0;
};

std::atomic<Pool*> current_pool = nullptr;

/// Never destroyed: its threads sleep until the process ends. A child of fork() has the pool's memory but none of its threads,
/// so it makes a pool of its own.
Pool& pool() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr); });
  Pool* known = current_pool.load(std::memory_order_acquire);
  if (known) return *known;
  auto fresh = std::make_unique<Pool>();
  if (current_pool.compare_exchange_strong(known, fresh.get())) return *fresh.release();
  return *known;
}

}  // namespace

void run_in_parallel(std::int64_t count, int threads, void (*work)(void*, std::int64_t, int) noexcept,
                     void* context) {
  pool().run({work, context, count, int(std::min<std::int64_t>(threads, count))});
}

}  // namespace fathom::fused
