/// A loss on the state where a solve ends, L = share sum over samples l(z, y), with its head: evaluated and pulled back on the tiles
/// of the solve, so that nothing goes through a framework between the last step and the way back.
#pragma once

#include <span>
#include <vector>

#include "fathom/fused/problem.hpp"

namespace fathom::fused {

/// The program reads z and gives l as its one running loss; what it gives as rate of z is not looked at.
template <class T> class EndLoss {
 public:
  EndLoss(std::shared_ptr<const Program> program, Tensors<T> tensors, const Tiles& tiles, int threads);
  /// Other tensors of the same sizes, or the same with other numbers in them. Those of samples must stay for the evaluations: each
  /// thread packs what its tiles need.
  void read(const Tensors<T>& tensors) { problem_.read_weights(tensors); }
  /// The same for tensors of samples that hold a batch for each of `points` saved states.
  void read(const Tensors<T>& tensors, std::int64_t points) {
    problem_.input_blocks = points;
    problem_.read_weights(tensors);
  }
  const Program& program() const { return *problem_.program; }
  std::size_t bytes() const;  ///< that it holds

  /// L of `states`, of which every tile has `rows` rows and the program reads the first. With `adjoints`, dL/d(states) is written
  /// there and dL/d(weights) is in gradient() afterwards.
  double evaluate(const T* states, std::int32_t rows, double share, T* adjoints);
  /// The same, tile by tile: to begin with, on every tile with its own rows, and in the end.
  void begin();
  void on_tile(std::int64_t tile, int thread, const T* states, std::int32_t rows, double share,
               T* adjoints) noexcept;
  double finish(double share);

  /// The sum of L over several saved states, (points, rows of every tile), with a share for each; the adjoints lie likewise. Tensors of
  /// samples hold a batch for each point.
  double evaluate_points(const T* states, std::int32_t rows, std::span<const double> shares, T* adjoints);
  /// Adds to L  sum_k weights_k sum over samples r_k  of the running losses r behind z in the state; at the last point only. The weights are
  /// not multiplied by the share.
  void weigh_running_losses(std::span<const double> weights) {
    running_.assign(weights.begin(), weights.end());
  }

  const std::vector<double>& gradient() const { return gradient_; }  ///< (Weights::gradient_size)
  const Weights<T>& weights() const { return problem_.weights; }

 private:
  struct Worker {
    Buffer<T> registers, adjoints, rate, seed, gradient;
    std::vector<MatrixGradient<T>> views;
    std::vector<double> total;
    bool has_total = false;  // or had it no tile yet?
  };
  /// The sum over the samples of a tile.
  double evaluate_tile(std::int64_t tile, int thread, std::int64_t point, const T* states, std::int32_t rows,
                       double share, T* adjoints);
  void pull_back(std::int64_t tile, Worker& worker, Frame<T>& frame, std::int32_t rows, T share, T* adjoints);
  double running_losses(std::int64_t tile, const T* states, std::int32_t rows, T* adjoints) const;

  Problem<T> problem_;
  Code code_;
  AtDepth<T> at_;
  std::vector<Worker> workers_;
  std::vector<double> tile_sums_, tile_running_;
  std::vector<double> running_;  // weights of running losses
  std::vector<double> gradient_;
};

}  // namespace fathom::fused
