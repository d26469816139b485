// Compiled with -mavx2 -mfma, x86-64 only.
#define FATHOM_VECTOR_BYTES 32

#include "fathom/fused/kernels_sets.hpp"

namespace fathom::fused::avx2 {
namespace {
#include "fathom/fused/kernels.inl"
}  // namespace

constinit const Kernels<float> kernels_f32 = table<float>("avx2");
constinit const Kernels<double> kernels_f64 = table<double>("avx2");
}  // namespace fathom::fused::avx2
