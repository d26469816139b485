#include "fathom/fused/tiles.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <array>
#include <bit>
#include <vector>

namespace fathom::fused {

namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t largest_kept = std::size_t(1) << 24;
constexpr std::size_t kept_bytes = std::size_t(32) << 20;  // by one thread

/// Stands before every block, so that its size is known when it comes back.
struct alignas(alignment) Header {
  std::size_t bytes = 0;
};

/// Blocks of a thread that nobody uses, by the logarithm of their size.
class Shelf {
 public:
  ~Shelf() {
    is_closed = true;
    for (auto& blocks : by_size_) {
      for (Header* block : blocks) std::free(block);
    }
  }

  Header* take(std::size_t bytes) {
    auto& blocks = of_size(bytes);
    if (blocks.empty()) return nullptr;
    Header* block = blocks.back();
    blocks.pop_back();
    bytes_ -= bytes;
    return block;
  }

  bool keeps(Header* block) {
    if (bytes_ + block->bytes > kept_bytes) return false;
    auto& blocks = of_size(block->bytes);
    if (blocks.capacity() == 0) blocks.reserve(64);
    if (blocks.size() == blocks.capacity()) return false;
    blocks.push_back(block);
    bytes_ += block->bytes;
    return true;
  }

  /// When the thread ends, while other objects may still take memory or give it back.
  static thread_local bool is_closed;

 private:
  std::vector<Header*>& of_size(std::size_t bytes) { return by_size_[std::size_t(std::countr_zero(bytes))]; }

  std::array<std::vector<Header*>, 64> by_size_;
  std::size_t bytes_ = 0;
};
thread_local bool Shelf::is_closed = false;

Shelf& shelf() {
  static thread_local Shelf mine;
  return mine;
}

/// Under AddressSanitizer nothing is kept, so that it sees who uses what was given back.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool keeps_blocks = false;
#elif defined(__has_feature)
constexpr bool keeps_blocks = !__has_feature(address_sanitizer);
#else
constexpr bool keeps_blocks = true;
#endif

/// Kept activations are megabytes: on large pages they do not fight for the same places in a cache.
void* fresh_memory(std::size_t bytes) {
  constexpr std::size_t large_page = std::size_t(1) << 21;
  void* fresh = nullptr;
  if (posix_memalign(&fresh, bytes >= large_page ? large_page : alignment, bytes) != 0)
    throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  if (bytes >= large_page)
    madvise(fresh, bytes / large_page * large_page, MADV_HUGEPAGE);  // a wish: small ones do as well
#endif
  return fresh;
}

bool is_kept_size(std::size_t bytes) { return keeps_blocks && bytes <= largest_kept; }

}  // namespace

void* take_memory(std::size_t bytes) {
  bytes = std::max(bytes, alignment);
  bytes = is_kept_size(bytes) ? std::bit_ceil(bytes) : (bytes + alignment - 1) / alignment * alignment;
  Header* block = is_kept_size(bytes) && !Shelf::is_closed ? shelf().take(bytes) : nullptr;
  if (!block) block = new (fresh_memory(sizeof(Header) + bytes)) Header{bytes};
  return block + 1;
}

std::size_t bytes_of(const void* memory) {
  return memory ? sizeof(Header) + (static_cast<const Header*>(memory) - 1)->bytes : 0;
}

void give_memory(void* memory) noexcept {
  if (!memory) return;
  Header* block = static_cast<Header*>(memory) - 1;
  if (is_kept_size(block->bytes) && !Shelf::is_closed && shelf().keeps(block)) return;
  std::free(block);
}

}  // namespace fathom::fused
