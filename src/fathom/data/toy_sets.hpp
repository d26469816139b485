/// Small sets of labelled points whose shape is the difficulty: spirals, moons, blobs and shells.         (E2, E9)
///
///   const Labelled spirals = nested_spirals({.samples = 512, .noise = 0.02, .seed = 7});
///
/// Inputs are float32; labels are class numbers 0, 1, ... (int64), and the classes differ by at most one in size. The same options
/// give the same bits. Annuli with the paper's labels -1 and 1 are in annuli.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "fathom/data/labelled.hpp"

namespace fathom {

/// Arms that wind around each other: class k has points (r cos a, r sin a) with, for t uniform in [0, 1],
///   r = inner_radius + (outer_radius - inner_radius) t,   a = 2 pi (turns t + k / classes)
struct SpiralsOptions {
  std::int64_t samples = 1024;
  std::int64_t classes = 2;
  double turns = 1.5;
  double inner_radius = 0.1;
  double outer_radius = 1;
  double noise = 0.02;  ///< deviation of the Gaussian noise on both coordinates
  std::uint64_t seed = 0;
};
Labelled nested_spirals(const SpiralsOptions& options = {});

/// Two half circles, each reaching into the other: for a uniform in [0, pi],
///   class 0: (cos a, sin a),   class 1: (1 - cos a, 1/2 - sin a)
struct MoonsOptions {
  std::int64_t samples = 1024;
  double noise = 0.1;  ///< deviation of the Gaussian noise on both coordinates
  std::uint64_t seed = 0;
};
Labelled half_moons(const MoonsOptions& options = {});

/// Gaussian blobs whose means are spread evenly over a circle; class k sits at angle 2 pi k / classes.
struct GaussiansOptions {
  std::int64_t samples = 1024;
  std::int64_t classes = 8;
  double radius = 1;
  double deviation = 0.1;  ///< of each blob, in both coordinates
  std::uint64_t seed = 0;
};
Labelled gaussians(const GaussiansOptions& options = {});

/// Rings in any dimension: class k is the sphere of radius radii[k] around the origin, evenly covered.
struct SpheresOptions {
  std::int64_t samples = 1024;
  std::int64_t dimensions = 3;
  std::vector<double> radii = {1, 2};
  double noise = 0.1;  ///< deviation of the Gaussian noise on every coordinate
  std::uint64_t seed = 0;
};
Labelled concentric_spheres(const SpheresOptions& options = {});

}  // namespace fathom
