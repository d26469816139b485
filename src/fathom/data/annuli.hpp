/// Two concentric rings in the plane, the paper's test of what a flow without crossings cannot do.           (E5, E6)
///
///   const Labelled rings = concentric_annuli({.samples = 1024, .seed = 7});
#pragma once

#include <cstdint>

#include "fathom/data/labelled.hpp"

namespace fathom {

struct AnnuliOptions {
  std::int64_t samples = 1024;
  double inner_radius = 1;
  double outer_radius = 2;
  double noise = 0.1;  ///< deviation of the Gaussian noise on both coordinates
  std::uint64_t seed = 0;
};

/// Half of the samples (the larger half if odd) lie on the inner ring, label -1; the others on the outer one, label 1.
Labelled concentric_annuli(const AnnuliOptions& options = {});

}  // namespace fathom
