/// What the kernels execute: a list of operations on the rows of a tile. Plain data without constructors or containers, so
/// that it can be shared by code compiled for different instruction sets.
///
/// A tile is `width` samples; a row is one feature of all of them, contiguous. Rows live in four banks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fathom::fused {

enum class Bank : std::uint8_t {
  registers,  ///< of one stage: its argument first, then what is computed on the way
  inputs,  ///< per-sample tensors that the field reads: controls, depths of samples; the same for all stages
  rate,    ///< of one stage: the answer
  passing  ///< of one stage: registers that are cheap to find again from its argument, and not worth keeping
};
inline constexpr int bank_count = 4;

struct Rows {
  Bank bank = Bank::registers;
  std::int32_t begin = 0;
  std::int32_t count = 0;
};

enum class FunctionKind : std::uint8_t { identity, tanh, relu, softplus, elu, sigmoid, silu };

/// Is function' found from the function's value alone, cheaply and without loss? By kind. Data and not a function: nothing that is
/// compiled for one instruction set may be shared with another.
inline constexpr bool slope_follows_from_value[] = {
    /*identity*/ true, /*tanh*/ true,    /*relu*/ true, /*softplus*/ false,
    /*elu*/ true,      /*sigmoid*/ true, /*silu*/ false};

/// An elementwise function with torch's parameters: softplus (beta, threshold), elu (alpha).
struct Function {
  FunctionKind kind = FunctionKind::identity;
  double a = 1;
  double b = 20;
};

enum class OpKind : std::uint8_t {
  layer,          ///< out = function(matrix first + bias); without a matrix, out = function(first)
  add,            ///< out = first + second
  multiply,       ///< out = first * second, row by row
  scale,          ///< out = first * second, where second is one row for all
  copy,           ///< out = first
  zero,           ///< out = 0
  depth,          ///< out = s, or s * first where first is one row: the depth of each sample
  signal,         ///< out = u(s), the same for all samples
  column,         ///< out = first * (a column of the matrix): a tangent through the first layer
  row_dot,        ///< out = (a row of the matrix) . first
  sum,            ///< out = sum of the rows of first
  distance,       ///< out = |first - second|^2
  squares,        ///< out = |first|^2
  norm,           ///< out = |first|, with slope 0 at 0
  cross_entropy,  ///< out = log sum_r exp(first_r) - first_y, y the one row of second
  absolute,       ///< out = sum_r |first_r - second_r|, with slope 0 at 0
  huber,  ///< out = sum_r of d^2 / 2 for |d| < a, else a (|d| - a / 2), with d = first_r - second_r and a of `function`
  call  ///< out = what a callback of the code computes from first (the state), second (controls) and the matrix (its parameters)
};

struct Op {
  OpKind kind = OpKind::copy;
  Rows out = {};
  Rows first = {};
  Rows second = {};
  Rows slope = {};  ///< layer: where function' is kept, count 0 when it follows from the value
  Function function = {};
  std::int32_t matrix = -1;  ///< layer, column, row_dot, call
  std::int32_t place =
      0;  ///< of the column or row in the matrix, of the signal's first value, or of the callback
  // Backwards, the first to write an adjoint row sets it, later ones add: nobody needs to clear it.
  bool sets_first = false;
  bool sets_second = false;
  bool slope_is_read = false;  ///< layer: another operation reads the slope, so that its adjoint counts
  // Backwards, a layer that alone reads the layer below goes on through that one's function while the numbers are near.
  std::int32_t below = -1;          ///< layer: place of that layer among the operations, -1: none
  bool function_is_passed = false;  ///< layer: the one that reads it goes through its function
  /// layer: the next operation alone reads it, and both have few rows at their other ends: they may run as one (pairs.inl).
  bool is_pair_with_next = false;
};

/// Of a pair's inputs, and of its outputs.
inline constexpr std::int32_t most_outer_rows = 4;

template <class T> struct Frame;

/// A field that the caller computes, on the samples of a tile: rate and vector-Jacobian product of an evaluation, from and into those
/// rows of the frame's banks that the operation names.
template <class T> struct Callback {
  void (*evaluate)(void* context, const Frame<T>&, const Op&) = nullptr;
  void (*pull_back)(void* context, const Frame<T>&, const Op&) = nullptr;
};
struct Callbacks {
  void* context = nullptr;
  Callback<float> f32 = {};
  Callback<double> f64 = {};
};

struct Code {
  const Op* ops = nullptr;
  std::int32_t op_count = 0;
  const Rows* cleared = nullptr;  ///< adjoint rows that are set to zero before going backwards
  std::int32_t cleared_count = 0;
  std::int32_t register_rows = 0;
  std::int32_t passing_rows = 0;
  std::int32_t input_rows = 0;
  std::int32_t rate_rows = 0;
  const Callbacks* callbacks = nullptr;  ///< by the place of an operation
};

/// A weight matrix at one depth, in both orders: each direction reads it along its rows.
template <class T> struct MatrixView {
  std::int32_t outputs = 0;
  std::int32_t inputs = 0;
  const T* by_output = nullptr;  ///< (outputs, inputs)
  const T* by_input = nullptr;   ///< (inputs, outputs)
  const T* bias = nullptr;       ///< (outputs), may be null
};

template <class T> struct MatrixGradient {
  T* weight = nullptr;  ///< (outputs, inputs)
  T* bias = nullptr;    ///< (outputs)
};

/// One evaluation of the code on one tile.
template <class T> struct Frame {
  std::int32_t width = 0;    ///< samples: 1, or a multiple of the kernels' lanes
  std::int32_t samples = 0;  ///< of those that are no padding
  T* banks[bank_count] = {};
  const MatrixView<T>* matrices = nullptr;
  const T* signals = nullptr;
  double depth = 0;
  /// Registers are written for somebody to read, forwards; have been written, backwards. If not, the way back finds those that
  /// it needs from the argument, which is in its registers, and the rate.
  bool has_registers = true;
  bool has_passing = true;  ///< backwards: those have been written as well. If not, they are found again.

  // Backwards only.
  T* adjoints[bank_count] = {};  ///< rate: given; inputs: added to, may be null; others: overwritten
  const MatrixGradient<T>* gradients = nullptr;  ///< added to, times `gradient_scale`; may be null
  const T* signal_slopes = nullptr;
  T gradient_scale = 1;
  T* depth_adjoint = nullptr;  ///< (width), d/ds for each sample, added to; may be null
};

}  // namespace fathom::fused
