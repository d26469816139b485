// Products of layers with a tile, with their functions, and their gradients; see simd.inl on how this file is compiled.

/// A `finish` maps a finished sum to what is stored; `at` is its distance from the block's first number. It captures by value: the
/// compiler must assume that a store changes anything captured by reference.
struct Unchanged {
  template <class Sum> Sum operator()(Sum sum, std::size_t) const { return sum; }
};

/// y (outputs, width) = finish(start + weights^T x), where weights is (inputs, leading) and x is (inputs, width). A block of M
/// outputs by N vectors of samples stays in registers while the inputs stream by.
template <class T, std::size_t M, std::size_t N, class Finish>
inline void product_block(const T* weights, std::int32_t leading, const T* bias, const T* x, std::int32_t inputs,
                          T* y, std::int32_t width, bool adds, Finish finish) {
  V<T> sums[M][N];
#pragma GCC unroll 8
  for (std::size_t m = 0; m < M; ++m) {
#pragma GCC unroll 4
    for (std::size_t n = 0; n < N; ++n) {
      sums[m][n] = adds ? load(y + m * std::size_t(width) + n * lanes<T>) : bias ? all<T>(bias[m]) : V<T>{};
    }
  }
  for (std::int32_t i = 0; i < inputs; ++i) {
    V<T> values[N];
#pragma GCC unroll 4
    for (std::size_t n = 0; n < N; ++n) values[n] = load(x + std::size_t(i) * std::size_t(width) + n * lanes<T>);
#pragma GCC unroll 8
    for (std::size_t m = 0; m < M; ++m) {
      const V<T> weight = all<T>(weights[std::size_t(i) * std::size_t(leading) + m]);
#pragma GCC unroll 4
      for (std::size_t n = 0; n < N; ++n) sums[m][n] += weight * values[n];
    }
  }
#pragma GCC unroll 8
  for (std::size_t m = 0; m < M; ++m) {
#pragma GCC unroll 4
    for (std::size_t n = 0; n < N; ++n) {
      const std::size_t at = m * std::size_t(width) + n * lanes<T>;
      store(y + at, finish(sums[m][n], at));
    }
  }
}

template <class T, std::size_t M, class Finish>
inline void product_rows(const T* weights, std::int32_t leading, const T* bias, const T* x, std::int32_t inputs,
                         T* y, std::int32_t width, bool adds, Finish finish) {
  const auto block = [=]<std::size_t N>(std::int32_t at) {
    product_block<T, M, N>(weights, leading, bias, x + at, inputs, y + at, width, adds,
                           [=](V<T> sum, std::size_t behind) { return finish(sum, std::size_t(at) + behind); });
  };
  std::int32_t at = 0;
  for (; at + 2 * lanes<T> <= width; at += 2 * lanes<T>) block.template operator()<2>(at);
  if (at < width) block.template operator()<1>(at);
}

constexpr std::size_t block_outputs = 6;  // times two vectors: twelve sums, as many as sixteen registers carry

/// Calls `rows<M>(first)` for blocks of M of `count` rows: M = most, which is 4 or 6, and what is left.
template <std::size_t most, class Work> inline void in_blocks(std::int32_t count, Work&& rows) {
  std::int32_t first = 0;
  for (; first + std::int32_t(most) <= count; first += std::int32_t(most)) rows.template operator()<most>(first);
  switch (count - first) {
    case 1: return rows.template operator()<1>(first);
    case 2: return rows.template operator()<2>(first);
    case 3: return rows.template operator()<3>(first);
    default: break;
  }
  if constexpr (most > 4) {
    if (count - first == 4) return rows.template operator()<4>(first);
    if (count - first == 5) return rows.template operator()<5>(first);
  }
}

/// One sample: lanes run over the outputs where there are many, else over the inputs.
template <class T>
inline void product_of_one(const T* by_input, const T* by_output, const T* bias, const T* x, std::int32_t inputs,
                           T* y, std::int32_t outputs, bool adds) {
  if (outputs >= lanes<T>) {
    std::int32_t o = 0;
    const auto block = [&](std::int32_t at) {
      V<T> sum = adds ? load(y + at) : bias ? load(bias + at) : V<T>{};
      for (std::int32_t i = 0; i < inputs; ++i) sum += all<T>(x[i]) * load(by_input + i * outputs + at);
      store(y + at, sum);
    };
    if (adds) {  // blocks that overlap would add twice
      for (; o + lanes<T> <= outputs; o += lanes<T>) block(o);
      for (; o < outputs; ++o) {
        T sum = y[o];
        for (std::int32_t i = 0; i < inputs; ++i) sum += x[i] * by_input[i * outputs + o];
        y[o] = sum;
      }
      return;
    }
    for (; o + 4 * lanes<T> <= outputs; o += 4 * lanes<T>) {
      V<T> sums[4];
#pragma GCC unroll 4
      for (int n = 0; n < 4; ++n) sums[n] = bias ? load(bias + o + n * lanes<T>) : V<T>{};
      for (std::int32_t i = 0; i < inputs; ++i) {
#pragma GCC unroll 4
        for (int n = 0; n < 4; ++n) sums[n] += all<T>(x[i]) * load(by_input + i * outputs + o + n * lanes<T>);
      }
#pragma GCC unroll 4
      for (int n = 0; n < 4; ++n) store(y + o + n * lanes<T>, sums[n]);
    }
    for (; o + lanes<T> <= outputs; o += lanes<T>) block(o);
    if (o < outputs) block(outputs - lanes<T>);
    return;
  }
  for (std::int32_t o = 0; o < outputs; ++o) {
    const T* row = by_output + o * inputs;
    V<T> sums[2] = {};
    std::int32_t i = 0;
    for (; i + 2 * lanes<T> <= inputs; i += 2 * lanes<T>) {
      sums[0] += load(row + i) * load(x + i);
      sums[1] += load(row + i + lanes<T>) * load(x + i + lanes<T>);
    }
    if (i + lanes<T> <= inputs) {
      sums[0] += load(row + i) * load(x + i);
      i += lanes<T>;
    }
    T sum = (adds ? y[o] : bias ? bias[o] : T(0)) + (inputs >= lanes<T> ? sum_of_lanes<T>(sums[0] + sums[1]) : T(0));
    for (; i < inputs; ++i) sum += row[i] * x[i];
    y[o] = sum;
  }
}

/// With 32 registers the function is applied to the sums of a block before they are stored; with 16, its constants would push
/// them out.
template <class T>
inline void layer_forward(const Op& op, const MatrixView<T>& matrix, const T* x, T* y, T* slopes,
                          std::int32_t width) {
  if (width == 1) {
    product_of_one(matrix.by_input, matrix.by_output, matrix.bias, x, matrix.inputs, y, matrix.outputs, false);
    return activate(op.function, y, slopes, std::size_t(matrix.outputs));
  }
  const auto product = [=]<std::size_t M>(std::int32_t first, auto finish) {
    product_rows<T, M>(matrix.by_input + first, matrix.outputs, matrix.bias ? matrix.bias + first : nullptr, x,
                       matrix.inputs, y + std::size_t(first) * std::size_t(width), width, false, finish);
  };
  if constexpr (has_many_registers) {
    if (op.function.kind != FunctionKind::identity) {
      return with_kind(op.function.kind, [&]<FunctionKind kind>() {
        const T a = T(op.function.a), b = T(op.function.b);
        in_blocks<4>(matrix.outputs, [=]<std::size_t M>(std::int32_t first) {
          T* slopes_here = slopes ? slopes + std::size_t(first) * std::size_t(width) : nullptr;
          product.template operator()<M>(first, [=](V<T> sum, std::size_t at) {
            const ValueAndSlope<T> both = value_of<T, kind>(sum, a, b);
            if (slopes_here) {
              store(slopes_here + at, has_own_slope(kind) ? both.slope : slope_from_value<T, kind>(both.value, a));
            }
            return both.value;
          });
        });
      });
    }
  }
  // Block by block, so that the function finds its arguments in the nearest cache.
  in_blocks<block_outputs>(matrix.outputs, [&]<std::size_t M>(std::int32_t first) {
    product.template operator()<M>(first, Unchanged{});
    const std::size_t at = std::size_t(first) * std::size_t(width);
    activate(op.function, y + at, slopes ? slopes + at : nullptr, M * std::size_t(width));
  });
}

/// x_adjoint = (or +=) matrix^T y_adjoint: the same product with the roles of inputs and outputs exchanged.
template <class T, class Finish>
inline void product_backward(const MatrixView<T>& matrix, const T* y_adjoint, T* x_adjoint, std::int32_t width,
                             bool sets, Finish finish) {
  in_blocks<block_outputs>(matrix.inputs, [=]<std::size_t M>(std::int32_t first) {
    const std::size_t begin = std::size_t(first) * std::size_t(width);
    product_rows<T, M>(matrix.by_output + first, matrix.inputs, nullptr, y_adjoint, matrix.outputs,
                       x_adjoint + begin, width, !sets,
                       [=](V<T> sum, std::size_t at) { return finish(sum, begin + at); });
  });
}

/// gradient (M outputs, N inputs) += scale y_adjoint x^T, summed over the samples.
template <class T, std::size_t M, std::size_t N>
inline void outer_block(const T* y_adjoint, const T* x, std::int32_t width, T scale, T* gradient,
                        std::int32_t inputs) {
  V<T> sums[M * N] = {};
  for (std::int32_t at = 0; at < width; at += lanes<T>) {
    V<T> values[N];
#pragma GCC unroll 8
    for (std::size_t n = 0; n < N; ++n) values[n] = load(x + n * std::size_t(width) + std::size_t(at));
#pragma GCC unroll 8
    for (std::size_t m = 0; m < M; ++m) {
      const V<T> adjoint = load(y_adjoint + m * std::size_t(width) + std::size_t(at));
#pragma GCC unroll 8
      for (std::size_t n = 0; n < N; ++n) sums[m * N + n] += adjoint * values[n];
    }
  }
  // As many at once as a vector has lanes.
  constexpr std::size_t most = M * N < std::size_t(lanes<T>) ? M * N : std::size_t(lanes<T>);
  T totals[M * N + std::size_t(lanes<T>)];
#pragma GCC unroll 8
  for (std::size_t k = 0; k < M * N; k += most) sums_of_lanes<T, int(most)>(sums + k, totals + k);
  if (M * N == std::size_t(lanes<T>) && std::size_t(inputs) == N) {
    return store(gradient, load(gradient) + scale * load(totals));
  }
#pragma GCC unroll 8
  for (std::size_t m = 0; m < M; ++m) {
    for (std::size_t n = 0; n < N; ++n) gradient[m * std::size_t(inputs) + n] += scale * totals[m * N + n];
  }
}

/// The gradient of M outputs and the inputs from `first` on, by as many sums at once as fill a vector.
template <class T, std::size_t M>
inline void outer_rows(const T* y_adjoint, const T* x, std::int32_t width, T scale, T* gradient,
                       std::int32_t inputs, std::int32_t first) {
  std::int32_t i = first;
  const auto block = [&]<std::size_t N>() {
    outer_block<T, M, N>(y_adjoint, x + std::size_t(i) * std::size_t(width), width, scale, gradient + i, inputs);
    i += std::int32_t(N);
  };
  constexpr std::size_t many = std::size_t(lanes<T>) / M > 2 ? std::size_t(lanes<T>) / M : 2;
  if constexpr (many > 2 && many <= 8) {
    while (i + std::int32_t(many) <= inputs) block.template operator()<many>();
  }
  while (i + 2 <= inputs) block.template operator()<2>();
  if (i < inputs) block.template operator()<1>();
}

/// columns (width, lanes) from `lanes` rows of x, in squares of 16-byte vectors.
template <class T> inline void transpose_rows(const T* x, std::int32_t width, T* columns) {
  constexpr int side = int(16 / sizeof(T));
  typedef T Short __attribute__((vector_size(16)));
  typedef T Loose __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
  for (std::int32_t k = 0; k < lanes<T>; k += side) {
    for (std::int32_t n = 0; n < width; n += side) {
      Short rows[std::size_t(side)];
#pragma GCC unroll 4
      for (int r = 0; r < side; ++r) {
        rows[r] = *reinterpret_cast<const Loose*>(x + std::size_t(k + r) * std::size_t(width) + std::size_t(n));
      }
      const auto put = [&](int c, Short column) {
        *reinterpret_cast<Loose*>(columns + std::size_t(n + c) * std::size_t(lanes<T>) + std::size_t(k)) = column;
      };
      if constexpr (side == 4) {
        const Short a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
        const Short b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
        const Short c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
        const Short d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
        put(0, __builtin_shufflevector(a, b, 0, 1, 4, 5));
        put(1, __builtin_shufflevector(a, b, 2, 3, 6, 7));
        put(2, __builtin_shufflevector(c, d, 0, 1, 4, 5));
        put(3, __builtin_shufflevector(c, d, 2, 3, 6, 7));
      } else {
        put(0, __builtin_shufflevector(rows[0], rows[1], 0, 2));
        put(1, __builtin_shufflevector(rows[0], rows[1], 1, 3));
      }
    }
  }
}

/// gradient (M outputs, lanes inputs) += scale y_adjoint columns: lanes run over inputs, so that nothing is summed across them.
template <class T, std::size_t M>
inline void column_block(const T* y_adjoint, const T* columns, std::int32_t width, T scale, T* gradient,
                         std::int32_t inputs) {
  V<T> sums[M] = {};
  for (std::size_t n = 0; n < std::size_t(width); ++n) {
    const V<T> values = load(columns + n * std::size_t(lanes<T>));
#pragma GCC unroll 8
    for (std::size_t m = 0; m < M; ++m) sums[m] += all<T>(y_adjoint[m * std::size_t(width) + n]) * values;
  }
#pragma GCC unroll 8
  for (std::size_t m = 0; m < M; ++m) {
    T* row = gradient + m * std::size_t(inputs);
    store(row, load(row) + scale * sums[m]);
  }
}

constexpr std::int32_t widest_transposed = 256;    // samples, of the buffer on the stack
constexpr std::int32_t fewest_transposed_outputs = 8;  // below, turning x over costs more than it saves

/// The gradient of as many whole vectors of inputs as there are; gives how many inputs it has done.
template <class T>
inline std::int32_t gradient_by_columns(const MatrixView<T>& matrix, T* gradient, const T* y_adjoint, const T* x,
                                        std::int32_t width, T scale) {
  if (width > widest_transposed || matrix.outputs < fewest_transposed_outputs) return 0;
  alignas(64) T columns[std::size_t(widest_transposed) * std::size_t(lanes<T>)];
  std::int32_t i = 0;
  for (; i + lanes<T> <= matrix.inputs; i += lanes<T>) {
    transpose_rows(x + std::size_t(i) * std::size_t(width), width, columns);
    std::int32_t o = 0;
    const auto rows = [&]<std::size_t M>() {
      column_block<T, M>(y_adjoint + std::size_t(o) * std::size_t(width), columns, width, scale,
                         gradient + std::size_t(o) * std::size_t(matrix.inputs) + std::size_t(i), matrix.inputs);
      o += std::int32_t(M);
    };
    while (o + 8 <= matrix.outputs) rows.template operator()<8>();
    if (o + 4 <= matrix.outputs) rows.template operator()<4>();
    while (o < matrix.outputs) rows.template operator()<1>();
  }
  return i;
}

template <class T>
inline void gradient_of_bias(T* gradient, std::int32_t outputs, const T* y_adjoint, std::int32_t width, T scale) {
  if (width == 1) {
    for (std::int32_t o = 0; o < outputs; ++o) gradient[o] += scale * y_adjoint[o];
    return;
  }
  std::int32_t o = 0;
  const auto rows = [&]<int count>() {
    V<T> sums[std::size_t(count)] = {};
    for (std::int32_t at = 0; at < width; at += lanes<T>) {
#pragma GCC unroll 16
      for (int k = 0; k < count; ++k) sums[k] += load(y_adjoint + std::size_t(o + k) * std::size_t(width) + at);
    }
    T totals[std::size_t(lanes<T>)];
    sums_of_lanes<T, count>(sums, totals);
    for (int k = 0; k < count; ++k) gradient[o + k] += scale * totals[k];
    o += count;
  };
  while (o + lanes<T> <= outputs) rows.template operator()<lanes<T>>();
  if constexpr (lanes<T> > 4) {
    while (o + 4 <= outputs) rows.template operator()<4>();
  }
  while (o < outputs) rows.template operator()<1>();
}

template <class T>
inline void gradient_of_matrix(const MatrixView<T>& matrix, const MatrixGradient<T>& gradient, const T* y_adjoint,
                               const T* x, std::int32_t width, T scale) {
  const std::int32_t inputs = matrix.inputs, outputs = matrix.outputs;
  if (gradient.bias && matrix.bias) gradient_of_bias(gradient.bias, outputs, y_adjoint, width, scale);
  if (width == 1) {
    for (std::int32_t o = 0; o < outputs; ++o) {
      const T adjoint = scale * y_adjoint[o];
      T* row = gradient.weight + o * inputs;
      std::int32_t i = 0;
      for (; i + lanes<T> <= inputs; i += lanes<T>) store(row + i, load(row + i) + adjoint * load(x + i));
      for (; i < inputs; ++i) row[i] += adjoint * x[i];
    }
    return;
  }
  const std::int32_t first = gradient_by_columns(matrix, gradient.weight, y_adjoint, x, width, scale);
  if (first == inputs) return;
  std::int32_t o = 0;
  const auto rows = [&]<std::size_t M>() {
    outer_rows<T, M>(y_adjoint + std::size_t(o) * std::size_t(width), x, width, scale,
                     gradient.weight + std::size_t(o) * std::size_t(inputs), inputs, first);
    o += std::int32_t(M);
  };
  if constexpr (lanes<T> == 16) {
    while (o + 8 <= outputs) rows.template operator()<8>();
  }
  while (o + 4 <= outputs) rows.template operator()<4>();
  if (o + 2 <= outputs) rows.template operator()<2>();
  if (o < outputs) rows.template operator()<1>();
}
