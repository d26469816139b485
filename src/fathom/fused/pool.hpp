/// Threads that share the tiles of a solve. After their work they look out for more for less than a tenth of
/// a millisecond and then sleep, so that a step does not cost a wake-up and an idle machine stays idle. The caller does the part of
/// a thread that has not begun when its own is done.
///
///   run_in_parallel(tiles, threads, [&](std::int64_t tile, int thread) { ... });
#pragma once

#include <cstdint>
#include <type_traits>

namespace fathom::fused {

/// Calls work(context, index, thread) for every index below `count`, which is cut into one contiguous part a thread, the same ones
/// in every call with the same numbers: `thread` is the number of the part, whoever works on it. Must not throw. Runs on the calling thread alone when the pool is busy.
void run_in_parallel(std::int64_t count, int threads,
                     void (*work)(void* context, std::int64_t index, int thread) noexcept, void* context);

template <class Work> void run_in_parallel(std::int64_t count, int threads, Work&& work) {
  if (threads <= 1 || count <= 1) {
    for (std::int64_t index = 0; index < count; ++index) work(index, 0);
    return;
  }
  using Callable = std::remove_reference_t<Work>;
  run_in_parallel(
      count, threads,
      [](void* context, std::int64_t index, int thread) noexcept {
        (*static_cast<Callable*>(context))(index, thread);
      },
      const_cast<void*>(static_cast<const void*>(&work)));
}

}  // namespace fathom::fused
