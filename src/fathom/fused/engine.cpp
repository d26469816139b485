#include "fathom/fused/engine.hpp"

#include <array>
#include <cmath>

#include "fathom/fused/adjoint_sums.hpp"
#include "fathom/fused/combination.hpp"
#include "fathom/fused/pool.hpp"
#include "fathom/support/error.hpp"

namespace fathom::fused {

template <class T>
Engine<T>::Engine(Problem<T>& problem, EngineOptions options, const T* start, T* saved)
    : problem_(problem),
      options_(std::move(options)),
      code_(problem.code()),
      rows_(problem.rows() * (options_.adjoint ? 2 : 1)),
      stage_count_(options_.method->c.size()),
      end_rate_stage_(options_.method->end_rate_stage().value_or(0)),
      first_same_as_last_(options_.method->first_same_as_last()),
      estimates_error_(options_.adaptive && options_.method->adaptive()),
      state_(Buffer<T>::raw(problem.padded(rows_))),
      before_(Buffer<T>::raw(state_.size())),
      candidate_(Buffer<T>::raw(state_.size())),
      errors_(Buffer<T>::raw(state_.size())),
      at_depth_(problem.program->varies_with_depth() ? stage_count_ + 1 : 1),
      tile_errors_(std::size_t(problem.tiles.count())),
      tile_finite_(std::size_t(problem.tiles.count())),
      saved_(saved),
      history_(state_.size()),
      layout_{.stages = stage_count_,
              .register_rows = std::size_t(code_.register_rows),
              .rate_rows = std::size_t(code_.rate_rows)},
      activations_(problem.padded(std::int32_t(layout_.rows()))),
      rates_(state_.size() * stage_count_) {
  require(stage_count_ <= most_stages, "a method has at most ", most_stages, " stages here, got ",
          stage_count_);
  const std::size_t width = std::size_t(problem.tiles.widest());
  const std::size_t stage_rows = std::size_t(code_.register_rows + code_.passing_rows);
  for (int thread = 0; thread < problem.threads; ++thread) {
    scratch_.push_back({.registers = Buffer<T>::raw(width * stage_rows),
                        .adjoints = Buffer<T>::raw(options_.adjoint ? width * stage_rows : 0),
                        .argument = Buffer<T>::raw(width * std::size_t(rows_)),
                        .seed = Buffer<T>::raw(options_.adjoint ? width * std::size_t(code_.rate_rows) : 0),
                        .by_sample = std::vector<double>(width)});
  }
  if (options_.adjoint) sums_ = std::make_unique<AdjointSums<T>>(problem, *options_.method);
  course_.stride = options_.keep_every;
  course_.unpacked_start = start;
  pack_start();
}

template <class T> void Engine<T>::begin_again(const EngineOptions& options, const T* start) {
  require(options.adjoint == bool(sums_) && &*options.method == &*options_.method,
          "an engine begins again with the method that it was made for, and for the adjoint if it was made "
          "for that");
  options_ = options;
  estimates_error_ = options_.adaptive && options_.method->adaptive();
  if (sums_) sums_->begin_again();
  for (StepRecord<T>& record : records_) {
    if (record.saved.capacity() == 0) continue;
    record.saved.clear();
    spare_lists_.push_back(std::move(record.saved));
  }
  records_.clear();
  history_.clear(), activations_.clear(), rates_.clear();
  course_ = {.stride = options_.keep_every, .unpacked_start = start};
}

template <class T> std::size_t Engine<T>::bytes() const {
  std::size_t bytes = history_.bytes() + activations_.bytes() + rates_.bytes();
  for (const Buffer<T>* buffer : {&state_, &before_, &candidate_, &errors_, &stages_})
    bytes += buffer->bytes();
  for (const Scratch& scratch : scratch_) bytes += scratch.registers.bytes() + scratch.argument.bytes();
  return bytes + records_.capacity() * sizeof(StepRecord<T>);
}

template <class T> void Engine<T>::pack_start_of_tile(std::int64_t tile) {
  T* state = state_.data() + begin(tile);
  problem_.pack_state(tile, course_.unpacked_start, state);
  if (options_.adjoint) {
    problem_.pack_state(tile, course_.unpacked_start + problem_.state_size(), state + tile_size(tile) / 2);
  }
  std::copy_n(state, tile_size(tile), candidate_.data() + begin(tile));
}

/// Each thread its own tiles: they are, and stay, in its nearest cache.
template <class T> void Engine<T>::pack_start() {
  if (!course_.unpacked_start) return;
  for_each_tile([&](std::int64_t tile, int) { pack_start_of_tile(tile); });
  course_.unpacked_start = nullptr;
}

template <class T> Engine<T>::~Engine() = default;

template <class T> template <class Work> void Engine<T>::for_each_tile(Work&& work) {
  run_in_parallel(problem_.tiles.count(), problem_.threads, work);
}

template <class T> void Engine<T>::prepare(std::size_t index, double depth) {
  const std::size_t place = at_depth_.size() == 1 ? 0 : index;
  problem_.weights.prepare(depth, /*with_slopes=*/false, at_depth_[place]);
}

template <class T>
auto Engine<T>::registers_of(std::int64_t tile, int thread, std::optional<std::size_t> index) -> StageRows {
  T* scratch = scratch_[std::size_t(thread)].registers.data();
  const std::size_t behind = std::size_t(code_.register_rows) * std::size_t(problem_.tiles.width(tile));
  if (index && course_.is_final && *index > 0) {
    if (T* near = course_.sequel->registers(tile, thread, *index)) return {near, near + behind, true};
  } else if (T* activations = course_.room.activations(); activations && index) {
    return {activations + layout_.registers(problem_.tiles, tile, *index), scratch + behind, true};
  }
  return {scratch, scratch + behind, options_.adjoint};
}

template <class T>
void Engine<T>::evaluate(std::int64_t tile, int thread, const AtDepth<T>& at, const T* argument, T* rate,
                         std::optional<std::size_t> index) {
  const StageRows rows = registers_of(tile, thread, index);
  if (argument != rows.registers) std::copy_n(argument, problem_.argument_size(tile), rows.registers);
  Frame<T> frame{.width = problem_.tiles.width(tile),
                 .samples = problem_.tiles.samples(tile),
                 .banks = {rows.registers, problem_.inputs_of(tile), rate, rows.passing},
                 .matrices = at.matrices.data(),
                 .signals = at.signals.data(),
                 .depth = at.depth,
                 .has_registers = rows.are_read};
  problem_.kernels.evaluate(code_, frame);
  if (options_.adjoint) pull_adjoint(tile, thread, at, argument, rate, frame, index);
}

/// For the step to come: with its activations while the budget lasts, then with its rates alone, kept; in the end one room
/// for all. A step that is tried again has that of its first trial.
template <class T> void Engine<T>::take_room() {
  if (!course_.needs_room) return;
  course_.needs_room = false;
  course_.room_before = course_.room;
  course_.start_room = nullptr;
  const auto bytes = [&](const ActivationLayout& layout) {
    return std::int64_t(problem_.padded(std::int32_t(layout.rows())) * sizeof(T));
  };
  const ActivationLayout rates{.stages = stage_count_, .register_rows = 0, .rate_rows = std::size_t(rows_)};
  if (course_.activation_bytes + bytes(layout_) <= options_.activation_budget) {
    course_.activation_bytes += bytes(layout_);
    course_.room = {activations_.take(), layout_, true};
  } else if (course_.rate_bytes + bytes(rates) <= options_.rate_budget) {
    course_.rate_bytes += bytes(rates);
    course_.room = {rates_.take(), rates, true};
  } else {
    if (stages_.size() == 0) stages_ = Buffer<T>::raw(state_.size() * stage_count_);
    course_.room = {stages_.data(), rates, false};
  }
}

/// a' = -a df/dy behind y' in the stage, and -a df/dtheta into the sums.
template <class T>
void Engine<T>::pull_adjoint(std::int64_t tile, int thread, const AtDepth<T>& at, const T* argument, T* rate,
                             Frame<T>& frame, std::optional<std::size_t> summed) {
  Scratch& scratch = scratch_[std::size_t(thread)];
  const std::size_t half = tile_size(tile) / 2;
  for (std::size_t n = 0; n < half; ++n) scratch.seed.data()[n] = -argument[half + n];
  // Padding repeats a sample and must not count it again.
  for (std::int32_t r = 0; r < code_.rate_rows; ++r) {
    T* row = scratch.seed.data() + std::size_t(r) * std::size_t(frame.width);
    std::fill(row + problem_.tiles.samples(tile), row + frame.width, T(0));
  }
  frame.adjoints[int(Bank::registers)] = scratch.adjoints.data();
  frame.adjoints[int(Bank::passing)] =
      scratch.adjoints.data() + std::size_t(code_.register_rows) * std::size_t(frame.width);
  frame.adjoints[int(Bank::rate)] = scratch.seed.data();
  sums_->begin_stage(thread, summed, course_.step.size(), frame);
  problem_.kernels.pull_back(code_, frame);
  std::copy(scratch.adjoints.data(), scratch.adjoints.data() + half, rate + half);
  sums_->end_stage(tile, thread, at, frame);
}

template <class T>
void Engine<T>::combine(std::int64_t tile, std::span<const double> weights, double h, const T* base, T* out,
                        std::size_t size) const {
  const T* rates = stage(tile, 0);
  const std::size_t stride = tile_size(tile);
  Combination<T> sum;
  for (std::size_t j = 0; j < weights.size(); ++j) sum.add(rates + j * stride, h * weights[j]);
  sum.write(problem_.kernels, out, base, size);
}

template <class T>
void Engine<T>::evaluate_stage(std::int64_t tile, int thread, std::size_t index, const T* from) {
  // The end-rate stage is evaluated at the new state itself, so that both have the same bits.
  const bool at_candidate = index == end_rate_stage_ && index < options_.method->stages();
  T* argument = at_candidate       ? candidate_.data() + begin(tile)
                : options_.adjoint ? scratch_[std::size_t(thread)].argument.data()
                                   : registers_of(tile, thread, index).registers;
  const bool is_state = at_candidate || options_.adjoint;
  combine(tile, options_.method->a[index], course_.step.size(), from, argument,
          is_state ? tile_size(tile) : problem_.argument_size(tile));
  evaluate(tile, thread, at_depth(index), argument, stage(tile, index), index);
}

template <class T> bool Engine<T>::prepare_first_rate(const ode::Step& step) {
  using First = typename StepRecord<T>::First;
  take_room();
  const bool is_known = course_.rate_known_at == RateKnown::at_end_rate_stage;
  const bool has_step_before = !records_.empty() && records_.back().activations;
  course_.first_stage = is_known ? has_step_before ? First::in_step_before : First::recomputed
                        : course_.room.activations() ? First::here
                                                     : First::recomputed;
  course_.rate_known_at = RateKnown::at_first_stage;
  if (!is_known) {
    prepare(0, step.stage_depth(0));
    ++course_.evaluations;
    if (sums_) sums_->begin_first_stage();
  }
  return is_known;
}

template <class T> void Engine<T>::first_rate_of_tile(std::int64_t tile, int thread, bool is_known) {
  if (is_known) {
    const T* known =
        course_.room_before.memory + course_.room_before.layout.rate(problem_.tiles, tile, end_rate_stage_);
    std::copy_n(known, tile_size(tile), stage(tile, 0));
  } else {
    evaluate(tile, thread, at_depth(0), state_.data() + begin(tile), stage(tile, 0), std::size_t(0));
  }
}

template <class T>
auto Engine<T>::scaled_norm_of_tile(std::int64_t tile, int thread, const T* values, const T* other,
                                    double divisor) -> TileError {
  const ode::AdaptiveSteps& tolerance = *options_.adaptive;
  std::vector<double>& by_sample = scratch_[std::size_t(thread)].by_sample;
  const bool per_sample = tolerance.norm == ode::ErrorNorm::per_sample;
  if (per_sample) std::fill(by_sample.begin(), by_sample.end(), 0.0);
  ErrorFrame<T> frame{.rows = rows_,
                      .width = problem_.tiles.width(tile),
                      .samples = problem_.tiles.samples(tile),
                      .values = values,
                      .from = state_.data() + begin(tile),
                      .to = other,
                      .relative = T(tolerance.relative_tolerance),
                      .absolute = T(tolerance.absolute_tolerance),
                      .divisor = divisor,
                      .by_sample = per_sample ? by_sample.data() : nullptr};
  problem_.kernels.scaled_error(frame);
  const double squares = per_sample ? *std::max_element(by_sample.begin(), by_sample.end()) : frame.squares;
  return {frame.largest, squares};
}

template <class T>
double Engine<T>::norm_of_tiles(const std::vector<TileError>& found, double divisor) const {
  const bool per_sample = options_.adaptive->norm == ode::ErrorNorm::per_sample;
  double squares = 0;
  for (const TileError& tile : found) {
    squares = per_sample ? std::max(squares, tile.squares) : squares + tile.squares;
  }
  const double count = double(rows_) * (per_sample ? 1.0 : double(problem_.tiles.batch()));
  return divisor * std::sqrt(squares / count);
}

template <class T> double Engine<T>::scaled_norm(const Buffer<T>& values, const Buffer<T>& other) {
  if (state_.size() == 0) return 0;
  for_each_tile([&](std::int64_t tile, int thread) {
    tile_errors_[std::size_t(tile)] =
        scaled_norm_of_tile(tile, thread, values.data() + begin(tile), other.data() + begin(tile), 1);
  });
  return checked_norm(tile_errors_, values, other);
}

template <class T>
double Engine<T>::checked_norm(std::vector<TileError>& found, const Buffer<T>& values,
                               const Buffer<T>& other) {
  double largest = 0;
  for (const TileError& tile : found) {
    if (std::isnan(tile.largest)) return tile.largest;
    largest = std::max(largest, tile.largest);
  }
  if (largest == 0 || !std::isfinite(largest)) return largest;
  const double norm = norm_of_tiles(found, 1);
  if (largest > 1e-150 && std::isfinite(norm)) return norm;
  for_each_tile([&](std::int64_t tile, int thread) {
    found[std::size_t(tile)] =
        scaled_norm_of_tile(tile, thread, values.data() + begin(tile), other.data() + begin(tile), largest);
  });
  return norm_of_tiles(found, largest);
}

template <class T> double Engine<T>::state_norm() {
  pack_start();
  return scaled_norm(state_, state_);
}

template <class T> double Engine<T>::rate_norm(const std::vector<double>& weights) {
  if (state_.size() == 0) return 0;
  if (weights.size() > options_.method->stages()) {
    if (options_.adjoint) return std::numeric_limits<double>::quiet_NaN();
    finish_dense_stages();
  }
  for_each_tile([&](std::int64_t tile, int thread) {
    T* sum = errors_.data() + begin(tile);
    combine(tile, weights, 1, nullptr, sum, tile_size(tile));
    tile_errors_[std::size_t(tile)] = scaled_norm_of_tile(tile, thread, sum, before_.data() + begin(tile), 1);
  });
  return checked_norm(tile_errors_, errors_, before_);
}

template <class T> ode::StartNorms Engine<T>::start_norms(const ode::Step& step) {
  const bool is_known = prepare_first_rate(step);
  course_.known_stages = 1;
  state_norms_.resize(tile_errors_.size());
  for_each_tile([&](std::int64_t tile, int thread) {
    const T* state = state_.data() + begin(tile);
    T* rate = errors_.data() + begin(tile);
    if (course_.unpacked_start) pack_start_of_tile(tile);
    first_rate_of_tile(tile, thread, is_known);
    std::copy_n(stage(tile, 0), tile_size(tile), rate);
    state_norms_[std::size_t(tile)] = scaled_norm_of_tile(tile, thread, state, state, 1);
    tile_errors_[std::size_t(tile)] = scaled_norm_of_tile(tile, thread, rate, state, 1);
  });
  course_.unpacked_start = nullptr;
  return {checked_norm(state_norms_, state_, state_), checked_norm(tile_errors_, errors_, state_)};
}

template <class T> double Engine<T>::curvature(const ode::Step& probe) {
  prepare(stage_count_, probe.stage_depth(1));
  ++course_.evaluations;
  for_each_tile([&](std::int64_t tile, int thread) {
    T* argument = scratch_[std::size_t(thread)].argument.data();
    T* change = errors_.data() + begin(tile);
    const T* rate = stage(tile, 0);
    const T size = T(probe.size()), minus = T(-1);
    problem_.kernels.combine(argument, state_.data() + begin(tile), &rate, &size, 1, tile_size(tile));
    evaluate(tile, thread, at_depth(stage_count_), argument, change, {});
    problem_.kernels.combine(change, change, &rate, &minus, 1, tile_size(tile));
    tile_errors_[std::size_t(tile)] =
        scaled_norm_of_tile(tile, thread, change, state_.data() + begin(tile), 1);
  });
  return checked_norm(tile_errors_, errors_, state_) / std::abs(probe.size());
}

template <class T> FinalStep<T> Engine<T>::final_step() const {
  using First = typename StepRecord<T>::First;
  FinalStep<T> step{.step = course_.step,
                    .start = state_.data(),
                    .rates = course_.room.memory,
                    .layout = course_.room.layout};
  if (course_.first_stage == First::here) step.first = course_.room.activations();
  if (course_.first_stage == First::in_step_before) {
    step.first = records_.back().activations;
    step.first_place = end_rate_stage_;
  }
  return step;
}

template <class T> ode::TrialError Engine<T>::attempt(const ode::Step& step) {
  const ode::ButcherTableau& method = *options_.method;
  pack_start();
  take_room();
  const bool has_first_rate = course_.rate_known_at == RateKnown::at_first_stage;
  const bool is_known = !has_first_rate && prepare_first_rate(step);
  course_.step = step;
  course_.is_final = course_.sequel && step.end == course_.last;
  if (course_.is_final) course_.sequel->begin(final_step());
  const bool keeps_start =
      options_.keeps_starts && !course_.is_final && std::int64_t(records_.size()) % course_.stride == 0;
  if (keeps_start && !course_.start_room) course_.start_room = history_.take();
  for (std::size_t i = 1; i < method.stages(); ++i) prepare(i, step.stage_depth(method.c[i]));
  course_.evaluations += std::int64_t(method.stages()) - 1;
  course_.known_stages = method.stages();
  if (sums_) sums_->begin_step();
  for_each_tile([&](std::int64_t tile, int thread) {
    const T* from = state_.data() + begin(tile);
    T* candidate = candidate_.data() + begin(tile);
    if (keeps_start) std::copy_n(from, tile_size(tile), course_.start_room + begin(tile));
    if (!has_first_rate) first_rate_of_tile(tile, thread, is_known);
    for (std::size_t i = 1; i < method.stages(); ++i) evaluate_stage(tile, thread, i, from);
    if (!first_same_as_last_) combine(tile, method.b, course_.step.size(), from, candidate, tile_size(tile));
    if (course_.is_final) course_.sequel->follow(tile, thread, candidate);
    tile_finite_[std::size_t(tile)] = problem_.kernels.all_finite(candidate, tile_size(tile));
    if (!tile_finite_[std::size_t(tile)] || !estimates_error_) return;
    combine(tile, method.error, course_.step.size(), nullptr, errors_.data() + begin(tile), tile_size(tile));
    tile_errors_[std::size_t(tile)] =
        scaled_norm_of_tile(tile, thread, errors_.data() + begin(tile), candidate, 1);
  });
  ode::TrialError result{
      .finite = std::all_of(tile_finite_.begin(), tile_finite_.end(), [](char f) { return f != 0; })};
  if (!result.finite || !estimates_error_ || state_.size() == 0) return result;
  const double fine = checked_norm(tile_errors_, errors_, candidate_);
  double coarse = 0;
  if (!method.coarse_error.empty()) {
    for (std::int64_t tile = 0; tile < problem_.tiles.count(); ++tile) {
      combine(tile, method.coarse_error, course_.step.size(), nullptr, errors_.data() + begin(tile),
              tile_size(tile));
    }
    coarse = scaled_norm(errors_, candidate_);
  }
  result.ratio = ode::combined_error(fine, coarse);
  result.finite = std::isfinite(result.ratio);
  return result;
}

template <class T> void Engine<T>::accept() {
  before_.swap(state_);
  state_.swap(candidate_);
  const bool is_recorded = !course_.is_final && (options_.keeps_starts || sums_ == nullptr);
  if (is_recorded) {
    records_.push_back({.step = course_.step,
                        .start = course_.start_room,
                        .activations = course_.room.activations(),
                        .rates = course_.room.rates(),
                        .first = course_.first_stage});
  }
  course_.needs_room = true;  // at the next attempt: until then this one's dense stages may be asked for
  if (is_recorded && course_.start_room) thin_starts();
  course_.has_dense_stages = stage_count_ == options_.method->stages();
  course_.rate_known_at = first_same_as_last_ ? RateKnown::at_end_rate_stage : RateKnown::nowhere;
  if (sums_) sums_->accept(course_.step.size());
}

template <class T> void Engine<T>::add_sums(std::vector<double>& gradient, Buffer<T>& inputs) const {
  sums_->add_to(gradient, inputs);
}

/// One more start was kept; beyond the budget every second one goes.
template <class T> void Engine<T>::thin_starts() {
  ++course_.kept_starts;
  const std::int64_t bytes = course_.kept_starts * std::int64_t(before_.size() * sizeof(T));
  if (options_.keep_budget == 0 || bytes <= options_.keep_budget || course_.kept_starts <= 2) return;
  course_.stride *= 2;
  course_.kept_starts = 0;
  for (std::size_t n = 0; n < records_.size(); ++n) {
    if (!records_[n].start) continue;
    if (std::int64_t(n) % course_.stride == 0) {
      ++course_.kept_starts;
    } else {
      history_.give_back(records_[n].start);
      records_[n].start = nullptr;
    }
  }
}

template <class T> void Engine<T>::finish_dense_stages() {
  if (course_.has_dense_stages) return;
  const ode::ButcherTableau& method = *options_.method;
  for (std::size_t i = method.stages(); i < stage_count_; ++i)
    prepare(i, course_.step.stage_depth(method.c[i]));
  course_.evaluations += std::int64_t(stage_count_ - method.stages());
  for_each_tile([&](std::int64_t tile, int thread) {
    for (std::size_t i = method.stages(); i < stage_count_; ++i) {
      evaluate_stage(tile, thread, i, before_.data() + begin(tile));
    }
  });
  course_.has_dense_stages = true;
  course_.known_stages = stage_count_;
  if (end_rate_stage_ > 0) course_.rate_known_at = RateKnown::at_end_rate_stage;
}

/// In a list of an earlier solve where there is one: lists that are made anew would cost an allocation a step.
template <class T> void Engine<T>::record_point(const SavedPoint& point) {
  std::vector<SavedPoint>& saved = records_.back().saved;
  if (saved.capacity() == 0 && !spare_lists_.empty()) {
    saved = std::move(spare_lists_.back());
    spare_lists_.pop_back();
  }
  saved.push_back(point);
}

template <class T> void Engine<T>::save_state(std::size_t place) {
  if (saved_) pack_start();
  if (saved_ && saved_as_ == SavedAs::rows) std::copy_n(state_.data(), state_.size(), saved_rows(place));
  for (std::int64_t tile = 0; saved_ && saved_as_ == SavedAs::samples && tile < problem_.tiles.count();
       ++tile) {
    problem_.unpack_state(tile, state_.data() + begin(tile), saved_ + place * problem_.state_size());
  }
  if (!records_.empty() && !course_.is_final) record_point({.place = place, .fraction = 1});
}

template <class T> void Engine<T>::save_inside(std::size_t place, double fraction) {
  if (!saved_) return;
  finish_dense_stages();
  std::array<double, most_stages> weights;
  const std::span<double> used = std::span(weights).first(stage_count_);
  options_.method->dense_weights(fraction, used);
  const bool as_rows = saved_as_ == SavedAs::rows;
  T* const inside = as_rows ? saved_rows(place) : errors_.data();
  for (std::int64_t tile = 0; tile < problem_.tiles.count(); ++tile) {
    combine(tile, used, course_.step.size(), before_.data() + begin(tile), inside + begin(tile),
            tile_size(tile));
    if (!as_rows) problem_.unpack_state(tile, inside + begin(tile), saved_ + place * problem_.state_size());
  }
  refuse_non_finite(inside, state_.size());
  record_point({.place = place, .fraction = fraction});
}

template <class T> void Engine<T>::refuse_non_finite(const T* values, std::size_t size) const {
  if (problem_.kernels.all_finite(values, size)) return;
  throw ode::SolveFailure(
      ode::FailureReason::non_finite,
      {.depth = course_.step.start,
       .step = course_.step.size(),
       .evaluations = course_.evaluations,
       .component = offender(),
       .limits = {.steps = options_.adaptive ? ode::StepLimit::unknown : ode::StepLimit::grid}},
      "");
}

template <class T> void Engine<T>::read_state(T* state) const {
  for (std::int64_t tile = 0; tile < problem_.tiles.count(); ++tile) {
    problem_.unpack_state(tile, state_.data() + begin(tile), state);
    if (options_.adjoint) {
      problem_.unpack_state(tile, state_.data() + begin(tile) + tile_size(tile) / 2,
                            state + problem_.state_size());
    }
  }
}

template <class T>
Engine<T> Engine<T>::scout(const ode::Method& method, const ode::AdaptiveSteps& steps) const {
  std::vector<T> state(problem_.state_size() * (options_.adjoint ? 2 : 1));
  read_state(state.data());
  return {
      problem_, {.method = method, .adaptive = steps, .adjoint = options_.adjoint}, state.data(), nullptr};
}

template <class T> void Engine<T>::keep_records() {
  for (Buffer<T>* buffer : {&state_, &before_, &candidate_, &errors_, &stages_}) *buffer = Buffer<T>();
  std::vector<AtDepth<T>>().swap(at_depth_);
  std::vector<Scratch>().swap(scratch_);
}

template <class T> void Engine<T>::restart(const T* packed) {
  std::copy(packed, packed + state_.size(), state_.data());
  course_.unpacked_start = nullptr;
  course_.rate_known_at = RateKnown::nowhere;
}

template <class T> std::string Engine<T>::first_non_finite(std::int64_t tile, const T* values) const {
  const std::int32_t width = problem_.tiles.width(tile), samples = problem_.tiles.samples(tile);
  const std::int32_t features = problem_.program->features(), losses = problem_.program->loss_rows;
  for (std::int32_t i = 0; i < samples; ++i) {
    for (std::int32_t r = 0; r < rows_; ++r) {
      const double value = double(values[std::size_t(r) * std::size_t(width) + std::size_t(i)]);
      if (std::isfinite(value)) continue;
      const std::int32_t row = r % problem_.rows();
      const char* half = !options_.adjoint ? "" : r < problem_.rows() ? "on the way back, " : "adjoint of ";
      const std::int64_t sample = problem_.offset + problem_.tiles.first_sample(tile) + i;
      const std::string shown = std::isnan(value) ? "nan" : text(value);
      if (row < features) return text(half, "z[", sample, ", ", row, "] = ", shown);
      const std::string term = losses > 1 ? text(", ", row - features) : "";
      return text(half, "running loss[", sample, term, "] = ", shown);
    }
  }
  return {};
}

template <class T> std::string Engine<T>::offender() const {
  for (std::int64_t tile = 0; tile < problem_.tiles.count(); ++tile) {
    const std::string found = first_non_finite(tile, candidate_.data() + begin(tile));
    if (!found.empty()) return found;
  }
  for (std::size_t i = 0; i < course_.known_stages; ++i) {
    for (std::int64_t tile = 0; tile < problem_.tiles.count(); ++tile) {
      const std::string found = first_non_finite(tile, stage(tile, i));
      if (!found.empty()) return "rate of " + found;
    }
  }
  return {};
}

template class Engine<float>;
template class Engine<double>;

}  // namespace fathom::fused
