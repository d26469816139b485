/// The loop's engine for fields that are programs: all stages of a step on one tile of samples before the next tile starts,
/// so that a step stays in the nearest cache. A step allocates nothing and calls no framework, except in the Sequel of the last step
/// and in the lists that functions of depth return.
///
///   Problem<float> problem{...};
///   Engine<float> engine(problem, {.method = dopri5(), .adaptive = AdaptiveSteps{}}, start, saved);
///   integrate(engine, plan, depths);
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fathom/fused/history.hpp"
#include "fathom/fused/problem.hpp"
#include "fathom/ode/integrate.hpp"

namespace fathom::fused {

template <class T> class AdjointSums;

struct EngineOptions {
  ode::Method method = {};
  std::optional<ode::AdaptiveSteps> adaptive = {};  ///< its tolerances and norm; none: fixed steps
  bool keeps_starts = false;
  std::int64_t keep_every = 1;
  std::int64_t keep_budget = 0;  ///< bytes, 0: no limit
  std::int64_t activation_budget =
      0;  ///< bytes of activations kept for the way back; what is beyond it is recomputed
  std::int64_t rate_budget =
      0;                 ///< bytes of rates kept where activations are not: less is recomputed from them
  bool adjoint = false;  ///< integrates [y, a] with a' = -a df/dy, and int a df/dtheta beside it
};

/// A trial step that comes to the end of the solve, under way.
template <class T> struct FinalStep {
  ode::Step step = {};
  const T* start = nullptr;      ///< (rows) of every tile
  const T* first = nullptr;      ///< kept activations that have its first stage, null: none has, ...
  std::size_t first_place = 0;   ///< ... as this one
  const T* rates = nullptr;      ///< of its stages, ...
  ActivationLayout layout = {};  ///< ... as they lie there
};

/// What follows on a tile that has come to the end of the solve, while its last step is in the nearest cache. The step may be
/// rejected yet: then all begins again with another one.
template <class T> class Sequel {
 public:
  virtual ~Sequel() = default;
  virtual void begin(const FinalStep<T>& step) = 0;
  /// Where the registers of a stage that is read again are to be, with room for passing rows behind them; null: it is not. Not
  /// asked for the first stage.
  virtual T* registers(std::int64_t tile, int thread, std::size_t index) = 0;
  virtual void follow(std::int64_t tile, int thread, const T* end) noexcept = 0;
};

template <class T> class Engine {
 public:
  /// `start`: (state size), for the adjoint followed by a, (state size). `saved` receives a state for each saved depth;
  /// with null, nothing is saved.
  Engine(Problem<T>& problem, EngineOptions options, const T* start, T* saved);
  ~Engine();

  /// Another solve of the same problem, of whatever its tensors have become, by the same method and in the same memory; an adjoint one
  /// after an adjoint one. `start` must stay until the first attempt, or the choice of its size, has read it.
  void begin_again(const EngineOptions& options, const T* start);
  /// From the next solve on. Null: nothing is saved.
  void save_to(T* saved, SavedAs as) { saved_ = saved, saved_as_ = as; }

  /// At depth `last`, until another one or null is given. The step that ends there has no record.
  void follow_with(Sequel<T>* sequel, double last) { course_.sequel = sequel, course_.last = last; }

  ode::StartNorms start_norms(const ode::Step& step);
  double curvature(const ode::Step& probe);
  ode::TrialError attempt(const ode::Step& step);
  void accept();
  void save_state(std::size_t place);
  void save_inside(std::size_t place, double fraction);
  void forget_rate() { course_.rate_known_at = RateKnown::nowhere; }
  Engine scout(const ode::Method& method, const ode::AdaptiveSteps& steps) const;
  std::int64_t evaluations() const { return course_.evaluations; }
  std::string offender() const;
  double resolution() const { return double(std::numeric_limits<T>::epsilon()); }
  double state_norm();
  double rate_norm(
      const std::vector<double>& weights);  ///< NaN where it would cost evaluations: of the adjoint

  /// The state as samples, in the order of `start`.
  void read_state(T* state) const;
  const Buffer<T>& packed_state() {
    pack_start();
    return state_;
  }
  std::size_t bytes() const;  ///< that it holds
  /// Continues from a packed state, as if the solve had come to it by itself.
  void restart(const T* packed);
  std::vector<StepRecord<T>>& records() { return records_; }
  /// After the last step: lets go of all but the records and what they point to.
  void keep_records();
  const ActivationLayout& activation_layout() const { return layout_; }

  /// Adjoint: -int a df/dtheta along the way, added to `gradient` (Weights::gradient_size) and to `inputs`, (input rows) of
  /// every tile.
  void add_sums(std::vector<double>& gradient, Buffer<T>& inputs) const;

 private:
  enum class RateKnown { nowhere, at_first_stage, at_end_rate_stage };
  /// Where the rates of a step's stages are written, with the registers or alone; and whether that is kept for the way back.
  struct Room {
    T* memory = nullptr;
    ActivationLayout layout = {};
    bool is_kept = false;

    T* activations() const { return is_kept && layout.register_rows > 0 ? memory : nullptr; }
    T* rates() const { return is_kept && layout.register_rows == 0 ? memory : nullptr; }
  };
  /// Where a stage computes.
  struct StageRows {
    T* registers = nullptr;
    T* passing = nullptr;
    bool are_read = false;  // by the way back, or by nobody
  };
  struct Scratch {
    Buffer<T> registers, adjoints, argument, seed;
    std::vector<double> by_sample;
  };

  T* stage(std::int64_t tile, std::size_t index) const {
    return course_.room.memory + course_.room.layout.rate(problem_.tiles, tile, index);
  }
  std::size_t tile_size(std::int64_t tile) const {
    return std::size_t(rows_) * std::size_t(problem_.tiles.width(tile));
  }
  std::size_t begin(std::int64_t tile) const { return problem_.tiles.begin(tile, rows_); }
  template <class Work> void for_each_tile(Work&& work);

  void prepare(std::size_t index, double depth);
  /// The rate at an argument, as stage `index` if it is one: for the adjoint, of whose sums it counts in.
  void evaluate(std::int64_t tile, int thread, const AtDepth<T>& at, const T* argument, T* rate,
                std::optional<std::size_t> index);
  StageRows registers_of(std::int64_t tile, int thread, std::optional<std::size_t> index);
  FinalStep<T> final_step() const;
  void pull_adjoint(std::int64_t tile, int thread, const AtDepth<T>& at, const T* argument, T* rate,
                    Frame<T>& frame, std::optional<std::size_t> summed);
  const AtDepth<T>& at_depth(std::size_t index) const { return at_depth_[at_depth_.size() == 1 ? 0 : index]; }
  /// Before and in each tile; is the rate at the first stage known from the step before?
  bool prepare_first_rate(const ode::Step& step);
  void first_rate_of_tile(std::int64_t tile, int thread, bool is_known);
  void evaluate_stage(std::int64_t tile, int thread, std::size_t index, const T* from);
  /// base + h sum_j weights_j k_j, in the first `size` numbers of the tile.
  void combine(std::int64_t tile, std::span<const double> weights, double h, const T* base, T* out,
               std::size_t size) const;
  void finish_dense_stages();
  struct TileError {
    double largest = 0;
    double squares = 0;  // of all samples, or of the worst one
  };
  /// Norm of `values`, scaled by the tolerance at the larger of the state and `other`.
  TileError scaled_norm_of_tile(std::int64_t tile, int thread, const T* values, const T* other,
                                double divisor);
  double scaled_norm(const Buffer<T>& values, const Buffer<T>& other);
  /// The norm from what the tiles found with divisor 1; where squares left the range of numbers, taken again.
  double checked_norm(std::vector<TileError>& found, const Buffer<T>& values, const Buffer<T>& other);
  double norm_of_tiles(const std::vector<TileError>& found, double divisor) const;
  void thin_starts();
  void take_room();
  void record_point(const SavedPoint& point);
  T* saved_rows(std::size_t place) const { return saved_ + place * state_.size(); }
  void pack_start();
  void pack_start_of_tile(std::int64_t tile);
  void refuse_non_finite(const T* values, std::size_t size) const;
  std::string first_non_finite(std::int64_t tile, const T* values) const;

  Problem<T>& problem_;
  EngineOptions options_;
  Code code_;
  std::int32_t rows_;        // of the state; twice the program's for the adjoint
  std::size_t stage_count_;  // dense stages included
  std::size_t end_rate_stage_;
  bool first_same_as_last_;
  bool estimates_error_;

  Buffer<T> state_, before_, candidate_;  // (rows) of every tile
  Buffer<T> stages_;                      // (stages, rows) of every tile, for steps that are not kept
  Buffer<T> errors_;                      // (rows) of every tile
  std::vector<AtDepth<T>> at_depth_;      // (stages), or one where nothing varies
  std::vector<Scratch> scratch_;          // (threads)
  std::vector<TileError> tile_errors_;    // (tiles)
  std::vector<TileError> state_norms_;    // (tiles), at the start of the solve
  std::vector<char> tile_finite_;         // (tiles)
  std::unique_ptr<AdjointSums<T>> sums_;
  T* saved_;
  SavedAs saved_as_ = SavedAs::samples;
  std::vector<StepRecord<T>> records_;
  std::vector<std::vector<SavedPoint>> spare_lists_;  // of records of earlier solves
  History<T> history_;
  ActivationLayout layout_;
  History<T> activations_, rates_;

  /// What a solve has come to. The next one begins with a fresh one.
  struct Course {
    ode::Step step = {};
    RateKnown rate_known_at = RateKnown::nowhere;
    typename StepRecord<T>::First first_stage = StepRecord<T>::First::recomputed;
    bool has_dense_stages = false;
    std::size_t known_stages = 0;  // of the step under way, or the last one accepted
    std::int64_t evaluations = 0;
    std::int64_t stride = 1;  // of the starts that are kept
    std::int64_t kept_starts = 0;
    std::int64_t activation_bytes = 0, rate_bytes = 0;  // kept so far
    Room room, room_before;  // of the step under way, or the last one accepted; of the one before it
    const T* unpacked_start = nullptr;  // the caller's, until the first work on the tiles
    T* start_room = nullptr;  // (rows) of every tile, for the start of the step under way; null: not kept
    bool needs_room = true;
    Sequel<T>* sequel = nullptr;
    double last = 0;
    bool is_final = false;  // the step under way, or the last one accepted: the sequel follows
  };
  Course course_;
};

}  // namespace fathom::fused
