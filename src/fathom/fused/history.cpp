#include "fathom/fused/history.hpp"

#include <algorithm>

namespace fathom::fused {

template <class T> T* History<T>::take() {
  if (free_.empty()) {
    constexpr std::size_t block_bytes = std::size_t(1) << 20;
    const std::size_t fitting = std::max<std::size_t>(1, block_bytes / (state_size_ * sizeof(T) + 1));
    const std::size_t states =
        std::min(fitting, std::size_t(1) << std::min<std::size_t>(blocks_.size() + 2, 10));
    blocks_.push_back({Buffer<T>::raw(states * state_size_), states});
    free_.reserve(free_.capacity() + states);
    offer(blocks_.back());
  }
  T* slot = free_.back();
  free_.pop_back();
  return slot;
}

template <class T> void History<T>::offer(Block& block) {
  for (std::size_t n = block.slots; n-- > 0;) free_.push_back(block.memory.data() + n * state_size_);
}

template <class T> void History<T>::clear() {
  free_.clear();
  for (std::size_t b = blocks_.size(); b-- > 0;) offer(blocks_[b]);
}

template <class T> std::size_t History<T>::bytes() const {
  std::size_t bytes = 0;
  for (const Block& block : blocks_) bytes += block.memory.bytes();
  return bytes;
}

template class History<float>;
template class History<double>;

}  // namespace fathom::fused
