#include "fathom/fused/end_loss.hpp"

#include "fathom/fused/pool.hpp"
#include "fathom/support/error.hpp"

namespace fathom::fused {

template <class T>
EndLoss<T>::EndLoss(std::shared_ptr<const Program> program, Tensors<T> tensors, const Tiles& tiles,
                    int threads)
    : problem_(std::move(program), std::move(tensors), tiles, threads),
      code_(problem_.code()),
      tile_sums_(std::size_t(tiles.count())),
      tile_running_(std::size_t(tiles.count())) {
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
  tile_sums_[std::size_t(tile)] = evaluate_tile(tile, thread, 0, states, rows, share, adjoints);
  tile_running_[std::size_t(tile)] = running_losses(tile, states, rows, adjoints);
}

template <class T>
double EndLoss<T>::evaluate_points(const T* states, std::int32_t rows, std::span<const double> shares,
                                   T* adjoints) {
  const Tiles& tiles = problem_.tiles;
  const std::size_t size = tiles.padded_batch() * std::size_t(rows);
  begin();
  run_in_parallel(tiles.count(), problem_.threads, [&](std::int64_t tile, int thread) {
    double sum = 0;
    for (std::size_t point = 0; point < shares.size(); ++point) {
      const std::size_t at = point * size + tiles.begin(tile, rows);
      T* to = adjoints ? adjoints + at : nullptr;
      const double share = shares[point];
      sum += share * evaluate_tile(tile, thread, std::int64_t(point), states + at, rows, share, to);
      if (point + 1 == shares.size())
        tile_running_[std::size_t(tile)] = running_losses(tile, states + at, rows, to);
    }
    tile_sums_[std::size_t(tile)] = sum;
  });
  return finish(1);
}

template <class T>
double EndLoss<T>::evaluate_tile(std::int64_t tile, int thread, std::int64_t point, const T* states,
                                 std::int32_t rows, double share, T* adjoints) {
  const Tiles& tiles = problem_.tiles;
  const std::size_t features = std::size_t(problem_.program->features());
  const std::size_t width = std::size_t(tiles.width(tile));
  Worker& worker = workers_[std::size_t(thread)];
  problem_.pack_inputs(tile, point);
  std::copy_n(states, features * width, worker.registers.data());
  Frame<T> frame{.width = std::int32_t(width),
                 .samples = tiles.samples(tile),
                 .banks = {worker.registers.data(), problem_.inputs_of(tile), worker.rate.data()},
                 .matrices = at_.matrices.data(),
                 .signals = nullptr,
                 .depth = 0};
  problem_.kernels.evaluate(code_, frame);
  const T* losses = worker.rate.data() + features * width;
  double sum = 0;
  for (std::int32_t i = 0; i < tiles.samples(tile); ++i) sum += double(losses[i]);
  if (adjoints) pull_back(tile, worker, frame, rows, T(share), adjoints);
  return sum;
}

template <class T>
double EndLoss<T>::running_losses(std::int64_t tile, const T* states, std::int32_t rows, T* adjoints) const {
  const std::size_t width = std::size_t(problem_.tiles.width(tile));
  const std::size_t features = std::size_t(problem_.program->features());
  double sum = 0;
  for (std::size_t k = 0; k < running_.size() && features + k < std::size_t(rows); ++k) {
    const std::size_t row = (features + k) * width;
    for (std::int32_t i = 0; i < problem_.tiles.samples(tile); ++i)
      sum += running_[k] * double(states[row + std::size_t(i)]);
    if (adjoints) std::fill_n(adjoints + row, problem_.tiles.samples(tile), T(running_[k]));
  }
  return sum;
}

template <class T> double EndLoss<T>::finish(double share) {
  double total = 0;
  for (const double sum : tile_sums_) total += sum;
  double running = 0;
  for (const double sum : tile_running_) running += sum;
  gradient_.assign(problem_.weights.gradient_size(), 0.0);
  for (const Worker& worker : workers_) {
    if (!worker.has_total) continue;
    for (std::size_t n = 0; n < gradient_.size(); ++n) gradient_[n] += worker.total[n];
  }
  return share * total + running;
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
