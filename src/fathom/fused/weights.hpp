/// The weights of a program in the order the kernels read them, mixed from the bases at a depth where they vary with it:
///   theta(s) = sum_j psi_j(s) theta_j,   dL/dtheta_j = sum over stages of psi_j(s) dL/dtheta(s)                             (G3)
///
///   weights.prepare(depth, /*with_slopes=*/false, at);   // at.matrices for the kernels
///   weights.spread(stages, gradient);
#pragma once

#include <span>
#include <vector>

#include "fathom/fused/kernels.hpp"
#include "fathom/fused/program.hpp"

namespace fathom::fused {

/// The tensors a program is run with: contiguous, in the order it numbers them.
template <class T> using Tensors = std::vector<std::span<const T>>;

/// Everything that depends on the depth of an evaluation and not on the sample.
template <class T> struct AtDepth {
  AtDepth() = default;
  AtDepth(AtDepth&&) = default;  // no copies: `matrices` point into `storage`
  AtDepth& operator=(AtDepth&&) = default;

  double depth = 0;
  std::vector<T> storage;
  std::vector<MatrixView<T>> matrices;
  std::vector<std::vector<double>> psi;         ///< of each basis
  std::vector<std::vector<double>> psi_slopes;  ///< empty unless asked for
  std::vector<double> of_signal;                ///< the signal that is being read
  std::vector<T> signals;
  std::vector<T> signal_slopes;
};

/// The gradient of the matrices that vary, (Weights::stage_gradient_size), at a depth.
template <class T> struct StageGradient {
  const AtDepth<T>* at = nullptr;
  const T* values = nullptr;
};

template <class T> class Weights {
 public:
  Weights(const Program& program, const Tensors<T>& tensors, const Kernels<T>& kernels);
  /// Other tensors, or the same with other numbers in them. What was prepared stays so where nothing varies with depth.
  void read(const Tensors<T>& tensors);

  /// Prepares `at` for evaluations at `depth`. Does nothing but note the depth when nothing varies and it was prepared.
  void prepare(double depth, bool with_slopes, AtDepth<T>& at) const;

  /// d/ds of the sum of gradient * weight over the matrices that vary: the part of dL/ds that goes through theta(s).
  double along_depth(const AtDepth<T>& at, std::span<const T> stage_gradient) const;

  /// Distributes the gradients over the coefficients of the bases, adding. `scratch`: memory that the next call may use again.
  void spread(std::span<const StageGradient<T>> stages, std::span<double> gradient,
              std::vector<T>& scratch) const;
  /// The same in the type of the state, for a part of a step.
  void spread(const StageGradient<T>& stage, std::span<T> gradient) const;

  const Program& program() const { return *program_; }
  std::size_t bytes() const { return constants_.size() * sizeof(T); }  ///< that it holds

  /// Where the gradient of a matrix at a depth begins in a stage gradient, and of a tensor in a whole gradient.
  std::size_t stage_gradient_size() const { return stage_size_; }
  std::size_t gradient_size() const { return gradient_size_; }
  std::size_t tensor_begin(std::size_t tensor) const { return tensor_begins_[tensor]; }
  /// Views into a stage gradient for matrices that vary, into the whole gradient for those that do not.
  std::vector<MatrixGradient<T>> views(std::span<T> gradient, std::span<T> stage_gradient) const;

 private:
  void copy_constants();

  template <class Add> void for_each_varying(const Add& add) const;

  const Program* program_;
  const Kernels<T>* kernels_;
  Tensors<T> tensors_;
  std::vector<T> constants_;          // matrices that do not vary, by output and by input, and their biases
  std::vector<MatrixView<T>> views_;  // of those
  std::vector<std::size_t> tensor_begins_;  // (tensors), in a gradient; only weights and biases have a place
  std::vector<std::size_t> stage_begins_;   // (matrices), of those that vary
  std::size_t stage_size_ = 0;
  std::size_t gradient_size_ = 0;
};

}  // namespace fathom::fused
