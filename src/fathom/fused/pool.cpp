#include "fathom/fused/pool.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace fathom::fused {

namespace {

constexpr int looks_before_sleep = 400;  // about ten microseconds

void breathe() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns once `value` differs from `old`.
template <class Number> Number await_change(const std::atomic<Number>& value, Number old) {
  for (int look = 0; look < looks_before_sleep; ++look) {
    if (const Number now = value.load(std::memory_order_acquire); now != old) return now;
    breathe();
  }
  for (;;) {
    value.wait(old, std::memory_order_acquire);
    if (const Number now = value.load(std::memory_order_acquire); now != old) return now;
  }
}

struct Job {
  void (*work)(void*, std::int64_t, int) = nullptr;
  void* context = nullptr;
  std::int64_t count = 0;
  int threads = 1;

  void run(int thread) const {
    const std::int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
    for (std::int64_t index = begin; index < end; ++index) work(context, index, thread);
  }
};

class Pool {
 public:
  ~Pool() {
    stops_ = true;
    ++round_;
    round_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(const Job& job) {
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock) {
      Job alone = job;
      alone.threads = 1;
      alone.run(0);
      return;
    }
    while (int(workers_.size()) + 1 < job.threads) {
      workers_.emplace_back(
          [this, thread = int(workers_.size()) + 1, round = round_.load()] { serve(thread, round); });
    }
    job_ = job;
    unfinished_.store(int(workers_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    job.run(0);
    for (int left = unfinished_.load(std::memory_order_acquire); left != 0;)
      left = await_change(unfinished_, left);
  }

 private:
  void serve(int thread, std::uint32_t round) {
    for (;;) {
      round = await_change(round_, round);
      if (stops_) return;
      if (thread < job_.threads) job_.run(thread);
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    }
  }

  std::mutex busy_;
  std::vector<std::thread> workers_;
  Job job_;
  std::atomic<std::uint32_t> round_ = 0;
  std::atomic<int> unfinished_ = 0;
  std::atomic<bool> stops_ = false;
};

}  // namespace

void run_in_parallel(std::int64_t count, int threads, void (*work)(void*, std::int64_t, int), void* context) {
  static Pool pool;
  pool.run({work, context, count, int(std::min<std::int64_t>(threads, count))});
}

}  // namespace fathom::fused
