#include "fathom/fused/pool.hpp"

#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace fathom::fused {

namespace {

/// How often a thread looks before it sleeps. For more work, about 75 microseconds: as long as a framework takes between the way forth
/// and the way back of a small model.
constexpr int looks_for_work = 3000;
/// For the end of parts that others have begun, about a millisecond. To sleep sooner and be woken takes 100 microseconds and more on a
/// virtual machine; the others sleep meanwhile, have to be woken in turn, and so on for the rest of the solve.
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

constexpr std::size_t line = 64;  // of the cache: what somebody looks at all the time has one of its own

struct Job {
  void (*work)(void*, std::int64_t, int) noexcept = nullptr;
  void* context = nullptr;
  std::int64_t count = 0;
  int threads = 1;

  void run(int part) const {
    const std::int64_t begin = count * part / threads, end = count * (part + 1) / threads;
    for (std::int64_t index = begin; index < end; ++index) work(context, index, part);
  }
};

/// A part of each job, for the worker of that number or for the caller, whoever comes first. What is computed depends on the part and
/// not on who computes it.
struct alignas(line) Part {
  std::atomic<std::uint64_t> taken_in = 0;  // number of the last round in which somebody took it

  bool take(std::uint64_t round) {
    std::uint64_t last = taken_in.load(std::memory_order_relaxed);
    while (last < round) {
      if (taken_in.compare_exchange_weak(last, round, std::memory_order_acq_rel)) return true;
    }
    return false;
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
    job_.threads = std::min(job.threads, 1 + provide_workers(job.threads - 1));
    caller_core_.store(current_core(), std::memory_order_relaxed);
    unfinished_.store(job_.threads - 1, std::memory_order_relaxed);
    round_.store((++rounds_ << thread_bits) | std::uint64_t(job_.threads), std::memory_order_release);
    round_.notify_all();
    job_.run(0);
    // A worker may be long in coming: it sleeps, or somebody else has its core. Its part is not left to wait for it.
    for (int part = 1; part < job_.threads; ++part) {
      if (!parts_[std::size_t(part) - 1].take(rounds_)) continue;
      job_.run(part);
      unfinished_.fetch_sub(1, std::memory_order_acq_rel);
    }
    for (int left = unfinished_.load(std::memory_order_acquire); left != 0;)
      left = await_change(unfinished_, left, looks_for_end);
  }

 private:
  static constexpr int thread_bits = 16;

  /// Starts what is missing of `wanted` workers; gives how many there are, fewer where the system allows no more.
  int provide_workers(int wanted) {
    while (workers_ < wanted) {
      Part& part = parts_.emplace_back();
      try {
        std::thread([this, &part, number = workers_ + 1, round = round_.load()] {
          serve(part, number, round);
        }).detach();
      } catch (const std::system_error&) {
        parts_.pop_back();
        break;
      }
      ++workers_;
    }
    return workers_;
  }

  void serve(Part& part, int number, std::uint64_t seen) {
    for (;;) {
      seen = await_change(round_, seen, looks_for_work);
      const int wanted = int(seen & ((std::uint64_t(1) << thread_bits) - 1));
      if (number >= wanted) continue;
      if (const int core = caller_core_.load(std::memory_order_relaxed);
          core != unknown_core && core == current_core())
        leave_core(core);
      // Only who took a part may look at the job: for others it may be the next one by now.
      if (!part.take(seen >> thread_bits)) continue;
      job_.run(number);
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    }
  }

  std::mutex busy_;
  int workers_ = 0;
  std::deque<Part> parts_;  // of the workers; they hold on to theirs, which stay where they are
  std::uint64_t rounds_ = 0;
  alignas(line) Job job_;
  alignas(line) std::atomic<std::uint64_t> round_ = 0;  // number of the round, and how many threads take part
  alignas(line) std::atomic<int> unfinished_ = 0;       // parts, without the caller's own
  alignas(line) std::atomic<int> caller_core_ = unknown_core;
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
