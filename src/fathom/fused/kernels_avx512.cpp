// Compiled with -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma, x86-64 only.
#define FATHOM_VECTOR_BYTES 64

#include "fathom/fused/kernels_sets.hpp"

namespace fathom::fused::avx512 {
namespace {
#include "fathom/fused/kernels.inl"
}  // namespace

constinit const Kernels<float> kernels_f32 = table<float>("avx512");
constinit const Kernels<double> kernels_f64 = table<double>("avx512");
}  // namespace fathom::fused::avx512
