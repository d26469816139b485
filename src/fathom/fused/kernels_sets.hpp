/// The kernels of each instruction set, as kernels_<set>.cpp gives them. The last two exist on x86-64 only.
#pragma once

#include <utility>

#include "fathom/fused/kernels.hpp"

namespace fathom::fused {

namespace baseline {
extern const Kernels<float> kernels_f32;
extern const Kernels<double> kernels_f64;
}  // namespace baseline
namespace avx2 {
extern const Kernels<float> kernels_f32;
extern const Kernels<double> kernels_f64;
}  // namespace avx2
namespace avx512 {
extern const Kernels<float> kernels_f32;
extern const Kernels<double> kernels_f64;
}  // namespace avx512

}  // namespace fathom::fused
