#include "fathom/fused/end_loss.hpp"

#include "fathom/fused/pool.hpp"
#include "fathom/support/error.hpp"

namespace fathom::fused {

template <class T>
EndLoss<T>::EndLoss(std::shared_ptr<const Program> program, Tensors<T> tensors, const Tiles& tiles,
                    int threads)
    : problem_(std::move(program), std::move(tensors), tiles, threads),
      code_(problem_.code()),
      tile_sums_(std::size_t(tiles.count())) {
  require(problem_.program->loss_rows == 1 && !problem_.program->varies_with_depth(),
          "the loss at the end of a solve is one row that does not vary with depth");
  problem_.weights.prepare(0, /*with_slopes=*/false, at_);
  const std::size_t width = std::size_t(tiles.widest());
  for (int thread = 0; thread < problem_.threads; ++thread) {
    workers_.push_back({.registers = Buffer<T>::raw(width * std::size_t(code_.register_rows)),
                        .adjoints = Buffer<T>::raw(width * std::size_t(code_.register_rows)),
                        .rate = Buffer<T>::raw(width * std::size_t(code_.rate_rows)),
                        .seed = Buffer<T>::raw(width * std::size_t(code_.rate_rows)),
                        .gradient = Buffer<T>(problem_.weights.gradient_size()),
                        .views = {},
                        .total = std::vector<double>(problem_.weights.gradient_size())});
    Worker& made = workers_.back();
    made.views = problem_.weights.views({made.gradient.data(), made.gradient.size()}, {});
  }
}

template <class T>
double EndLoss<T>::evaluate(const T* states, std::int32_t rows, double share, T* adjoints) {
  const Tiles& tiles = problem_.tiles;
  begin();
  run_in_parallel(tiles.count(), problem_.threads, [&](std::int64_t tile, int thread) {
    const std::size_t begin = tiles.begin(tile, rows);
    on_tile(tile, thread, states + begin, rows, share, adjoints ? adjoints + begin : nullptr);
  });
  return finish(share);
}

template <class T> void EndLoss<T>::begin() {
  for (Worker& worker : workers_) worker.has_total = false;
}

template <class T>
void EndLoss<T>::on_tile(std::int64_t tile, int thread, const T* states, std::int32_t rows, double share,
                         T* adjoints) noexcept {
  const Tiles& tiles = problem_.tiles;
  const std::size_t features = std::size_t(problem_.program->features());
  const std::size_t width = std::size_t(tiles.width(tile));
  Worker& worker = workers_[std::size_t(thread)];
  problem_.pack_inputs(tile);
  std::copy_n(states, features * width, worker.registers.data());
  Frame<T> frame{.width = std::int32_t(width),
                 .banks = {worker.registers.data(), problem_.inputs_of(tile), worker.rate.data()},
                 .matrices = at_.matrices.data(),
                 .signals = nullptr,
                 .depth = 0};
  problem_.kernels.evaluate(code_, frame);
  const T* losses = worker.rate.data() + features * width;
  double sum = 0;
  for (std::int32_t i = 0; i < tiles.samples(tile); ++i) sum += double(losses[i]);
  tile_sums_[std::size_t(tile)] = sum;
  if (adjoints) pull_back(tile, worker, frame, rows, T(share), adjoints);
}

template <class T> double EndLoss<T>::finish(double share) {
  double total = 0;
  for (const double sum : tile_sums_) total += sum;
  gradient_.assign(problem_.weights.gradient_size(), 0.0);
  for (const Worker& worker : workers_) {
    if (!worker.has_total) continue;
    for (std::size_t n = 0; n < gradient_.size(); ++n) gradient_[n] += worker.total[n];
  }
  return share * total;
}

template <class T>
void EndLoss<T>::pull_back(std::int64_t tile, Worker& worker, Frame<T>& frame, std::int32_t rows, T share,
                           T* adjoints) {
  const std::size_t width = std::size_t(frame.width);
  const std::size_t features = std::size_t(problem_.program->features());
  // Padding repeats a sample and must not count it again.
  std::fill_n(worker.seed.data(), width * std::size_t(code_.rate_rows), T(0));
  std::fill_n(worker.seed.data() + features * width, problem_.tiles.samples(tile), share);
  frame.adjoints[int(Bank::registers)] = worker.adjoints.data();
  frame.adjoints[int(Bank::rate)] = worker.seed.data();
  frame.gradients = worker.views.data();
  problem_.kernels.pull_back(code_, frame);
  std::copy_n(worker.adjoints.data(), features * width, adjoints);
  std::fill_n(adjoints + features * width, (std::size_t(rows) - features) * width, T(0));
  if (!worker.has_total) std::fill(worker.total.begin(), worker.total.end(), 0.0);
  worker.has_total = true;
  problem_.kernels.move_to_totals(worker.gradient.data(), worker.total.data(), worker.total.size());
}

template <class T> std::size_t EndLoss<T>::bytes() const {
  std::size_t bytes = problem_.bytes() + gradient_.size() * sizeof(double);
  for (const Worker& worker : workers_) {
    for (const Buffer<T>* buffer :
         {&worker.registers, &worker.adjoints, &worker.rate, &worker.seed, &worker.gradient})
      bytes += buffer->bytes();
    bytes += worker.total.size() * sizeof(double);
  }
  return bytes;
}

template class EndLoss<float>;
template class EndLoss<double>;

}  // namespace fathom::fused
