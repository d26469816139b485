// The functions of layers, their slopes and their curvatures, on vectors; see simd.inl on how this file is compiled.

/// x = n ln 2 + r with |r| <= ln 2 / 2: exp(x) = power (1 + rest), power = 2^n, rest = exp(r) - 1. For x up to 80;
/// where exp(x) has no normal number, power is 0.
template <class T> struct Exponential {
  V<T> power;
  V<T> rest;
};
template <class T, bool may_vanish = true> inline Exponential<T> exponential(V<T> x) {
  using K = Traits<T>;
  const auto vanishes = x < K::lowest_exponent;
  if (may_vanish) x = vanishes ? all<T>(K::lowest_exponent) : x;  // a NaN stays one
  const V<T> shifted = x * T(1.44269504088896340736) + K::round_magic;
  const V<T> n = shifted - K::round_magic;
  const I<T> whole = (I<T>)shifted - (I<T>)all<T>(K::round_magic);
  const V<T> r = (x - n * K::ln2_high) - n * K::ln2_low;
  // exp(r) - 1 = r + r^2 (1/2! + r/3! + ...), Taylor: at |r| < 0.35 the first term left out is below a tenth of an ulp.
  constexpr double inverse_factorial[] = {1.0,
                                          1.0,
                                          1.0 / 2,
                                          1.0 / 6,
                                          1.0 / 24,
                                          1.0 / 120,
                                          1.0 / 720,
                                          1.0 / 5040,
                                          1.0 / 40320,
                                          1.0 / 362880,
                                          1.0 / 3628800,
                                          1.0 / 39916800,
                                          1.0 / 479001600,
                                          1.0 / 6227020800};
  V<T> series = all<T>(T(inverse_factorial[K::exp_terms - 1]));
#pragma GCC unroll 16
  for (int n_term = K::exp_terms - 2; n_term >= 2; --n_term) series = series * r + T(inverse_factorial[n_term]);
  const V<T> rest = r + (r * r) * series;
  const I<T> bits = (whole + typename K::Int(K::bias)) << K::mantissa;
  if constexpr (!may_vanish) return {(V<T>)bits, rest};
  return {vanishes ? V<T>{} : (V<T>)bits, rest};
}

/// log(1 + t) = 2 artanh(t / (2 + t)) for 0 <= t <= 1.
template <class T> inline V<T> log_one_plus(V<T> t) {
  const V<T> w = t / (t + T(2)), w2 = w * w;
  V<T> series = all<T>(T(1.0 / (2 * Traits<T>::log_terms - 1)));
#pragma GCC unroll 20
  for (int n = Traits<T>::log_terms - 2; n >= 1; --n) series = series * w2 + T(1.0 / (2 * n + 1));
  return T(2) * (w + (w * w2) * series);
}

/// log x for normal x >= 1.
template <class T> inline V<T> logarithm(V<T> x) {
  using K = Traits<T>;
  const I<T> bits = (I<T>)x;
  const I<T> exponent = (bits >> K::mantissa) - typename K::Int(K::bias);
  const I<T> below_two = (bits & ((typename K::Int(1) << K::mantissa) - 1)) | (typename K::Int(K::bias) << K::mantissa);
  const V<T> n = __builtin_convertvector(exponent, V<T>);
  return n * K::ln2_high + (log_one_plus<T>((V<T>)below_two - T(1)) + n * K::ln2_low);
}

template <class T> struct ValueAndSlope {
  V<T> value;
  V<T> slope;
};

#if defined(__x86_64__) && FATHOM_VECTOR_BYTES >= 32 && !defined(__clang__)
/// tanh x = t + (1 - t^2) r / (d + t r) with x = n step + r, t = tanh(n step), d = r coth r: the values of t lie in two vectors, so
/// that a permutation looks them up; with AVX2 these are 16, for |x|. r is counted in steps, and d as well: d = 1 / step + c_1 r^2 + c_2 r^4, minimax on |r| < 1/2
/// (error 5e-8). The quotient with one rounding less, (t d + r) / (d + t r), is off by 2.7 in place of 1.9 ulp, and falls between
/// neighbours 150 times as often. The step is one around 0.58 whose first values of t are nearly floats; from 8.5 on t is 1.
constexpr float tanh_scale = 1.71985674f;  // steps in 1
constexpr float tanh_cut = 15.25f, tanh_round = 12582912.0f;
alignas(64) constexpr float tanh_of_steps[32] = {
    0.0f, 0.523714006f, 0.821978688f, 0.940726936f, 0.981086969f, 0.99404943f, 0.998136163f, 0.999417007f,
    0.999817729f, 0.999943018f, 0.999982178f, 0.999994457f, 0.999998271f, 0.999999464f, 0.999999821f, 1.0f,
    -1.0f, -1.0f, -0.999999821f, -0.999999464f, -0.999998271f, -0.999994457f, -0.999982178f, -0.999943018f,
    -0.999817729f, -0.999417007f, -0.998136163f, -0.99404943f, -0.981086969f, -0.940726936f, -0.821978688f, -0.523714006f};
/// `shifted` has n in its lowest bits, of which a permutation reads five, or four.
inline V<float> tanh_near_step(V<float> shifted, V<float> r) {
  constexpr float c[] = {tanh_scale, 0.193810895f, -0.00432001334f};
  const V<float> t = __builtin_shuffle(load(tanh_of_steps), load(tanh_of_steps + lanes<float>), (I<float>)shifted);
  const V<float> r2 = r * r, d = r2 * (r2 * c[2] + c[1]) + c[0];
  return (1.0f - t * t) * (r / (t * r + d)) + t;
}
inline V<float> tanh_of_scaled(V<float> x) {  // for pairs, which AVX-512 has: the signs are in the table there
  x = clamped<float>(x, tanh_cut);
  const V<float> shifted = x + tanh_round;
  return tanh_near_step(shifted, x - (shifted - tanh_round));
}
inline V<float> tanh_of_single(V<float> x) {
  constexpr bool knows_signs = lanes<float> == 16;
  const I<float> sign = knows_signs ? I<float>{} : (I<float>)x & (I<float>)all<float>(-0.0f);
  x = clamped<float>((V<float>)((I<float>)x ^ sign), tanh_cut / tanh_scale);
  const V<float> shifted = x * tanh_scale + tanh_round;  // a product that is added is not rounded: r is exact to its own last place
  const V<float> y = tanh_near_step(shifted, x * tanh_scale - (shifted - tanh_round));
  return (V<float>)((I<float>)y | sign);
}
#else
/// tanh x = m / (m + 2), m = exp(2x) - 1 = 2^n exp(2r) - 1, x = n ln2 / 2 + r. An error of n ln2 hardly counts where n is large, so
/// that one rounding of it will do, and exp(2r) - 1 = r (2 + c_1 r + ... + c_5 r^5), minimax on |r| < ln2 / 4 (relative
/// error 1.4e-8, found by weighted least squares).
constexpr float tanh_scale = 1;
inline V<float> tanh_of_scaled(V<float> x) {
  constexpr float cut = Traits<float>::saturation, shift = Traits<float>::round_magic + float(Traits<float>::bias);
  constexpr float c[] = {2.0f, 1.9999999260f, 1.3333234739f, 0.66667521137f, 0.26772950808f, 0.088848105745f};
  x = clamped<float>(x, cut);
  const V<float> shifted = x * 2.88539008f + shift;  // n with the exponent's bias, in the lowest bits
  const V<float> r = x - (shifted - shift) * 0.34657359f;
  V<float> series = all<float>(c[5]);
#pragma GCC unroll 8
  for (int n = 4; n >= 0; --n) series = series * r + c[n];
  const V<float> power = (V<float>)((I<float>)shifted << Traits<float>::mantissa);
  const V<float> m = power * (r * series) + (power - 1.0f);
  return m / (m + 2.0f);
}
inline V<float> tanh_of_single(V<float> x) { return tanh_of_scaled(x); }
#endif
template <class T> inline V<T> tanh_of(V<T> x) {
  if constexpr (sizeof(T) == 4) return tanh_of_single(x);
  const Exponential<T> e = exponential<T, false>(clamped<T>(x, Traits<T>::saturation) * T(2));
  // m = exp(2x) - 1 without cancellation, tanh x = m / (m + 2)
  const V<T> m = e.power * e.rest + (e.power - T(1));
  return m / (m + T(2));
}

template <class T> struct Sigmoids {
  V<T> of_x;
  V<T> of_minus_x;
};
template <class T> inline Sigmoids<T> sigmoids(V<T> x) {
  const Exponential<T> e = exponential<T>(-absolute<T>(x));
  const V<T> t = e.power * e.rest + e.power;  // exp(-|x|)
  const V<T> large = T(1) / (t + T(1)), small = t * large;
  return {x < 0 ? small : large, x < 0 ? large : small};
}

template <class T> inline ValueAndSlope<T> softplus_of(V<T> x, T beta, T threshold) {
  const V<T> scaled = x * beta;
  const Exponential<T> e = exponential<T>(-absolute<T>(scaled));
  const V<T> t = e.power * e.rest + e.power;
  const V<T> inverse = T(1) / (t + T(1));
  const V<T> positive = scaled < 0 ? V<T>{} : scaled;
  const V<T> value = (positive + log_one_plus<T>(t)) * (T(1) / beta);
  const V<T> slope = scaled < 0 ? t * inverse : inverse;
  const auto linear = scaled > threshold;  // torch's threshold, to the bit of its definition
  return {linear ? x : value, linear ? all<T>(T(1)) : slope};
}

/// The value, and the slope where it does not follow from the value (softplus, silu).
template <class T, FunctionKind kind> inline ValueAndSlope<T> value_of(V<T> x, T a, T b) {
  if constexpr (kind == FunctionKind::tanh) return {tanh_of<T>(x), V<T>{}};
  if constexpr (kind == FunctionKind::relu) return {x < 0 ? V<T>{} : x, V<T>{}};
  if constexpr (kind == FunctionKind::sigmoid) return {sigmoids<T>(x).of_x, V<T>{}};
  if constexpr (kind == FunctionKind::softplus) return softplus_of<T>(x, a, b);
  if constexpr (kind == FunctionKind::silu) {
    const Sigmoids<T> s = sigmoids<T>(x);
    return {x * s.of_x, s.of_x * (x * s.of_minus_x + T(1))};
  }
  if constexpr (kind == FunctionKind::elu) {
    const Exponential<T> e = exponential<T>(x > 0 ? V<T>{} : x);
    const V<T> below = (e.power * e.rest + (e.power - T(1))) * a;
    return {x > 0 ? x : below, V<T>{}};
  }
  return {x, V<T>{}};
}

/// What a function would rather have its argument multiplied by, and its value from such an argument.
template <class T, FunctionKind kind> constexpr T argument_scale = kind == FunctionKind::tanh && sizeof(T) == 4 ? T(tanh_scale) : T(1);
template <class T, FunctionKind kind> inline V<T> value_of_scaled(V<T> x, T a) {
  if constexpr (kind == FunctionKind::tanh && sizeof(T) == 4) return tanh_of_scaled(x);
  return value_of<T, kind>(x, a, T(0)).value;
}

/// function' from the function's value, for those where that is possible.
template <class T, FunctionKind kind> inline V<T> slope_from_value(V<T> y, T a) {
  if constexpr (kind == FunctionKind::tanh) return T(1) - y * y;
  if constexpr (kind == FunctionKind::relu) return y > 0 ? all<T>(T(1)) : V<T>{};
  if constexpr (kind == FunctionKind::sigmoid) return y * (T(1) - y);
  if constexpr (kind == FunctionKind::elu) return y > 0 ? all<T>(T(1)) : y + a;
  return all<T>(T(1));
}

/// function'' from value and slope (all but silu, which has no program that needs it).
template <class T, FunctionKind kind> inline V<T> curvature_from(V<T> y, V<T> slope, T a) {
  if constexpr (kind == FunctionKind::tanh) return T(-2) * y * slope;
  if constexpr (kind == FunctionKind::sigmoid) return slope * (T(1) - T(2) * y);
  if constexpr (kind == FunctionKind::softplus) return a * slope * (T(1) - slope);
  if constexpr (kind == FunctionKind::elu) return y > 0 ? V<T>{} : slope;
  return V<T>{};
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

constexpr bool has_own_slope(FunctionKind kind) { return !slope_follows_from_value[int(kind)]; }

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

/// values = function(values) in place, slopes beside them where they are wanted.
template <class T>
inline void activate(const Function& function, T* values, T* slopes, std::size_t count) {
  if (function.kind == FunctionKind::identity && !slopes) return;
  with_kind(function.kind, [&]<FunctionKind kind>() {
    apply_kind<T, kind>(function, values, slopes, count, !has_own_slope(kind));
  });
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
