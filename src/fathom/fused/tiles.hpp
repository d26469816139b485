/// A batch cut into tiles: how samples are laid out in memory for the kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace fathom::fused {

/// Memory at an address that suits every vector width. A solve needs a dozen blocks and training asks for the same ones in every
/// iteration, so that each thread keeps up to 32 megabytes of what it was given back: malloc would return large blocks to the
/// system, or merge them, each time.
void* take_memory(std::size_t bytes);
void give_memory(void* memory) noexcept;
std::size_t bytes_of(const void* memory);  ///< that such a block holds, more than was asked for

/// Numbers at an address that suits every vector width, zero at first.
template <class T> class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }  // the other one is empty afterwards, by its size as well
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  explicit Buffer(std::size_t size) : Buffer(raw(size)) {
    if (data_) std::fill_n(data_.get(), size_, T(0));
  }
  /// For what is written before it is read: clearing it would cost more than a small solve.
  static Buffer raw(std::size_t size) {
    Buffer buffer;
    buffer.size_ = size;
    if (size > 0) buffer.data_.reset(static_cast<T*>(take_memory(size * sizeof(T))));
    return buffer;
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return bytes_of(data_.get()); }  ///< that it holds
  void swap(Buffer& other) noexcept {
    data_.swap(other.data_);
    std::swap(size_, other.size_);
  }

 private:
  struct Free {
    void operator()(T* data) const { give_memory(data); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

/// All tiles have the same width but the last, which is as wide as its samples need, filled up to whole vectors with copies
/// of its last sample.
class Tiles {
 public:
  Tiles(std::int64_t batch, std::int32_t lanes, std::int32_t widest) : batch_(batch), lanes_(lanes) {
    if (batch == 1) widest = 1;
    count_ = (batch + widest - 1) / widest;
    // Tiles of nearly equal width, so that two threads get as much work each.
    if (batch > 1)
      width_ = std::int32_t(std::min<std::int64_t>(widest, padded((batch + count_ - 1) / count_)));
    count_ = (batch + width_ - 1) / width_;
  }

  std::int64_t batch() const { return batch_; }
  std::int64_t count() const { return count_; }
  std::int32_t widest() const { return width_; }
  std::int64_t first_sample(std::int64_t tile) const { return tile * width_; }
  std::int32_t samples(std::int64_t tile) const {
    return std::int32_t(std::min<std::int64_t>(width_, batch_ - first_sample(tile)));
  }
  std::int32_t width(std::int64_t tile) const {
    return batch_ == 1 ? 1 : std::int32_t(padded(samples(tile)));
  }
  /// Samples of all tiles, padding included; and where the rows of a tile begin in a buffer with that many a row.
  std::size_t padded_batch() const {
    return count_ == 0 ? 0 : std::size_t(first_sample(count_ - 1) + width(count_ - 1));
  }
  std::size_t begin(std::int64_t tile, std::int32_t rows) const {
    return std::size_t(first_sample(tile)) * std::size_t(rows);
  }

 private:
  std::int64_t padded(std::int64_t samples) const { return (samples + lanes_ - 1) / lanes_ * lanes_; }

  std::int64_t batch_;
  std::int64_t count_ = 0;
  std::int32_t lanes_;
  std::int32_t width_ = 1;
};

}  // namespace fathom::fused
