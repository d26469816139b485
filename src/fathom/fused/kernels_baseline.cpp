// For any processor: 16-byte vectors, SSE2 on x86-64, NEON on ARM, plain code elsewhere.
#define FATHOM_VECTOR_BYTES 16

#include "fathom/fused/kernels_sets.hpp"

namespace fathom::fused::baseline {
namespace {
#include "fathom/fused/kernels.inl"
}  // namespace

constinit const Kernels<float> kernels_f32 = table<float>("baseline");
constinit const Kernels<double> kernels_f64 = table<double>("baseline");
}  // namespace fathom::fused::baseline
