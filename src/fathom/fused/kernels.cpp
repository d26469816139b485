#include "fathom/fused/kernels.hpp"

#include <cstdlib>
#include <string_view>

#include "fathom/fused/kernels_sets.hpp"
#include "fathom/support/error.hpp"

namespace fathom::fused {

namespace {

struct InstructionSet {
  bool available;
  const Kernels<float>* f32;
  const Kernels<double>* f64;
};

std::vector<InstructionSet> fastest_first() {
  std::vector<InstructionSet> sets;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  sets.push_back({wide, &avx512::kernels_f32, &avx512::kernels_f64});
  const bool medium = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  sets.push_back({medium, &avx2::kernels_f32, &avx2::kernels_f64});
#endif
  sets.push_back({true, &baseline::kernels_f32, &baseline::kernels_f64});
  return sets;
}

template <class T> const Kernels<T>* of_type(const InstructionSet& set) {
  if constexpr (sizeof(T) == 4) {
    return set.f32;
  } else {
    return set.f64;
  }
}

template <class T> const Kernels<T>& chosen() {
  const auto all = available_kernels<T>();
  const char* wish = std::getenv("FATHOM_KERNELS");
  if (!wish || !*wish) return *all.front();
  std::string names;
  for (const Kernels<T>* kernels : all) {
    if (std::string_view(kernels->name) == wish) return *kernels;
    names += text(names.empty() ? "" : ", ", kernels->name);
  }
  throw InvalidArgument(text("FATHOM_KERNELS must be one of ", names, " on this processor, got ", wish));
}

}  // namespace

template <class T> std::vector<const Kernels<T>*> available_kernels() {
  std::vector<const Kernels<T>*> all;
  for (const InstructionSet& set : fastest_first()) {
    if (set.available) all.push_back(of_type<T>(set));
  }
  return all;
}

template <class T> const Kernels<T>& best_kernels() {
  static const Kernels<T>& kernels = chosen<T>();
  return kernels;
}

template std::vector<const Kernels<float>*> available_kernels();
template std::vector<const Kernels<double>*> available_kernels();
template const Kernels<float>& best_kernels();
template const Kernels<double>& best_kernels();

}  // namespace fathom::fused
