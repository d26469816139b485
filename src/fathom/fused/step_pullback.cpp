#include "fathom/fused/step_pullback.hpp"

#include <algorithm>

#include "fathom/fused/combination.hpp"

namespace fathom::fused {

template <class T> std::size_t StepScratch<T>::bytes() const {
  std::size_t bytes = 0;
  for (const Buffer<T>* buffer : {&registers, &adjoints, &rates, &pulled, &seed, &points, &depth_adjoint})
    bytes += buffer->bytes();
  return bytes;
}

template <class T>
StepPullback<T>::StepPullback(Problem<T>& problem, const ode::ButcherTableau& method,
                              const ActivationLayout& layout)
    : problem_(problem), method_(method), code_(problem.code()), layout_(layout) {
  if (!problem.program->varies_with_depth()) problem.weights.prepare(0, /*with_slopes=*/false, constant_);
}

template <class T> StepScratch<T> StepPullback<T>::scratch() const {
  const std::size_t width = std::size_t(problem_.tiles.widest()), stages = method_.c.size();
  const std::size_t rows = std::size_t(code_.rate_rows);
  return {.registers = Buffer<T>::raw(width * stage_rows() * stages),
          .adjoints = Buffer<T>::raw(width * stage_rows()),
          .rates = Buffer<T>::raw(width * rows * stages),
          .pulled = Buffer<T>::raw(width * rows * stages),
          .seed = Buffer<T>::raw(width * rows),
          .points = Buffer<T>::raw(width * rows),
          .depth_adjoint = Buffer<T>::raw(width)};
}

template <class T> std::size_t StepPullback<T>::row_numbers(std::int64_t tile) const {
  return std::size_t(code_.rate_rows) * std::size_t(problem_.tiles.width(tile));
}

/// dL/d(one saved state) as rows of a tile. Padding repeats a sample and must not count it again.
template <class T> void StepPullback<T>::load_point(std::int64_t tile, std::size_t place, T* rows) const {
  if (as_ == SavedAs::rows) {
    const std::size_t size = problem_.padded(problem_.rows());
    std::copy_n(saved_adjoints_ + place * size + problem_.tiles.begin(tile, code_.rate_rows),
                row_numbers(tile), rows);
    return;
  }
  problem_.pack_state(tile, saved_adjoints_ + place * problem_.state_size(), rows);
  const std::int32_t width = problem_.tiles.width(tile), samples = problem_.tiles.samples(tile);
  for (std::int32_t r = 0; samples < width && r < code_.rate_rows; ++r) {
    std::fill_n(rows + r * width + samples, width - samples, T(0));
  }
}

template <class T> void StepPullback<T>::add(T* to, T weight, const T* from, std::size_t size) const {
  problem_.kernels.combine(to, to, &from, &weight, 1, size);
}

template <class T>
void StepPullback<T>::add_point(std::int64_t tile, std::size_t place, StepScratch<T>& scratch, T* to) const {
  load_point(tile, place, scratch.points.data());
  add(to, T(1), scratch.points.data(), row_numbers(tile));
}

template <class T>
T* StepPullback<T>::near_registers(StepScratch<T>& scratch, std::int64_t tile, std::size_t i) const {
  return scratch.registers.data() + i * std::size_t(problem_.tiles.width(tile)) * stage_rows();
}

/// Behind the registers of a stage, or where they would be.
template <class T> T* StepPullback<T>::passing_behind(T* registers, std::int64_t tile) const {
  return registers + std::size_t(code_.register_rows) * std::size_t(problem_.tiles.width(tile));
}

template <class T>
Frame<T> StepPullback<T>::frame_of(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch,
                                   std::size_t i) const {
  const AtDepth<T>& at = plan.stages.empty() ? constant_ : plan.stages[i];
  const bool is_near = plan.is_near && i > 0;
  T* registers = scratch.registers.data();
  T* passing = passing_behind(registers, tile);
  T* rate = rate_of(plan, tile, scratch, i);
  if (const T* kept = plan.kept(i)) {
    const std::size_t stage = i == 0 ? plan.first_place : i;
    registers = const_cast<T*>(kept) + layout_.registers(problem_.tiles, tile, stage);
    rate = const_cast<T*>(kept) + layout_.rate(problem_.tiles, tile, stage);
  } else if (is_near || !plan.rates) {
    registers = near_registers(scratch, tile, i);
    passing = passing_behind(registers, tile);
  }
  return {.width = problem_.tiles.width(tile),
          .samples = problem_.tiles.samples(tile),
          .banks = {registers, problem_.inputs_of(tile), rate, passing},
          .matrices = at.matrices.data(),
          .signals = at.signals.data(),
          .depth = at.depth,
          .has_registers = plan.kept(i) || is_near || !plan.rates,
          .has_passing = !plan.kept(i),
          .signal_slopes = at.signal_slopes.data()};
}

/// k_i of a step whose activations are not kept.
template <class T>
T* StepPullback<T>::rate_of(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch,
                            std::size_t i) const {
  if (plan.rates) return const_cast<T*>(plan.rates) + plan.layout.rate(problem_.tiles, tile, i);
  return scratch.rates.data() + i * row_numbers(tile);
}

/// start + h sum_j a_ij k_j, of such a step.
template <class T>
void StepPullback<T>::find_argument(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch,
                                    std::size_t i, T* argument) const {
  const double h = plan.record->step.size();
  Combination<T> sum;
  for (std::size_t j = 0; j < method_.a[i].size(); ++j)
    sum.add(rate_of(plan, tile, scratch, j), h * method_.a[i][j]);
  sum.write(problem_.kernels, argument, plan.start + problem_.tiles.begin(tile, code_.rate_rows),
            problem_.argument_size(tile));
}

template <class T>
void StepPullback<T>::pull(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch,
                           const StepTargets<T>& targets) const {
  const std::size_t size = row_numbers(tile), stages = method_.c.size();
  T* adjoint = targets.adjoint;
  evaluate_stages(plan, tile, scratch);
  for (const SavedPoint& point : plan.points) {
    if (plan.is_end.holds_for(point)) add_point(tile, point.place, scratch, adjoint);
  }
  if (targets.moves) targets.moves->with_size(along(tile, scratch, method_.b, adjoint));
  if (plan.has_inside) collect_points(plan, tile, scratch, targets);
  for (std::size_t i = stages; i-- > 0;) {
    if (plan.needs(i)) pull_stage(plan, tile, scratch, i, targets);
  }
  Combination<T> sum;
  for (std::size_t i = 0; i < stages; ++i) {
    if (plan.needs(i)) sum.add(scratch.pulled.data() + i * size, 1);
  }
  sum.write(problem_.kernels, adjoint, adjoint, problem_.argument_size(tile));
}

/// Those of which nothing was kept.
template <class T>
void StepPullback<T>::evaluate_stages(const StepPlan<T>& plan, std::int64_t tile,
                                      StepScratch<T>& scratch) const {
  for (std::size_t i = 0; i < method_.c.size(); ++i) {
    if (!plan.needs(i) || plan.kept(i) || plan.rates) continue;
    Frame<T> frame = frame_of(plan, tile, scratch, i);
    find_argument(plan, tile, scratch, i, frame.banks[0]);
    problem_.kernels.evaluate(code_, frame);
  }
}

/// h (b_i a + sum over saved points b_i(t) p), in the place of l_i until the stage's turn; and a + sum of p.
template <class T>
void StepPullback<T>::collect_points(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch,
                                     const StepTargets<T>& targets) const {
  const std::size_t size = row_numbers(tile), stages = method_.c.size();
  const double h = plan.record->step.size();
  for (std::size_t i = 0; i < stages; ++i) {
    T* seed = scratch.pulled.data() + i * size;
    const T weight = T(h * weight_of(i));
    const T* from = targets.adjoint;
    if (plan.needs(i)) problem_.kernels.combine(seed, nullptr, &from, &weight, 1, size);
  }
  std::array<double, most_stages> memory;
  const std::span<double> weights = std::span(memory).first(stages);
  for (const SavedPoint& point : plan.points) {
    if (plan.is_end.holds_for(point)) continue;
    load_point(tile, point.place, scratch.points.data());
    method_.dense_weights(point.fraction, weights);
    for (std::size_t i = 0; i < stages; ++i) {
      if (weights[i] == 0) continue;
      add(scratch.pulled.data() + i * size, T(h * weights[i]), scratch.points.data(), size);
    }
    if (targets.moves) move_point(point, weights, tile, scratch, targets);
    add(targets.adjoint, T(1), scratch.points.data(), size);
  }
}

/// g_i, in scratch.seed.
template <class T>
void StepPullback<T>::find_seed(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch,
                                std::size_t i, const T* adjoint) const {
  const std::size_t size = row_numbers(tile), read = problem_.argument_size(tile);
  const double h = plan.record->step.size();
  T* seed = scratch.seed.data();
  const T* collected = plan.has_inside ? scratch.pulled.data() + i * size : nullptr;
  Combination<T> sum;
  if (!collected) sum.add(adjoint, h * weight_of(i));
  for (std::size_t j = i + 1; j < method_.c.size(); ++j) {
    if (plan.needs(j)) sum.add(scratch.pulled.data() + j * size, h * method_.a[j][i]);
  }
  sum.write(problem_.kernels, seed, collected, read);
  // No argument reads the running losses.
  Combination<T> of_losses;
  if (!collected) of_losses.add(adjoint + read, h * weight_of(i));
  of_losses.write(problem_.kernels, seed + read, collected ? collected + read : nullptr, size - read);
}

/// From g_i to l_i.
template <class T>
void StepPullback<T>::pull_stage(const StepPlan<T>& plan, std::int64_t tile, StepScratch<T>& scratch,
                                 std::size_t i, const StepTargets<T>& targets) const {
  const std::size_t size = row_numbers(tile);
  T* pulled = scratch.pulled.data() + i * size;
  find_seed(plan, tile, scratch, i, targets.adjoint);
  Frame<T> frame = frame_of(plan, tile, scratch, i);
  if (!frame.has_registers) find_argument(plan, tile, scratch, i, frame.banks[0]);
  frame.adjoints[int(Bank::registers)] = scratch.adjoints.data();
  frame.adjoints[int(Bank::passing)] = passing_behind(scratch.adjoints.data(), tile);
  frame.adjoints[int(Bank::rate)] = scratch.seed.data();
  frame.adjoints[int(Bank::inputs)] = targets.inputs;
  if (targets.gradients) frame.gradients = targets.gradients + i * targets.next_gradients;
  if (targets.moves) {
    std::fill_n(scratch.depth_adjoint.data(), scratch.depth_adjoint.size(), T(0));
    frame.depth_adjoint = scratch.depth_adjoint.data();
  }
  problem_.kernels.pull_back(code_, frame);
  std::copy_n(scratch.adjoints.data(), size, pulled);
  if (!targets.moves) return;
  targets.moves->with_size(along(tile, scratch, method_.a[i], pulled));
  double at = 0;
  for (std::int32_t sample = 0; sample < problem_.tiles.samples(tile); ++sample)
    at += double(scratch.depth_adjoint.data()[sample]);
  targets.moves->with_stage(method_.c[i], at);
}

template <class T>
double StepPullback<T>::along(std::int64_t tile, const StepScratch<T>& scratch,
                              std::span<const double> weights, const T* adjoint) const {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    sum += weights[i] * problem_.kernels.dot(scratch.rates.data() + i * row_numbers(tile), adjoint,
                                             code_.rate_rows, problem_.tiles.width(tile),
                                             problem_.tiles.samples(tile));
  }
  return sum;
}

/// A saved depth d lies at the fraction t = (d - start) / h of its step and moves with it along the interpolant.
template <class T>
void StepPullback<T>::move_point(const SavedPoint& point, std::span<const double> weights, std::int64_t tile,
                                 const StepScratch<T>& scratch, const StepTargets<T>& targets) const {
  std::array<double, most_stages> memory;
  const std::span<double> rates = std::span(memory).first(weights.size());
  method_.dense_weight_rates(point.fraction, rates);
  targets.moves->with_size(along(tile, scratch, weights, scratch.points.data()));
  const double by_fraction = along(tile, scratch, rates, scratch.points.data());  // dL/dt / h
  targets.depths[point.place] += by_fraction;
  targets.moves->start -= by_fraction;
  targets.moves->with_size(-point.fraction * by_fraction);
}

template struct StepScratch<float>;
template struct StepScratch<double>;
template class StepPullback<float>;
template class StepPullback<double>;

}  // namespace fathom::fused
