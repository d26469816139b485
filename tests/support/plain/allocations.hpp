/// Counts allocations of a test program: included by one of its files, once, since it replaces operator new.
///
///   EXPECT_EQ(allocations_of([&] { session.solve(...); }), 0);
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace fathom::test {

inline std::atomic<std::int64_t> allocations = 0;

inline void* counted(void* memory) {
  ++allocations;
  if (!memory) throw std::bad_alloc();
  return memory;
}

/// Of the call after `warm_up` like it.
template <class Work> std::int64_t allocations_of(const Work& work, int warm_up = 3) {
  for (int round = 0; round < warm_up; ++round) work();
  const std::int64_t before = allocations;
  work();
  return allocations - before;
}

}  // namespace fathom::test

// Both ways in which the engine comes by memory are counted: this one, ...
void* operator new(std::size_t size) {
  return fathom::test::counted(std::malloc(std::max<std::size_t>(size, 1)));
}
void operator delete(void* memory) noexcept { std::free(memory); }  // NOLINT
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace fathom::fused {

// ... and buffers. These three stand in for those of tiles.cpp, which the linker then leaves out: they have no shelf, so that a block
// that would come from there counts as well.
void* take_memory(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  return test::counted(std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment));
}
void give_memory(void* memory) noexcept { std::free(memory); }
std::size_t bytes_of(const void*) { return 0; }

}  // namespace fathom::fused
