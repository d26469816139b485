#include "fathom/fused/problem.hpp"

#include <algorithm>
#include <limits>

#include "fathom/support/error.hpp"

namespace fathom::fused {

namespace {

/// Rows of a stage that are in use at once: those of a pair come and go.
std::int32_t rows_in_use(const Program& program) {
  std::int32_t rows = program.register_rows + program.passing_rows;
  for (const Op& op : program.ops) rows -= op.is_pair_with_next ? op.out.count : 0;
  return rows;
}

/// Samples in a tile: enough to fill vectors and to pay for the sums over samples, few enough that the rows of a step stay
/// in the second-level cache. Found by measurement, see docs/fused.md. The number of threads does not count, so that the sum of
/// errors over tiles, and with it the steps, are the same for any. Functions of the caller's get the whole batch at once.
template <class T>
std::int32_t widest_tile(const Program& program, const Kernels<T>& kernels, std::int64_t batch) {
  if (!program.callbacks.empty()) {
    const std::int64_t whole = (batch + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
    require(whole < std::numeric_limits<std::int32_t>::max(),
            "a field of callbacks takes fewer samples than ", batch);
    return std::int32_t(whole);
  }
  constexpr std::int32_t narrow = sizeof(T) == 4 ? 64 : 32;
  constexpr std::size_t cache = 256 * 1024;
  constexpr std::int32_t few_rows = 32;
  const bool has_few_rows = kernels.has_pairs && rows_in_use(program) <= few_rows;
  const std::int32_t few_tiles = has_few_rows ? 4 : 8;  // enough for threads to share
  const std::int32_t wide = batch >= 4096 ? 8 * narrow : 4 * narrow;
  std::int32_t width = has_few_rows ? wide : kernels.has_pairs ? 2 * narrow : narrow;
  if (width > narrow && batch / few_tiles < width) width /= 2;
  while (width > 16 &&
         std::size_t(width) * std::size_t(program.register_rows + program.passing_rows) * sizeof(T) > cache)
    width /= 2;
  return width;
}

}  // namespace

template <class T>
Problem<T>::Problem(std::shared_ptr<const Program> program_, Tensors<T> tensors_, std::int64_t batch,
                    int threads_)
    : Problem(program_, std::move(tensors_),
              Tiles(batch, best_kernels<T>().lanes, widest_tile(*program_, best_kernels<T>(), batch)),
              threads_) {}

template <class T>
Problem<T>::Problem(std::shared_ptr<const Program> program_, Tensors<T> tensors_, const Tiles& tiles_,
                    int threads_)
    : program(std::move(program_)),
      kernels(best_kernels<T>()),
      tensors(std::move(tensors_)),
      tiles(tiles_),
      weights(*program, tensors, kernels),
      inputs(tiles.padded_batch() * std::size_t(program->input_rows)),
      threads(int(std::min<std::int64_t>(std::max(threads_, 1), std::max<std::int64_t>(tiles.count(), 1)))) {
  pack_inputs();
}

template <class T> void Problem<T>::read(const Tensors<T>& others) {
  read_weights(others);
  pack_inputs();
}

template <class T> void Problem<T>::read_weights(const Tensors<T>& others) {
  tensors = others;
  weights.read(tensors);
  check_inputs();
}

template <class T> void Problem<T>::read_inputs(const Tensors<T>& others) {
  tensors = others;
  pack_inputs();
}

template <class T> void Problem<T>::check_inputs() const {
  for (const SampleInput& input : program->inputs) {
    const std::int64_t batch = tiles.batch();
    const std::size_t wanted = std::size_t(batch) * std::size_t(input.rows.count);
    require(input.tensor >= 0 && std::size_t(input.tensor) < tensors.size() &&
                tensors[std::size_t(input.tensor)].size() == wanted * std::size_t(input_blocks),
            "an input of ", input.rows.count, " features needs ", wanted, " numbers for a batch of ", batch);
  }
}

template <class T> void Problem<T>::pack_inputs(std::int64_t tile, std::int64_t block) {
  for (const SampleInput& input : program->inputs) {
    T* rows = inputs_of(tile) + std::size_t(input.rows.begin) * std::size_t(tiles.width(tile));
    const T* samples = tensors[std::size_t(input.tensor)].data() + block * tiles.batch() * input.rows.count;
    pack(tile, samples, input.rows.count, rows);
  }
}

template <class T> void Problem<T>::pack_inputs() {
  check_inputs();
  for (std::int64_t tile = 0; tile < tiles.count(); ++tile) pack_inputs(tile);
}

template <class T> void Problem<T>::pack_state(std::int64_t tile, const T* state, T* rows) const {
  const std::int32_t features = program->features();
  pack(tile, state, features, rows);
  const T* losses = state + tiles.batch() * features;
  pack(tile, losses, program->loss_rows, rows + std::size_t(features) * std::size_t(tiles.width(tile)));
}

template <class T> void Problem<T>::unpack_state(std::int64_t tile, const T* rows, T* state) const {
  const std::int32_t features = program->features();
  unpack(tile, rows, features, state);
  T* losses = state + tiles.batch() * features;
  unpack(tile, rows + std::size_t(features) * std::size_t(tiles.width(tile)), program->loss_rows, losses);
}

template struct Problem<float>;
template struct Problem<double>;

}  // namespace fathom::fused
