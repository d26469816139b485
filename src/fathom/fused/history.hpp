/// What a solve remembers of its accepted steps for the way back.
#pragma once

#include <vector>

#include "fathom/fused/tiles.hpp"
#include "fathom/ode/step.hpp"

namespace fathom::fused {

/// Of a method here, those for dense output included: terms of a combination live in arrays of that size.
inline constexpr std::size_t most_stages = 24;

/// How saved states lie: as samples, (depths, state size), or as the kernels have them, (depths, rows of every tile).
enum class SavedAs { samples, rows };

struct SavedPoint {
  std::size_t place = 0;
  double fraction = 1;
};

template <class T> struct StepRecord {
  ode::Step step = {};
  T* start = nullptr;        ///< (rows) of every tile, null where it was not kept
  T* activations = nullptr;  ///< registers and rates of the stages, see ActivationLayout; may be null
  T* rates = nullptr;        ///< the rates alone, where activations are not kept; may be null as well
  /// Where the activations of the first stage are.
  enum class First { recomputed, here, in_step_before } first = First::recomputed;
  std::vector<SavedPoint> saved = {};
};

/// Where the registers and the rate of a stage lie in a step's kept activations, tile by tile.
struct ActivationLayout {
  std::size_t stages = 0;
  std::size_t register_rows = 0;
  std::size_t rate_rows = 0;

  ActivationLayout of_rates() const { return {stages, 0, rate_rows}; }
  std::size_t rows() const { return stages * (register_rows + rate_rows); }
  std::size_t registers(const Tiles& tiles, std::int64_t tile, std::size_t stage) const {
    return tiles.begin(tile, std::int32_t(rows())) + stage * register_rows * std::size_t(tiles.width(tile));
  }
  std::size_t rate(const Tiles& tiles, std::int64_t tile, std::size_t stage) const {
    return tiles.begin(tile, std::int32_t(rows())) +
           (stages * register_rows + stage * rate_rows) * std::size_t(tiles.width(tile));
  }
};

/// Start states of accepted steps, in blocks that double: no allocation a step.
template <class T> class History {
 public:
  explicit History(std::size_t state_size) : state_size_(state_size) {}
  T* take();
  void give_back(T* slot) { free_.push_back(slot); }
  /// All are given back; they will be taken in the same order again.
  void clear();
  std::size_t bytes() const;

 private:
  struct Block {
    Buffer<T> memory;
    std::size_t slots = 0;
  };
  void offer(Block& block);

  std::size_t state_size_;
  std::vector<Block> blocks_;
  std::vector<T*> free_;
};

}  // namespace fathom::fused
