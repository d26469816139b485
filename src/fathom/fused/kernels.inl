// All kernels of one instruction set; see simd.inl on how this file is compiled.

#include "fathom/fused/simd.inl"

#include "fathom/fused/functions.inl"

#include "fathom/fused/products.inl"

#include "fathom/fused/pairs.inl"

#include "fathom/fused/machine.inl"

#include "fathom/fused/vectors.inl"

template <class T>
void apply(const Function& function, const T* in, T* out, T* slope, std::size_t count) {
  __builtin_memcpy(out, in, count * sizeof(T));
  activate(function, out, slope, count);
}

template <class T> constexpr Kernels<T> table(const char* name) {
  return {.name = name,
          .lanes = lanes<T>,
          .has_pairs = has_pairs<T>,
          .evaluate = evaluate<T>,
          .pull_back = pull_back<T>,
          .combine = combine<T>,
          .pack = pack<T>,
          .unpack = unpack<T>,
          .scaled_error = scaled_error<T>,
          .dot = dot<T>,
          .move_to_totals = move_to_totals<T>,
          .all_finite = all_finite<T>,
          .adam = adam<T>,
          .apply = apply<T>};
}
