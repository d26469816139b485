// Two layers in one go, y = V f(W x + b) + c, where x and y have few rows: a hidden row goes into all that wants it while it is in
// a register. See simd.inl on how this file is compiled.

/// In single precision only: that is what small models are trained in, and each shape has machine code of its own.
template <class T> constexpr bool has_pairs = has_many_registers && sizeof(T) == 4;

template <class T> struct Pair {
  std::int32_t width = 0;
  MatrixView<T> below = {};   ///< W, b
  MatrixView<T> above = {};   ///< V, c
  T a = 1;                    ///< of the function
  const T* inputs = nullptr;  ///< x
  T* hidden = nullptr;        ///< forwards: null where nobody will read it
  T* outputs = nullptr;       ///< y

  // Backwards only.
  bool knows_hidden = false;  ///< or has it to be found again, a strip of rows at a time in the memory of the first ones?
  const T* outputs_adjoint = nullptr;
  T* inputs_adjoint = nullptr;
  bool sets_inputs_adjoint = false;  ///< or adds to it
  MatrixGradient<T> below_gradient = {}, above_gradient = {};
  T gradient_scale = 1;
};

/// W and b of some hidden rows, scaled as the function would have its argument: once for a tile, and not for every sample.
template <class T, FunctionKind kind, std::size_t inputs, std::size_t most> struct ScaledRows {
  T weights[most * inputs];
  T bias[most];

  ScaledRows(const MatrixView<T>& below, std::size_t row, std::size_t end) {
    constexpr T scale = argument_scale<T, kind>;
    const std::size_t rows = end - row;
    for (std::size_t n = 0; n < rows * inputs; ++n) weights[n] = scale * below.by_output[row * inputs + n];
    for (std::size_t k = 0; k < rows; ++k) bias[k] = scale * below.bias[row + k];
  }

  /// hidden[k] = f(W x + b) in row + k. One vector of samples: its weights are then operands in memory, which cost nothing.
  /// Several rows: while one waits for its division, others go on.
  template <std::size_t rows> void values(std::size_t row, const V<T>* x, T a, V<T>* hidden) const {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < rows; ++k) {
      V<T> sum = all<T>(bias[row + k]);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < inputs; ++i) sum += weights[(row + k) * inputs + i] * x[i];
      hidden[k] = value_of_scaled<T, kind>(sum, a);
    }
  }
};

/// y += V f(W x + b) for hidden rows `row` .. `end`, or y = c + that where these are the first ones.
template <class T, FunctionKind kind, std::size_t inputs, std::size_t outputs, bool keeps, std::size_t most>
inline void add_hidden(const Pair<T>& pair, std::size_t row, std::size_t end) {
  const std::size_t width = std::size_t(pair.width);
  const ScaledRows<T, kind, inputs, most> below(pair.below, row, end);
  for (std::size_t at = 0; at < width; at += std::size_t(lanes<T>)) {
    V<T> x[inputs], sums[outputs];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < inputs; ++i) x[i] = load(pair.inputs + i * width + at);
#pragma GCC unroll 4
    for (std::size_t o = 0; o < outputs; ++o) sums[o] = row == 0 ? all<T>(pair.above.bias[o]) : load(pair.outputs + o * width + at);
    const auto use = [&]<std::size_t rows>(std::size_t first, const V<T>* hidden) {
#pragma GCC unroll 4
      for (std::size_t k = 0; k < rows; ++k) {
        if (keeps) store(pair.hidden + (first + k) * width + at, hidden[k]);
#pragma GCC unroll 4
        for (std::size_t o = 0; o < outputs; ++o) sums[o] += pair.above.by_input[(first + k) * outputs + o] * hidden[k];
      }
    };
    std::size_t first = row;
    if (first + 4 <= end) {
      V<T> hidden[4];  // used when the next ones have been begun: their divisions are over then
      below.template values<4>(0, x, pair.a, hidden);
      for (first += 4; first + 4 <= end; first += 4) {
        V<T> next[4];
        below.template values<4>(first - row, x, pair.a, next);
        use.template operator()<4>(first - 4, hidden);
#pragma GCC unroll 8
        for (std::size_t k = 0; k < 4; ++k) hidden[k] = next[k];
      }
      use.template operator()<4>(first - 4, hidden);
    }
    for (; first < end; ++first) {
      V<T> hidden[1];
      below.template values<1>(first - row, x, pair.a, hidden);
      use.template operator()<1>(first, hidden);
    }
#pragma GCC unroll 4
    for (std::size_t o = 0; o < outputs; ++o) store(pair.outputs + o * width + at, sums[o]);
  }
}

template <class T, FunctionKind kind, std::size_t inputs, std::size_t outputs, bool keeps> inline void pair_forward(const Pair<T>& given) {
  const Pair<T> pair = given;  // a copy, so that no store can change it
  constexpr std::size_t strip = 64;
  const std::size_t hidden_rows = std::size_t(pair.below.outputs);
  for (std::size_t row = 0; row < hidden_rows; row += strip) {
    const std::size_t end = row + strip < hidden_rows ? row + strip : hidden_rows;
    add_hidden<T, kind, inputs, outputs, keeps, strip>(pair, row, end);
  }
}

/// Hidden rows `row` .. `end` again, in the memory of the first ones.
template <class T, FunctionKind kind, std::size_t inputs, std::size_t most>
__attribute__((noinline)) void find_hidden(const Pair<T>& pair, std::size_t row, std::size_t end) {
  const std::size_t width = std::size_t(pair.width), rows_wanted = end - row;
  const ScaledRows<T, kind, inputs, most> below(pair.below, row, end);
  for (std::size_t at = 0; at < width; at += std::size_t(lanes<T>)) {
    V<T> x[inputs];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < inputs; ++i) x[i] = load(pair.inputs + i * width + at);
    T* to = pair.hidden + at;
    const auto some = [&]<std::size_t rows>(std::size_t first) {
      V<T> hidden[rows];
      below.template values<rows>(first, x, pair.a, hidden);
#pragma GCC unroll 8
      for (std::size_t k = 0; k < rows; ++k, to += width) store(to, hidden[k]);
    };
    std::size_t first = 0;
    for (; first + 8 <= rows_wanted; first += 8) some.template operator()<8>(first);
    for (; first < rows_wanted; ++first) some.template operator()<1>(first);
  }
}

/// sums[k] = sum of the lanes of v[k], for any number of vectors.
template <class T, std::size_t count> inline void sums_of_many(const V<T>* v, T* sums) {
  constexpr std::size_t most = std::size_t(lanes<T>), here = count < most ? count : most;
  constexpr std::size_t filled = here <= 1 ? 1 : here <= 2 ? 2 : here <= 4 ? 4 : here <= 8 ? 8 : 16;
  V<T> padded[filled] = {};
#pragma GCC unroll 16
  for (std::size_t k = 0; k < here; ++k) padded[k] = v[k];
  T totals[most];
  sums_of_lanes<T, int(filled)>(padded, totals);
#pragma GCC unroll 16
  for (std::size_t k = 0; k < here; ++k) sums[k] = totals[k];
  if constexpr (count > here) sums_of_many<T, count - here>(v + here, sums + here);
}

/// The part of hidden rows row .. row + rows, whose values begin at `hidden`, in the inputs' adjoint and in all gradients.
template <class T, FunctionKind kind, std::size_t inputs, std::size_t outputs, std::size_t rows>
inline void pull_hidden(const Pair<T>& pair, std::size_t row, const T* hidden) {
  constexpr std::size_t each = inputs + 1 + outputs;  // sums of a row: gradients of W, b and V
  const std::size_t width = std::size_t(pair.width);
  const bool sets = pair.sets_inputs_adjoint && row == 0;
  V<T> sums[rows * each] = {};
  for (std::size_t at = 0; at < width; at += std::size_t(lanes<T>)) {
    V<T> x[inputs], up[outputs], down[inputs];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < inputs; ++i) {
      x[i] = load(pair.inputs + i * width + at);
      down[i] = sets ? V<T>{} : load(pair.inputs_adjoint + i * width + at);
    }
#pragma GCC unroll 4
    for (std::size_t o = 0; o < outputs; ++o) up[o] = load(pair.outputs_adjoint + o * width + at);
#pragma GCC unroll 4
    for (std::size_t k = 0; k < rows; ++k) {
      const T* above = pair.above.by_input + (row + k) * outputs;
      const T* below = pair.below.by_output + (row + k) * inputs;
      const V<T> value = load(hidden + k * width + at);
      V<T> adjoint = above[0] * up[0];
#pragma GCC unroll 4
      for (std::size_t o = 1; o < outputs; ++o) adjoint += above[o] * up[o];
      adjoint *= slope_from_value<T, kind>(value, pair.a);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < inputs; ++i) {
        sums[k * each + i] += adjoint * x[i];
        down[i] += below[i] * adjoint;
      }
      sums[k * each + inputs] += adjoint;
#pragma GCC unroll 4
      for (std::size_t o = 0; o < outputs; ++o) sums[k * each + inputs + 1 + o] += up[o] * value;
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < inputs; ++i) store(pair.inputs_adjoint + i * width + at, down[i]);
  }
  T totals[rows * each];
  sums_of_many<T, rows * each>(sums, totals);
#pragma GCC unroll 4
  for (std::size_t k = 0; k < rows; ++k) {
    const std::size_t here = row + k;
    const T* total = totals + k * each;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < inputs; ++i) {
      pair.below_gradient.weight[here * inputs + i] += pair.gradient_scale * total[i];
    }
    if (pair.below_gradient.bias) pair.below_gradient.bias[here] += pair.gradient_scale * total[inputs];
#pragma GCC unroll 4
    for (std::size_t o = 0; o < outputs; ++o) {
      pair.above_gradient.weight[o * std::size_t(pair.above.inputs) + here] +=
          pair.gradient_scale * total[inputs + 1 + o];
    }
  }
}

/// All but the gradient of c.
template <class T, FunctionKind kind, std::size_t inputs, std::size_t outputs> inline void pair_backward(const Pair<T>& given) {
  const Pair<T> pair = given;
  const std::size_t width = std::size_t(pair.width), hidden_rows = std::size_t(pair.below.outputs);
  constexpr std::size_t strip = 16;
  const std::size_t step = pair.knows_hidden ? hidden_rows : strip;
  for (std::size_t row = 0; row < hidden_rows;) {
    const std::size_t end = row + step < hidden_rows ? row + step : hidden_rows;
    if (!pair.knows_hidden) find_hidden<T, kind, inputs, strip>(pair, row, end);
    const T* hidden = pair.hidden;
    for (; row + 2 <= end; row += 2, hidden += 2 * width) pull_hidden<T, kind, inputs, outputs, 2>(pair, row, hidden);
    for (; row < end; ++row, hidden += width) pull_hidden<T, kind, inputs, outputs, 1>(pair, row, hidden);
  }
}

/// Calls `work` with the kind of a pair's function and its numbers of inputs and outputs as constants.
template <class T, class Work> inline void with_pair(FunctionKind kind, const Pair<T>& pair, Work&& work) {
  static_assert(most_outer_rows == 4);
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
