/// A program made ready to run on a batch.
#pragma once

#include <memory>

#include "fathom/fused/tiles.hpp"
#include "fathom/fused/weights.hpp"

namespace fathom::fused {

/// What is solved: a program with its tensors on a batch, and how many threads may work on it.
template <class T> struct Problem {
  Problem(std::shared_ptr<const Program> program, Tensors<T> tensors, std::int64_t batch, int threads);
  /// On tiles that another program has chosen.
  Problem(std::shared_ptr<const Program> program, Tensors<T> tensors, const Tiles& tiles, int threads);
  /// Other tensors of the same sizes, or the same with other numbers in them.
  void read(const Tensors<T>& others);
  /// Replaces the inputs of samples only.
  void read_inputs(const Tensors<T>& others);
  /// Replaces the weights only: the caller must call pack_inputs(tile) for each tile before it is used.
  void read_weights(const Tensors<T>& others);
  /// `block`: which of the batches that the tensors hold.
  void pack_inputs(std::int64_t tile, std::int64_t block = 0);

  std::shared_ptr<const Program> program;
  const Kernels<T>& kernels;
  Tensors<T> tensors;
  Tiles tiles;
  Weights<T> weights;
  Buffer<T> inputs;  ///< (input rows) of every tile
  int threads;
  std::int64_t input_blocks = 1;  ///< batches in each tensor of samples, one after the other
  std::int64_t offset = 0;        ///< of its first sample in a larger batch, for those who name samples

  Code code() const { return program->code(); }
  std::int32_t rows() const { return program->state_rows; }
  std::size_t padded(std::int32_t row_count) const { return tiles.padded_batch() * std::size_t(row_count); }
  std::size_t bytes() const { return inputs.bytes() + weights.bytes(); }  ///< that it holds
  /// Numbers in one saved state: z of all samples, then their running losses.
  std::size_t state_size() const { return std::size_t(tiles.batch()) * std::size_t(rows()); }
  /// One tile of samples (batch, features) as rows, and back.
  void pack(std::int64_t tile, const T* samples, std::int32_t features, T* rows) const {
    kernels.pack(rows, samples + tiles.first_sample(tile) * features, features, tiles.samples(tile),
                 tiles.width(tile));
  }
  void unpack(std::int64_t tile, const T* rows, std::int32_t features, T* samples) const {
    kernels.unpack(samples + tiles.first_sample(tile) * features, rows, features, tiles.samples(tile),
                   tiles.width(tile));
  }
  void pack_state(std::int64_t tile, const T* state, T* rows) const;
  void unpack_state(std::int64_t tile, const T* rows, T* state) const;
  /// Numbers of a tile's state that the field reads, the first of it: not the running losses.
  std::size_t argument_size(std::int64_t tile) const {
    return std::size_t(program->features()) * std::size_t(tiles.width(tile));
  }
  T* inputs_of(std::int64_t tile) { return inputs.data() + tiles.begin(tile, program->input_rows); }

 private:
  void check_inputs() const;
  void pack_inputs();
};

}  // namespace fathom::fused
