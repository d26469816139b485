// Vectors of the width this file is compiled for (FATHOM_VECTOR_BYTES).
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

/// With 32 registers the sums of a block have room beside the constants of its function; with 16 they do not.
constexpr bool has_many_registers = FATHOM_VECTOR_BYTES == 64;

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

template <class T> inline T square_root(T value) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_sqrtf(value);
  } else {
    return __builtin_sqrt(value);
  }
}

/// Numbers read and written by vectors. The last vector of a row may be partial: `some` numbers, which go through a copy.
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
