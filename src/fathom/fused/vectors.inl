// What a step does with whole states besides evaluating: sums of stages, norms, samples into rows; and the update of Adam. See
// simd.inl on how this file is compiled.

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
