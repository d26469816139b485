/// Grids of points and small readings of tensors that the experiments share.
#pragma once

#include <torch/torch.h>

#include <vector>

namespace fathom::experiments {

using torch::Tensor;

/// A square window around the origin with an equal number of points on both axes.
struct Plane {
  double half_width = 2.5;
  std::size_t points = 101;

  /// (points^2, 2): row by row from below, x fastest.
  Tensor grid(torch::ScalarType type = torch::kFloat32) const;
};

template <class Compute> auto without_graph(const Compute& compute) {
  const torch::NoGradGuard no_graph;
  return compute();
}

/// The share of true entries.
double share(const Tensor& truths);
std::vector<bool> mask(const Tensor& truths);
std::vector<double> values(const Tensor& tensor);
double number(const Tensor& scalar);

}  // namespace fathom::experiments
