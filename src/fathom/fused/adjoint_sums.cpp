#include "fathom/fused/adjoint_sums.hpp"

#include <algorithm>
#include <array>

namespace fathom::fused {

namespace {

template <class T> void clear(Buffer<T>& buffer) {
  std::fill(buffer.data(), buffer.data() + buffer.size(), T(0));
}

}  // namespace

template <class T>
AdjointSums<T>::AdjointSums(const Problem<T>& problem, const ode::ButcherTableau& method)
    : problem_(problem),
      method_(method),
      end_rate_stage_(method.end_rate_stage().value_or(0)),
      first_same_as_last_(method.first_same_as_last()),
      total_(problem.weights.gradient_size()),
      total_inputs_(problem.inputs.size()) {
  const std::size_t size = problem.weights.gradient_size(), inputs = problem.inputs.size();
  const std::size_t tile_inputs =
      std::size_t(problem.tiles.widest()) * std::size_t(problem.program->input_rows);
  for (int thread = 0; thread < problem.threads; ++thread) {
    Worker& made = workers_.emplace_back();
    made.stage_gradient = Buffer<T>(problem.weights.stage_gradient_size());
    made.inputs = Buffer<T>(tile_inputs);
    for (Block* block : {&made.sums.first, &made.sums.last, &made.sums.inner}) {
      block->values = Buffer<T>(size);
      block->views = problem.weights.views({block->values.data(), size},
                                           {made.stage_gradient.data(), made.stage_gradient.size()});
    }
  }
  inputs_ = {Buffer<T>(inputs), Buffer<T>(inputs), Buffer<T>(inputs)};
}

template <class T> void AdjointSums<T>::begin_again() {
  std::fill(total_.begin(), total_.end(), 0.0);
  clear(total_inputs_);
}

template <class T> void AdjointSums<T>::begin_first_stage() {
  for (Worker& worker : workers_) clear(worker.sums.first.values);
  clear(inputs_.first);
}

template <class T> void AdjointSums<T>::begin_step() {
  for (Worker& worker : workers_) clear(worker.sums.inner.values), clear(worker.sums.last.values);
  clear(inputs_.inner), clear(inputs_.last);
}

template <class T>
void AdjointSums<T>::begin_stage(int thread, std::optional<std::size_t> stage, double step, Frame<T>& frame) {
  Worker& worker = workers_[std::size_t(thread)];
  worker.stage = stage.value_or(0);
  const bool is_inner = worker.stage != 0 && worker.stage != end_rate_stage_;
  worker.share = !stage ? T(0) : is_inner ? T(step * method_.b[worker.stage]) : T(1);
  clear(worker.stage_gradient);
  clear(worker.inputs);
  frame.adjoints[int(Bank::inputs)] = worker.inputs.data();
  frame.gradients = worker.share == 0 ? nullptr : worker.sums.at(worker.stage, end_rate_stage_).views.data();
  frame.gradient_scale = worker.share;
}

template <class T>
void AdjointSums<T>::end_stage(std::int64_t tile, int thread, const AtDepth<T>& at, const Frame<T>& frame) {
  Worker& worker = workers_[std::size_t(thread)];
  if (worker.share == 0) return;
  Block& block = worker.sums.at(worker.stage, end_rate_stage_);
  if (worker.stage_gradient.size() > 0) {
    problem_.weights.spread({&at, worker.stage_gradient.data()},
                            std::span<T>(block.values.data(), block.values.size()));
  }
  const std::int32_t rows = problem_.program->input_rows;
  if (rows == 0) return;
  T* inputs = inputs_.at(worker.stage, end_rate_stage_).data() + problem_.tiles.begin(tile, rows);
  const T* one = worker.inputs.data();
  problem_.kernels.combine(inputs, inputs, &one, &worker.share, 1,
                           std::size_t(rows) * std::size_t(frame.width));
}

template <class T> void AdjointSums<T>::accept(double step) {
  const double first = step * method_.b[0];
  const double last = first_same_as_last_ ? step * method_.b[end_rate_stage_] : 0;
  for (Worker& worker : workers_) {
    Ends<Block>& sums = worker.sums;
    for (std::size_t n = 0; n < total_.size(); ++n) {
      total_[n] += first * double(sums.first.values.data()[n]) + double(sums.inner.values.data()[n]) +
                   last * double(sums.last.values.data()[n]);
    }
    if (first_same_as_last_) std::swap(sums.first, sums.last);
  }
  const std::array<const T*, 3> terms = {inputs_.first.data(), inputs_.inner.data(), inputs_.last.data()};
  const std::array<T, 3> weights = {T(first), T(1), T(last)};
  T* total = total_inputs_.data();
  problem_.kernels.combine(total, total, terms.data(), weights.data(), 3, total_inputs_.size());
  if (first_same_as_last_) inputs_.first.swap(inputs_.last);
}

template <class T> void AdjointSums<T>::add_to(std::vector<double>& gradient, Buffer<T>& inputs) const {
  for (std::size_t n = 0; n < gradient.size(); ++n) gradient[n] += total_[n];
  for (std::size_t n = 0; n < inputs.size(); ++n) inputs.data()[n] += total_inputs_.data()[n];
}

template class AdjointSums<float>;
template class AdjointSums<double>;

}  // namespace fathom::fused
