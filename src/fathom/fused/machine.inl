// Runs the operations of a code on a tile, forwards and backwards; see simd.inl on how this file is compiled.

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
      case OpKind::absolute:
        return reduce(op.first, out, [&](std::int32_t r, std::size_t i) {
          const T d = first[std::size_t(r) * width_ + i] - second[std::size_t(r) * width_ + i];
          return d < 0 ? -d : d;
        });
      case OpKind::huber: {
        const T a = T(op.function.a);
        return reduce(op.first, out, [&](std::int32_t r, std::size_t i) {
          const T d = first[std::size_t(r) * width_ + i] - second[std::size_t(r) * width_ + i], size = d < 0 ? -d : d;
          return size < a ? d * d / 2 : a * (size - a / 2);
        });
      }
      case OpKind::call: return callback(op).evaluate(code_.callbacks[op.place].context, frame_, op);
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
      case OpKind::cross_entropy:
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
      case OpKind::distance: return pass_differences(op, up, [](T d) { return T(2) * d; });
      case OpKind::absolute:
        // NaN stays one: it is neither above nor below.
        return pass_differences(op, up, [](T d) { return d > 0 ? T(1) : d < 0 ? T(-1) : d; });
      case OpKind::huber: {
        const T a = T(op.function.a);
        return pass_differences(op, up, [a](T d) { return d > a ? a : d < -a ? -a : d; });
      }
      case OpKind::call: return callback(op).pull_back(code_.callbacks[op.place].context, frame_, op);
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
      case OpKind::cross_entropy:
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

  /// Of a sum over rows of a function of first - second, to both: `slope` is that function's.
  template <class Slope> void pass_differences(const Op& op, const T* up, Slope slope) const {
    for (std::int32_t r = 0; r < op.first.count; ++r) {
      const std::size_t at = std::size_t(r) * width_;
      const T *first = values(op.first) + at, *second = values(op.second) + at;
      pass_difference({op.first.bank, op.first.begin + r, 1}, op.sets_first, up, first, second, slope);
      pass_difference({op.second.bank, op.second.begin + r, 1}, op.sets_second, up, second, first, slope);
    }
  }
  template <class Slope>
  void pass_difference(const Rows& row, bool sets, const T* up, const T* here, const T* there, Slope slope) const {
    if (!wanted(row)) return;
    T* to = adjoint(row);
    for (std::size_t i = 0; i < width_; ++i) {
      const T part = up[i] * slope(here[i] - there[i]);
      to[i] = sets ? part : to[i] + part;
    }
  }

  const Callback<T>& callback(const Op& op) const {
    if constexpr (sizeof(T) == 4) {
      return code_.callbacks[op.place].f32;
    } else {
      return code_.callbacks[op.place].f64;
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
