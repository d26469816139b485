/// A loss on the state where a solve ends, L = share sum over samples l(z, y), with its head: evaluated and pulled back on the tiles
/// of the solve, so that nothing goes through a framework between the last step and the way back.
#pragma once

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

  const std::vector<double>& gradient() const { return gradient_; }  ///< (Weights::gradient_size)
  const Weights<T>& weights() const { return problem_.weights; }

 private:
  struct Worker {
    Buffer<T> registers, adjoints, rate, seed, gradient;
    std::vector<MatrixGradient<T>> views;
    std::vector<double> total;
    bool has_total = false;  // or had it no tile yet?
  };
  void pull_back(std::int64_t tile, Worker& worker, Frame<T>& frame, std::int32_t rows, T share, T* adjoints);

  Problem<T> problem_;
  Code code_;
  AtDepth<T> at_;
  std::vector<Worker> workers_;
  std::vector<double> tile_sums_;
  std::vector<double> gradient_;
};

}  // namespace fathom::fused
