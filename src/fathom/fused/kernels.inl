// The kernels themselves; see simd.inl on how this file is compiled.

/// A `finish` says what becomes of a sum before it is stored, `at` numbers behind the first one. One with captures has them by
/// value: a store could change what is captured by reference, as far as the compiler knows.
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

template <class T, FunctionKind kind>
inline void apply_kind(const Function& function, T* values, T* slopes, std::size_t count, bool slope_from_y) {
  const T a = T(function.a), b = T(function.b);
  std::size_t at = 0;
  const auto step = [&](V<T> x) {
    ValueAndSlope<T> both = value_of<T, kind>(x, a, b);
    if (slope_from_y) both.slope = slope_from_value<T, kind>(both.value, a);
    return both;
  };
  for (; at + lanes<T> <= count; at += lanes<T>) {
    const ValueAndSlope<T> both = step(load(values + at));
    store(values + at, both.value);
    if (slopes) store(slopes + at, both.slope);
  }
  if (at == count) return;
  const ValueAndSlope<T> both = step(stream(values).get_some(at, count - at));
  stream(values).put_some(at, both.value, count - at);
  if (slopes) stream(slopes).put_some(at, both.slope, count - at);
}

/// Calls `work` with the function's kind as a constant.
template <class Work> inline void with_kind(FunctionKind kind, Work&& work) {
  switch (kind) {
    case FunctionKind::identity: return work.template operator()<FunctionKind::identity>();
    case FunctionKind::tanh: return work.template operator()<FunctionKind::tanh>();
    case FunctionKind::relu: return work.template operator()<FunctionKind::relu>();
    case FunctionKind::softplus: return work.template operator()<FunctionKind::softplus>();
    case FunctionKind::elu: return work.template operator()<FunctionKind::elu>();
    case FunctionKind::sigmoid: return work.template operator()<FunctionKind::sigmoid>();
    case FunctionKind::silu: return work.template operator()<FunctionKind::silu>();
  }
}

constexpr bool has_own_slope(FunctionKind kind) {
  return kind == FunctionKind::softplus || kind == FunctionKind::silu;
}

/// values = function(values) in place, slopes beside them where they are wanted.
template <class T>
inline void activate(const Function& function, T* values, T* slopes, std::size_t count) {
  if (function.kind == FunctionKind::identity && !slopes) return;
  with_kind(function.kind, [&]<FunctionKind kind>() {
    apply_kind<T, kind>(function, values, slopes, count, !has_own_slope(kind));
  });
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
  if (!gradient.weight) return;
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

/// The adjoint of the argument of a function, in place of that of its value.
template <class T>
inline void pass_function(const Function& function, T* adjoint, const T* values, const T* slopes,
                          const T* slope_adjoint, std::size_t count) {
  if (function.kind == FunctionKind::identity) return;
  const T a = T(function.a);
  with_kind(function.kind, [&]<FunctionKind kind>() {
    if (slope_adjoint) {
      std::size_t at = 0;
      const auto step = [&](V<T> up, V<T> y, V<T> slope, V<T> up_slope) {
        return up * slope + up_slope * curvature_from<T, kind>(y, slope, a);
      };
      for (; at + lanes<T> <= count; at += lanes<T>) {
        store(adjoint + at, step(load(adjoint + at), load(values + at), load(slopes + at), load(slope_adjoint + at)));
      }
      if (at < count) {
        const std::size_t some = count - at;
        stream(adjoint).put_some(at,
                                 step(stream(adjoint).get_some(at, some), stream(values).get_some(at, some),
                                      stream(slopes).get_some(at, some), stream(slope_adjoint).get_some(at, some)),
                                 some);
      }
    } else if (slopes) {
      for_each<T>(count, stream(adjoint), stream(adjoint), stream(slopes), [](V<T> up, V<T> d) { return up * d; });
    } else {
      for_each<T>(count, stream(adjoint), stream(adjoint), stream(values),
                  [&](V<T> up, V<T> y) { return up * slope_from_value<T, kind>(y, a); });
    }
  });
}

template <class T> inline T square_root(T value) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_sqrtf(value);
  } else {
    return __builtin_sqrt(value);
  }
}

/// Calls `work` with the kind of a pair's function and its numbers of inputs and outputs as constants.
template <class T, class Work> inline void with_pair(FunctionKind kind, const Pair<T>& pair, Work&& work) {
  if constexpr (has_pairs<T>) {
    const auto with_size = [](std::int32_t size, auto&& then) {
      switch (size) {
        case 1: return then.template operator()<1>();
        case 2: return then.template operator()<2>();
        case 3: return then.template operator()<3>();
        default: return then.template operator()<4>();
      }
    };
    with_kind(kind, [&]<FunctionKind found>() {
      if constexpr (!has_own_slope(found) && found != FunctionKind::identity) {
        with_size(pair.below.inputs, [&]<std::size_t inputs>() {
          with_size(pair.above.outputs, [&]<std::size_t outputs>() { work.template operator()<found, inputs, outputs>(); });
        });
      }
    });
  }
}

template <class T> class Machine {
 public:
  Machine(const Code& code, const Frame<T>& frame) : code_(code), frame_(frame), width_(std::size_t(frame.width)) {}

  void forwards() const {
    for (std::int32_t n = 0; n < code_.op_count; ++n) {
      if (runs_as_pair(n)) {
        pair_forwards(n++);
      } else {
        forward(code_.ops[n]);
      }
    }
  }

  void backwards() const {
    if (!frame_.has_registers) {
      restore_registers();
    } else if (!frame_.has_passing) {
      restore_passing();
    }
    for (std::int32_t n = 0; n < code_.cleared_count; ++n) {
      const Rows& rows = code_.cleared[n];
      __builtin_memset(adjoint(rows), 0, size(rows) * sizeof(T));
    }
    for (std::int32_t n = code_.op_count; n-- > 0;) {
      if (n > 0 && pulls_as_pair(n - 1)) {
        pair_backwards(--n);
      } else {
        backward(code_.ops[n]);
      }
    }
  }

 private:
  bool runs_as_pair(std::int32_t n) const {
    return has_pairs<T> && code_.ops[n].is_pair_with_next && width_ > 1;
  }
  bool pulls_as_pair(std::int32_t n) const {
    return runs_as_pair(n) && weight_gradient(code_.ops[n].matrix) && weight_gradient(code_.ops[n + 1].matrix);
  }

  /// All but the rate, which is known, and the hidden rows of pairs, which they find again by themselves.
  void restore_registers() const {
    const auto is_known = [&](const Op& op) { return op.out.bank == Bank::rate && op.slope.count == 0; };
    for (std::int32_t n = 0; n < code_.op_count; ++n) {
      if (pulls_as_pair(n)) {
        if (!is_known(code_.ops[n + 1])) pair_forwards(n);
        ++n;
      } else if (!is_known(code_.ops[n])) {
        forward(code_.ops[n]);
      }
    }
  }

  void restore_passing() const {
    for (std::int32_t n = 0; n < code_.op_count; ++n) {
      if (code_.ops[n].out.bank == Bank::passing) forward(code_.ops[n]);
    }
  }

  Pair<T> pair_of(std::int32_t n) const {
    const Op &below = code_.ops[n], &above = code_.ops[n + 1];
    return {.width = frame_.width,
            .below = frame_.matrices[below.matrix],
            .above = frame_.matrices[above.matrix],
            .a = T(below.function.a),
            .inputs = values(below.first),
            .hidden = values(below.out),
            .outputs = values(above.out)};
  }

  void pair_forwards(std::int32_t n) const {
    const Pair<T> pair = pair_of(n);
    with_pair(code_.ops[n].function.kind, pair, [&]<FunctionKind kind, std::size_t inputs, std::size_t outputs>() {
      if (frame_.has_registers) {
        pair_forward<T, kind, inputs, outputs, true>(pair);
      } else {
        pair_forward<T, kind, inputs, outputs, false>(pair);
      }
    });
  }

  void pair_backwards(std::int32_t n) const {
    const Op &below = code_.ops[n], &above = code_.ops[n + 1];
    Pair<T> pair = pair_of(n);
    pair.knows_hidden = frame_.has_registers;
    pair.outputs_adjoint = adjoint(above.out);
    pair.inputs_adjoint = adjoint(below.first);
    pair.sets_inputs_adjoint = below.sets_first;
    pair.below_gradient = frame_.gradients[below.matrix];
    pair.above_gradient = frame_.gradients[above.matrix];
    pair.gradient_scale = frame_.gradient_scale;
    if (T* bias = pair.above_gradient.bias) {
      gradient_of_bias(bias, pair.above.outputs, pair.outputs_adjoint, frame_.width, frame_.gradient_scale);
    }
    with_pair(below.function.kind, pair, [&]<FunctionKind kind, std::size_t inputs, std::size_t outputs>() {
      pair_backward<T, kind, inputs, outputs>(pair);
    });
    if (below.below >= 0) through_function(code_.ops[below.below], pair.inputs_adjoint);
  }

  std::size_t size(const Rows& rows) const { return std::size_t(rows.count) * width_; }
  T* values(const Rows& rows) const {
    return frame_.banks[int(rows.bank)] + std::size_t(rows.begin) * width_;
  }
  T* adjoint(const Rows& rows) const {
    return frame_.adjoints[int(rows.bank)] + std::size_t(rows.begin) * width_;
  }
  /// Adjoints of inputs are wanted only where somebody asked for them.
  bool wanted(const Rows& rows) const { return rows.count > 0 && frame_.adjoints[int(rows.bank)]; }

  void forward(const Op& op) const {
    T* out = values(op.out);
    const T *first = values(op.first), *second = values(op.second);
    switch (op.kind) {
      case OpKind::layer: {
        T* slopes = op.slope.count ? values(op.slope) : nullptr;
        if (op.matrix >= 0) return layer_forward(op, frame_.matrices[op.matrix], first, out, slopes, frame_.width);
        __builtin_memcpy(out, first, size(op.out) * sizeof(T));
        return activate(op.function, out, slopes, size(op.out));
      }
      case OpKind::add: return zip(op.out, out, first, second, [](V<T> a, V<T> b) { return a + b; });
      case OpKind::multiply: return zip(op.out, out, first, second, [](V<T> a, V<T> b) { return a * b; });
      case OpKind::scale:
        for (std::int32_t r = 0; r < op.out.count; ++r) {
          const std::size_t at = std::size_t(r) * width_;
          for_each<T>(width_, stream(out + at), stream(first + at), stream(second),
                      [](V<T> a, V<T> b) { return a * b; });
        }
        return;
      case OpKind::copy: __builtin_memcpy(out, first, size(op.out) * sizeof(T)); return;
      case OpKind::zero: __builtin_memset(out, 0, size(op.out) * sizeof(T)); return;
      case OpKind::depth:
        for (std::size_t i = 0; i < width_; ++i) out[i] = T(op.first.count ? frame_.depth * double(first[i]) : frame_.depth);
        return;
      case OpKind::signal:
        for (std::int32_t r = 0; r < op.out.count; ++r) {
          for (std::size_t i = 0; i < width_; ++i) out[std::size_t(r) * width_ + i] = frame_.signals[op.place + r];
        }
        return;
      case OpKind::column: {
        const MatrixView<T>& matrix = frame_.matrices[op.matrix];
        for (std::int32_t r = 0; r < op.out.count; ++r) {
          const T weight = matrix.by_input[op.place * matrix.outputs + r];
          const std::size_t at = std::size_t(r) * width_;
          for_each<T>(width_, stream(out + at), stream(first + at), stream(first + at),
                      [&](V<T> a, V<T>) { return a * weight; });
        }
        return;
      }
      case OpKind::row_dot: {
        const MatrixView<T>& matrix = frame_.matrices[op.matrix];
        return reduce(op.first, out, [&](std::int32_t r, std::size_t i) {
          return matrix.by_output[op.place * matrix.inputs + r] * first[std::size_t(r) * width_ + i];
        });
      }
      case OpKind::sum:
        return reduce(op.first, out, [&](std::int32_t r, std::size_t i) { return first[std::size_t(r) * width_ + i]; });
      case OpKind::distance:
        return reduce(op.first, out, [&](std::int32_t r, std::size_t i) {
          const T d = first[std::size_t(r) * width_ + i] - second[std::size_t(r) * width_ + i];
          return d * d;
        });
      case OpKind::squares:
      case OpKind::norm:
        reduce(op.first, out, [&](std::int32_t r, std::size_t i) {
          const T d = first[std::size_t(r) * width_ + i];
          return d * d;
        });
        if (op.kind == OpKind::norm) {
          for (std::size_t i = 0; i < width_; ++i) out[i] = square_root(out[i]);
        }
        return;
      case OpKind::surprise:
        return for_each_group([&](std::size_t at, std::size_t some) {
          const Scores scores = scores_of(op, at, some);
          // sum - sum is 0, or NaN where a score was: the logarithm, which reads bits, does not know NaN.
          const V<T> nothing = scores.sum - scores.sum;
          stream(out).put_some(at, (scores.largest - scores.chosen) + logarithm<T>(scores.sum) + nothing, some);
        });
    }
  }

  template <class Work> void for_each_group(Work work) const {
    for (std::size_t at = 0; at < width_; at += lanes<T>) {
      work(at, width_ - at < lanes<T> ? width_ - at : std::size_t(lanes<T>));
    }
  }

  /// Of the samples from `at` on: the largest score, sum_r exp(score_r - largest) >= 1, and the score of the label.
  struct Scores {
    V<T> largest, sum, chosen;
  };
  V<T> score(const Op& op, std::int32_t r, std::size_t at, std::size_t some) const {
    return stream(values(op.first)).get_some(std::size_t(r) * width_ + at, some);
  }
  static V<T> exp_of(V<T> x) {
    const Exponential<T> e = exponential<T>(x);
    return e.power * e.rest + e.power;
  }
  Scores scores_of(const Op& op, std::size_t at, std::size_t some) const {
    const V<T> label = stream(values(op.second)).get_some(at, some);
    Scores scores{score(op, 0, at, some), V<T>{}, V<T>{}};
    for (std::int32_t r = 0; r < op.first.count; ++r) {
      const V<T> x = score(op, r, at, some);
      scores.largest = x > scores.largest ? x : scores.largest;
      scores.chosen = label == T(r) ? x : scores.chosen;
    }
    for (std::int32_t r = 0; r < op.first.count; ++r) scores.sum += exp_of(score(op, r, at, some) - scores.largest);
    return scores;
  }

  void backward(const Op& op) const {
    T* up = adjoint(op.out);
    const T *first = values(op.first), *second = values(op.second);
    const auto at = [&](std::int32_t r) { return std::size_t(r) * width_; };
    switch (op.kind) {
      case OpKind::layer: return layer_backward(op, up, first);
      case OpKind::add:
        pass(op.first, op.sets_first, up);
        return pass(op.second, op.sets_second, up);
      case OpKind::multiply:
        pass_times(op.first, op.sets_first, up, second);
        return pass_times(op.second, op.sets_second, up, first);
      case OpKind::scale:
        for (std::int32_t r = 0; r < op.out.count; ++r) {
          pass_times({op.first.bank, op.first.begin + r, 1}, op.sets_first, up + at(r), second);
          pass_times(op.second, op.sets_second && r == 0, up + at(r), first + at(r));
        }
        return;
      case OpKind::copy: return pass(op.first, op.sets_first, up);
      case OpKind::zero: return;
      case OpKind::depth:
        if (wanted(op.first)) {
          T* to = adjoint(op.first);
          for (std::size_t i = 0; i < width_; ++i) {
            const T part = T(frame_.depth) * up[i];
            to[i] = op.sets_first ? part : to[i] + part;
          }
        }
        if (frame_.depth_adjoint) {
          for (std::size_t i = 0; i < width_; ++i) {
            frame_.depth_adjoint[i] += op.first.count ? first[i] * up[i] : up[i];
          }
        }
        return;
      case OpKind::signal:
        if (!frame_.depth_adjoint) return;
        for (std::int32_t r = 0; r < op.out.count; ++r) {
          for (std::size_t i = 0; i < width_; ++i) {
            frame_.depth_adjoint[i] += frame_.signal_slopes[op.place + r] * up[at(r) + i];
          }
        }
        return;
      case OpKind::column: {
        const MatrixView<T>& matrix = frame_.matrices[op.matrix];
        for (std::int32_t r = 0; r < op.out.count; ++r) {
          const T weight = matrix.by_input[op.place * matrix.outputs + r];
          pass_scaled({op.first.bank, op.first.begin + r, 1}, op.sets_first, up + at(r), weight);
          if (T* gradient = weight_gradient(op.matrix)) {
            gradient[r * matrix.inputs + op.place] += frame_.gradient_scale * dot_row(up + at(r), first + at(r));
          }
        }
        return;
      }
      case OpKind::row_dot: {
        const MatrixView<T>& matrix = frame_.matrices[op.matrix];
        for (std::int32_t r = 0; r < op.first.count; ++r) {
          pass_scaled({op.first.bank, op.first.begin + r, 1}, op.sets_first, up,
                      matrix.by_output[op.place * matrix.inputs + r]);
          if (T* gradient = weight_gradient(op.matrix)) {
            gradient[op.place * matrix.inputs + r] += frame_.gradient_scale * dot_row(up, first + at(r));
          }
        }
        return;
      }
      case OpKind::sum:
        for (std::int32_t r = 0; r < op.first.count; ++r) {
          pass({op.first.bank, op.first.begin + r, 1}, op.sets_first, up);
        }
        return;
      case OpKind::distance:
        for (std::int32_t r = 0; r < op.first.count; ++r) {
          pass_difference({op.first.bank, op.first.begin + r, 1}, op.sets_first, up, first + at(r), second + at(r));
          pass_difference({op.second.bank, op.second.begin + r, 1}, op.sets_second, up, second + at(r), first + at(r));
        }
        return;
      case OpKind::squares:
        for (std::int32_t r = 0; r < op.first.count; ++r) {
          const Rows row{op.first.bank, op.first.begin + r, 1};
          if (!wanted(row)) continue;
          T* to = adjoint(row);
          for (std::size_t i = 0; i < width_; ++i) {
            const T part = T(2) * up[i] * first[at(r) + i];
            to[i] = op.sets_first ? part : to[i] + part;
          }
        }
        return;
      case OpKind::surprise:
        if (op.sets_second && wanted(op.second)) __builtin_memset(adjoint(op.second), 0, size(op.second) * sizeof(T));
        if (!wanted(op.first)) return;
        return for_each_group([&](std::size_t at_sample, std::size_t some) {
          const Scores scores = scores_of(op, at_sample, some);
          const V<T> label = stream(second).get_some(at_sample, some);
          const V<T> up_here = stream(up).get_some(at_sample, some), inverse = T(1) / scores.sum;
          for (std::int32_t r = 0; r < op.first.count; ++r) {
            const Stream<T> to = stream(adjoint(op.first) + at(r));
            const V<T> share = exp_of(score(op, r, at_sample, some) - scores.largest) * inverse;
            const V<T> part = up_here * (share - (label == T(r) ? all<T>(T(1)) : V<T>{}));
            to.put_some(at_sample, op.sets_first ? part : to.get_some(at_sample, some) + part, some);
          }
        });
      case OpKind::norm: {
        const T* length = values(op.out);
        for (std::int32_t r = 0; r < op.first.count; ++r) {
          const Rows row{op.first.bank, op.first.begin + r, 1};
          if (!wanted(row)) continue;
          T* to = adjoint(row);
          for (std::size_t i = 0; i < width_; ++i) {
            const T part = length[i] > 0 ? up[i] * first[at(r) + i] / length[i] : T(0);
            to[i] = op.sets_first ? part : to[i] + part;
          }
        }
        return;
      }
    }
  }

  void layer_backward(const Op& op, T* up, const T* first) const {
    if (!op.function_is_passed) through_function(op, up);
    if (op.matrix < 0) return pass(op.first, op.sets_first, up);
    const MatrixView<T>& matrix = frame_.matrices[op.matrix];
    if (frame_.gradients) {
      gradient_of_matrix(matrix, frame_.gradients[op.matrix], up, first, frame_.width, frame_.gradient_scale);
    }
    if (wanted(op.first)) pass_product(op, matrix, up);
  }

  /// matrix^T up, and on through the function of the layer below where that is left to this one.
  void pass_product(const Op& op, const MatrixView<T>& matrix, const T* up) const {
    T* to = adjoint(op.first);
    const Op* below = op.below >= 0 ? code_.ops + op.below : nullptr;
    if (frame_.width == 1) {
      product_of_one<T>(matrix.by_output, matrix.by_input, nullptr, up, matrix.outputs, to, matrix.inputs,
                        !op.sets_first);
      if (below) through_function(*below, to);
      return;
    }
    const auto product = [&](auto finish) {
      product_backward(matrix, up, to, frame_.width, op.sets_first, finish);
    };
    if (!below) return product(Unchanged{});
    if (const T* slopes = slopes_of(*below)) {
      return product([=](V<T> sum, std::size_t at) { return sum * load(slopes + at); });
    }
    const T* values_below = values(below->out);
    const T a = T(below->function.a);
    with_kind(below->function.kind, [&]<FunctionKind kind>() {
      product([=](V<T> sum, std::size_t at) { return sum * slope_from_value<T, kind>(load(values_below + at), a); });
    });
  }

  const T* slopes_of(const Op& op) const { return op.slope.count ? values(op.slope) : nullptr; }

  /// The adjoint of a function's argument, in place of that of its value.
  void through_function(const Op& op, T* up) const {
    const T* slope_adjoint = op.slope_is_read ? adjoint(op.slope) : nullptr;
    pass_function(op.function, up, values(op.out), slopes_of(op), slope_adjoint, size(op.out));
  }

  T* weight_gradient(std::int32_t matrix) const {
    return frame_.gradients ? frame_.gradients[matrix].weight : nullptr;
  }

  template <class Work> void zip(const Rows& rows, T* out, const T* a, const T* b, Work work) const {
    for_each<T>(size(rows), stream(out), stream(a), stream(b), work);
  }

  template <class Term> void reduce(const Rows& rows, T* out, Term term) const {
    for (std::size_t i = 0; i < width_; ++i) out[i] = 0;
    for (std::int32_t r = 0; r < rows.count; ++r) {
      for (std::size_t i = 0; i < width_; ++i) out[i] += term(r, i);
    }
  }

  void pass(const Rows& rows, bool sets, const T* up) const {
    if (!wanted(rows)) return;
    T* to = adjoint(rows);
    if (sets) {
      __builtin_memcpy(to, up, size(rows) * sizeof(T));
    } else {
      zip(rows, to, to, up, [](V<T> a, V<T> b) { return a + b; });
    }
  }

  void pass_scaled(const Rows& rows, bool sets, const T* up, T factor) const {
    if (!wanted(rows)) return;
    T* to = adjoint(rows);
    if (sets) {
      zip(rows, to, up, up, [&](V<T> a, V<T>) { return a * factor; });
    } else {
      zip(rows, to, to, up, [&](V<T> a, V<T> b) { return a + b * factor; });
    }
  }

  void pass_times(const Rows& rows, bool sets, const T* up, const T* factor) const {
    if (!wanted(rows)) return;
    T* to = adjoint(rows);
    if (sets) return zip(rows, to, up, factor, [](V<T> a, V<T> b) { return a * b; });
    const std::size_t count = size(rows);
    std::size_t at = 0;
    for (; at + lanes<T> <= count; at += lanes<T>) store(to + at, load(to + at) + load(up + at) * load(factor + at));
    for (; at < count; ++at) to[at] += up[at] * factor[at];
  }

  void pass_difference(const Rows& row, bool sets, const T* up, const T* here, const T* there) const {
    if (!wanted(row)) return;
    T* to = adjoint(row);
    for (std::size_t i = 0; i < width_; ++i) {
      const T part = T(2) * up[i] * (here[i] - there[i]);
      to[i] = sets ? part : to[i] + part;
    }
  }

  T dot_row(const T* a, const T* b) const {
    T sum = 0;
    std::size_t at = 0;
    V<T> sums{};
    for (; at + lanes<T> <= width_; at += lanes<T>) sums += load(a + at) * load(b + at);
    for (; at < width_; ++at) sum += a[at] * b[at];
    return sum + sum_of_lanes<T>(sums);
  }

  const Code& code_;
  const Frame<T>& frame_;
  std::size_t width_;
};

template <class T> void evaluate(const Code& code, const Frame<T>& frame) { Machine<T>(code, frame).forwards(); }
template <class T> void pull_back(const Code& code, const Frame<T>& frame) { Machine<T>(code, frame).backwards(); }

template <class T, int count>
inline void combine_some(T* out, const T* base, const T* const* given_terms, const T* given_weights, std::size_t size) {
  // Copies, so that no store can change them.
  const T* terms[std::size_t(count) + 1];
  T weights[std::size_t(count) + 1];
#pragma GCC unroll 8
  for (int j = 0; j < count; ++j) terms[j] = given_terms[j], weights[j] = given_weights[j];
  std::size_t at = 0;
  for (; at + lanes<T> <= size; at += lanes<T>) {
    V<T> sum = base ? load(base + at) : V<T>{};
#pragma GCC unroll 8
    for (int j = 0; j < count; ++j) sum += weights[j] * load(terms[j] + at);
    store(out + at, sum);
  }
  for (; at < size; ++at) {
    T sum = base ? base[at] : T(0);
    for (int j = 0; j < count; ++j) sum += weights[j] * terms[j][at];
    out[at] = sum;
  }
}

template <class T>
void combine(T* out, const T* base, const T* const* terms, const T* weights, std::int32_t count, std::size_t size) {
  constexpr int most = 8;
  while (count > most) {
    combine_some<T, most>(out, base, terms, weights, size);
    base = out, terms += most, weights += most, count -= most;
  }
  switch (count) {
    case 0: return combine_some<T, 0>(out, base, terms, weights, size);
    case 1: return combine_some<T, 1>(out, base, terms, weights, size);
    case 2: return combine_some<T, 2>(out, base, terms, weights, size);
    case 3: return combine_some<T, 3>(out, base, terms, weights, size);
    case 4: return combine_some<T, 4>(out, base, terms, weights, size);
    case 5: return combine_some<T, 5>(out, base, terms, weights, size);
    case 6: return combine_some<T, 6>(out, base, terms, weights, size);
    case 7: return combine_some<T, 7>(out, base, terms, weights, size);
    default: return combine_some<T, 8>(out, base, terms, weights, size);
  }
}

/// Calls `work` with the number of features as a constant where they are one or two, so that samples are turned over by shuffles; with
/// 0 for more.
template <class Work> inline void with_few(std::int32_t features, Work&& work) {
  switch (features) {
    case 0: return;
    case 1: return work.template operator()<1>();
    case 2: return work.template operator()<2>();
    default: return work.template operator()<0>();
  }
}

template <class T>
void pack(T* given_rows, const T* given_samples, std::int32_t features, std::int32_t count, std::int32_t width) {
  with_few(features, [=]<std::size_t few>() {
    T* __restrict__ rows = given_rows;
    const T* __restrict__ samples = given_samples;
    const std::size_t each = few > 0 ? few : std::size_t(features), all = std::size_t(width);
    for (std::size_t i = 0; i < std::size_t(count); ++i) {
#pragma GCC unroll 4
      for (std::size_t r = 0; r < each; ++r) rows[r * all + i] = samples[i * each + r];
    }
    for (std::size_t r = 0; r < each; ++r) {
      for (std::size_t i = std::size_t(count); i < all; ++i) rows[r * all + i] = rows[r * all + std::size_t(count) - 1];
    }
  });
}

template <class T>
void unpack(T* given_samples, const T* given_rows, std::int32_t features, std::int32_t count, std::int32_t width) {
  with_few(features, [=]<std::size_t few>() {
    T* __restrict__ samples = given_samples;
    const T* __restrict__ rows = given_rows;
    const std::size_t each = few > 0 ? few : std::size_t(features), all = std::size_t(width);
    for (std::size_t i = 0; i < std::size_t(count); ++i) {
#pragma GCC unroll 4
      for (std::size_t r = 0; r < each; ++r) samples[i * each + r] = rows[r * all + i];
    }
  });
}

/// The vectors of whole samples; gives how many samples of a row it has done.
template <class T> std::int32_t scaled_error_of_vectors(ErrorFrame<T>& frame) {
  const T inverse = T(1 / frame.divisor);
  V<T> largest{}, squares{};
  const std::int32_t whole = frame.samples / lanes<T> * lanes<T>;
  for (std::int32_t r = 0; r < frame.rows; ++r) {
    const std::size_t at = std::size_t(r) * std::size_t(frame.width);
    for (std::int32_t i = 0; i < whole; i += lanes<T>) {
      const V<T> value = absolute<T>(load(frame.values + at + i));
      const V<T> from = absolute<T>(load(frame.from + at + i)), to = absolute<T>(load(frame.to + at + i));
      const V<T> tolerance = frame.absolute + frame.relative * (from > to ? from : to);
      const V<T> ratio = value == 0 ? V<T>{} : value / tolerance;
      largest = ratio > largest ? ratio : largest;
      const V<T> part = ratio * inverse;
      squares += part * part;
    }
  }
  for (std::int32_t lane = 0; lane < lanes<T>; ++lane) {
    frame.largest = double(largest[lane]) > frame.largest ? double(largest[lane]) : frame.largest;
    frame.squares += double(squares[lane]);
  }
  if (frame.squares != frame.squares) frame.largest = frame.squares;  // a NaN is in no maximum, but in every sum
  return whole;
}

template <class T> void scaled_error(ErrorFrame<T>& frame) {
  const std::int32_t first = frame.by_sample ? 0 : scaled_error_of_vectors(frame);
  double largest = frame.largest, squares = frame.squares;
  bool has_nan = largest != largest;
  for (std::int32_t r = 0; r < frame.rows; ++r) {
    const std::size_t at = std::size_t(r) * std::size_t(frame.width);
    for (std::int32_t i = first; i < frame.samples; ++i) {
      const std::size_t n = at + std::size_t(i);
      const T from = frame.from[n] < 0 ? -frame.from[n] : frame.from[n], to = frame.to[n] < 0 ? -frame.to[n] : frame.to[n];
      const T value = frame.values[n] < 0 ? -frame.values[n] : frame.values[n];
      // A component that is exactly right is within any tolerance, also within none (0 / 0).
      const T ratio = value == 0 ? T(0) : value / (frame.absolute + frame.relative * (from > to ? from : to));
      has_nan |= ratio != ratio;
      largest = double(ratio) > largest ? double(ratio) : largest;
      const double part = double(ratio) / frame.divisor;
      squares += part * part;
      if (frame.by_sample) frame.by_sample[i] += part * part;
    }
  }
  frame.largest = has_nan ? __builtin_nan("") : largest;
  frame.squares = squares;
}

template <class T>
double dot(const T* a, const T* b, std::int32_t rows, std::int32_t width, std::int32_t samples) {
  double sum = 0;
  for (std::int32_t r = 0; r < rows; ++r) {
    const std::size_t at = std::size_t(r) * std::size_t(width);
    for (std::int32_t i = 0; i < samples; ++i) sum += double(a[at + std::size_t(i)]) * double(b[at + std::size_t(i)]);
  }
  return sum;
}

template <class T> void move_to_totals(T* given_values, double* given_totals, std::size_t size) {
  T* __restrict__ values = given_values;
  double* __restrict__ totals = given_totals;
  for (std::size_t n = 0; n < size; ++n) {
    totals[n] += double(values[n]);
    values[n] = 0;
  }
}

template <class T> bool all_finite(const T* values, std::size_t size) {
  // x - x is 0 for a finite x and NaN otherwise.
  V<T> differences{};
  std::size_t at = 0;
  for (; at + lanes<T> <= size; at += lanes<T>) {
    const V<T> x = load(values + at);
    differences += x - x;
  }
  T rest = sum_of_lanes<T>(differences);
  for (; at < size; ++at) rest += values[at] - values[at];
  return rest == 0;
}

template <class T> void adam(const AdamFrame<T>& frame) {
  const AdamFrame<T> f = frame;  // a copy, so that no store can change it
  T* __restrict__ values = f.values;
  T* __restrict__ means = f.means;
  T* __restrict__ squares = f.squares;
  const T* __restrict__ gradients = f.gradients;
  for (std::size_t i = 0; i < f.count; ++i) {
    const T gradient = gradients[i] + f.gradient_decay * values[i];
    const T mean = f.mean_decay * means[i] + f.mean_gain * gradient;
    const T square = f.square_decay * squares[i] + f.square_gain * gradient * gradient;
    means[i] = mean;
    squares[i] = square;
    values[i] = f.shrink * values[i] - f.rate * mean / (f.root_scale * square_root(square) + f.epsilon);
  }
}

template <class T>
void apply(const Function& function, const T* in, T* out, T* slope, std::size_t count) {
  __builtin_memcpy(out, in, count * sizeof(T));
  activate(function, out, slope, count);
}

template <class T>
constexpr Kernels<T> table(const char* name) {
  return {name, lanes<T>, has_pairs<T>, evaluate<T>, pull_back<T>, combine<T>, pack<T>, unpack<T>, scaled_error<T>, dot<T>, move_to_totals<T>, all_finite<T>, adam<T>, apply<T>};
}
