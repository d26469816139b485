/// int a^T df/dtheta over the steps of the continuous adjoint (G1): sums over the stages of a step, b_i h a_i^T df_i/dtheta, kept apart
/// until the step is accepted.
///
///   sums.begin_step();                                  // and begin_first_stage(), where that is evaluated anew
///   sums.begin_stage(thread, stage, h, frame);          // tells the kernels where gradients go,
///   kernels.pull_back(code, frame);
///   sums.end_stage(tile, thread, at, frame);            // and takes what they left
///   sums.accept(h);
#pragma once

#include <optional>
#include <vector>

#include "fathom/fused/problem.hpp"
#include "fathom/ode/tableau.hpp"

namespace fathom::fused {

template <class T> class AdjointSums {
 public:
  AdjointSums(const Problem<T>& problem, const ode::ButcherTableau& method);

  /// Another solve: nothing was accepted yet.
  void begin_again();
  void begin_first_stage();
  void begin_step();
  /// `stage`: none where the evaluation is none of a step's.
  void begin_stage(int thread, std::optional<std::size_t> stage, double step, Frame<T>& frame);
  void end_stage(std::int64_t tile, int thread, const AtDepth<T>& at, const Frame<T>& frame);
  void accept(double step);

  /// (Weights::gradient_size), and (input rows) of every tile.
  void add_to(std::vector<double>& gradient, Buffer<T>& inputs) const;

 private:
  /// At the first stage and at the end-rate stage, unscaled; weighted by h b_i over the rest. What was last in an accepted
  /// step is first in the next one.
  template <class B> struct Ends {
    B first, last, inner;
    B& at(std::size_t stage, std::size_t end_rate_stage) {
      return stage == 0 ? first : stage == end_rate_stage ? last : inner;
    }
  };
  struct Block {
    Buffer<T> values;                      // (gradient)
    std::vector<MatrixGradient<T>> views;  // into it, and into the stage gradient of its thread
  };
  struct Worker {
    Ends<Block> sums;
    Buffer<T> stage_gradient, inputs;  // of the stage under way
    std::size_t stage = 0;
    T share = 0;  // of that stage; 0: it does not count
  };

  const Problem<T>& problem_;
  const ode::ButcherTableau& method_;
  std::size_t end_rate_stage_;
  bool first_same_as_last_;
  std::vector<Worker> workers_;  // of each thread
  Ends<Buffer<T>> inputs_;       // (input rows) of every tile
  std::vector<double> total_;
  Buffer<T> total_inputs_;
};

}  // namespace fathom::fused
