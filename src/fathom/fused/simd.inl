// Vectors of the width this file is compiled for (FATHOM_VECTOR_BYTES), and the elementwise functions on them.
// Included inside a namespace of its own for each instruction set: nothing here may be shared between them, and nothing
// of the standard library may be instantiated.

constexpr std::size_t vector_bytes = FATHOM_VECTOR_BYTES;

template <class T> struct Traits;
template <> struct Traits<float> {
  using Int = std::int32_t;
  typedef float V __attribute__((vector_size(FATHOM_VECTOR_BYTES)));
  typedef float Unaligned __attribute__((vector_size(FATHOM_VECTOR_BYTES), aligned(4), may_alias));
  typedef std::int32_t I __attribute__((vector_size(FATHOM_VECTOR_BYTES)));
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float round_magic = 12582912.0f;          // 1.5 2^23
  static constexpr float ln2_high = 0.693359375f;            // few bits, so that n ln2_high is exact
  static constexpr float ln2_low = -2.12194440054690583e-4f;  // ln 2 - ln2_high
  static constexpr float lowest_exponent = -87.0f;
  static constexpr float saturation = 9.5f;  // tanh is 1 from here on
  static constexpr int exp_terms = 8, log_terms = 9;
};
template <> struct Traits<double> {
  using Int = std::int64_t;
  typedef double V __attribute__((vector_size(FATHOM_VECTOR_BYTES)));
  typedef double Unaligned __attribute__((vector_size(FATHOM_VECTOR_BYTES), aligned(8), may_alias));
  typedef std::int64_t I __attribute__((vector_size(FATHOM_VECTOR_BYTES)));
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double round_magic = 6755399441055744.0;  // 1.5 2^52
  static constexpr double ln2_high = 0.693145751953125;
  static constexpr double ln2_low = 1.42860682030941723212e-6;
  static constexpr double lowest_exponent = -708.0;
  static constexpr double saturation = 20.0;
  static constexpr int exp_terms = 14, log_terms = 18;
};

template <class T> using V = typename Traits<T>::V;
template <class T> using I = typename Traits<T>::I;
template <class T> constexpr std::int32_t lanes = std::int32_t(vector_bytes / sizeof(T));

template <class T> inline V<T> load(const T* from) {
  return *reinterpret_cast<const typename Traits<T>::Unaligned*>(from);
}
template <class T> inline void store(T* to, V<T> value) {
  *reinterpret_cast<typename Traits<T>::Unaligned*>(to) = value;
}
/// A difference, since x - 0 is x whatever its sign and costs nothing, while x + 0 is not.
template <class T> inline V<T> all(T value) { return value - V<T>{}; }

/// Where lane `lane` of a folded vector comes from: it has `groups` groups of lanes, the first half of them from the first of the
/// two vectors, each folded from a group of twice its size.
constexpr int folded_from(int lane, int lanes_all, int groups, int second_half) {
  const int size = lanes_all / groups, group = lane / size, within = lane % size;
  const int source = group / (groups / 2), source_group = group % (groups / 2);
  return source * lanes_all + source_group * 2 * size + within + second_half * size;
}
template <class T, int groups, int... lane>
inline V<T> folded_pair(V<T> a, V<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, folded_from(lane, lanes<T>, groups, 0)...) +
         __builtin_shufflevector(a, b, folded_from(lane, lanes<T>, groups, 1)...);
}
template <class T, int groups> inline V<T> fold(V<T> a, V<T> b) {
  return folded_pair<T, groups>(a, b, std::make_integer_sequence<int, lanes<T>>{});
}

/// Vectors first .. first + count of v folded into one with a group of lanes for each of them: count - 1 additions in all.
template <class T, int count> inline V<T> folded(const V<T>* v) {
  if constexpr (count == 1) {
    return v[0];
  } else {
    return fold<T, count>(folded<T, count / 2>(v), folded<T, count / 2>(v + count / 2));
  }
}

/// Every lane becomes the sum of its group of `size` lanes.
template <class T, int size, int... lane>
inline V<T> summed_groups(V<T> v, std::integer_sequence<int, lane...> all_lanes) {
  if constexpr (size == 1) {
    return v;
  } else {
    return summed_groups<T, size / 2>(v + __builtin_shufflevector(v, v, (lane ^ (size / 2))...), all_lanes);
  }
}
template <class T, int size, int... lane>
inline V<T> firsts_of_groups(V<T> v, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(v, v, ((lane * size) % lanes<T>)...);
}

/// sums[k] = sum of the lanes of v[k], for a power of two of vectors, at most as many as there are lanes; `sums` has room for a
/// whole vector.
template <class T, int count> inline void sums_of_lanes(const V<T>* v, T* sums) {
  static_assert(count <= lanes<T> && (count & (count - 1)) == 0);
  constexpr int size = lanes<T> / count;
  constexpr auto all_lanes = std::make_integer_sequence<int, lanes<T>>{};
  const V<T> totals = summed_groups<T, size>(folded<T, count>(v), all_lanes);
  store(sums, firsts_of_groups<T, size>(totals, all_lanes));
}

template <class T> inline T sum_of_lanes(V<T> v) {
  // Halves onto each other: log2(lanes) additions.
  if constexpr (lanes<T> == 16) {
    v = v + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v = v + __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    v = v + __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  } else if constexpr (lanes<T> == 8) {
    v = v + __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v = v + __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
  } else if constexpr (lanes<T> == 4) {
    v = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
  }
  return v[0] + v[1];
}

template <class T> inline V<T> absolute(V<T> x) { return x < 0 ? -x : x; }

/// a < b ? a : b and a > b ? a : b, one instruction where the compiler would compare and blend. A NaN in b is given back.
template <class T> inline V<T> smaller(V<T> a, V<T> b) {
#if defined(__clang__)
#elif defined(__x86_64__) && FATHOM_VECTOR_BYTES == 64
  if constexpr (sizeof(T) == 4) return __builtin_ia32_minps512_mask(a, b, a, -1, 4);
#elif defined(__x86_64__) && FATHOM_VECTOR_BYTES == 32
  if constexpr (sizeof(T) == 4) return __builtin_ia32_minps256(a, b);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return __builtin_ia32_minps(a, b);
#endif
  return a < b ? a : b;
}
template <class T> inline V<T> larger(V<T> a, V<T> b) {
#if defined(__clang__)
#elif defined(__x86_64__) && FATHOM_VECTOR_BYTES == 64
  if constexpr (sizeof(T) == 4) return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#elif defined(__x86_64__) && FATHOM_VECTOR_BYTES == 32
  if constexpr (sizeof(T) == 4) return __builtin_ia32_maxps256(a, b);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return __builtin_ia32_maxps(a, b);
#endif
  return a > b ? a : b;
}
template <class T> inline V<T> clamped(V<T> x, T cut) { return larger<T>(all<T>(-cut), smaller<T>(all<T>(cut), x)); }

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

/// Calls `work(load, store)` on every vector of `count` numbers; the last one may be partial and then goes through a copy.
template <class T> struct Stream {
  T* data;
  V<T> get(std::size_t at) const { return load(data + at); }
  V<T> get_some(std::size_t at, std::size_t some) const {
    V<T> v{};
    __builtin_memcpy(&v, data + at, some * sizeof(T));
    return v;
  }
  void put(std::size_t at, V<T> v) const { store(data + at, v); }
  void put_some(std::size_t at, V<T> v, std::size_t some) const {
    __builtin_memcpy(data + at, &v, some * sizeof(T));
  }
};
template <class T> inline Stream<T> stream(const T* data) { return {const_cast<T*>(data)}; }

/// out[i] = work(a[i], b[i]) for all i; `b` may be any stream when the work ignores it.
template <class T, class Work>
inline void for_each(std::size_t count, Stream<T> out, Stream<T> a, Stream<T> b, Work work) {
  std::size_t at = 0;
  for (; at + lanes<T> <= count; at += lanes<T>) out.put(at, work(a.get(at), b.get(at)));
  if (at < count) out.put_some(at, work(a.get_some(at, count - at), b.get_some(at, count - at)), count - at);
}
