#include "experiments/plane.hpp"

namespace fathom::experiments {

Tensor Plane::grid(torch::ScalarType type) const {
  const Tensor axis = torch::linspace(-half_width, half_width, std::int64_t(points), type);
  const std::vector<Tensor> mesh = torch::meshgrid({axis, axis}, "ij");
  return torch::stack({mesh[1].flatten(), mesh[0].flatten()}, 1);
}

double share(const Tensor& truths) { return truths.to(torch::kFloat64).mean().item<double>(); }

std::vector<bool> mask(const Tensor& truths) {
  const Tensor flat = truths.to(torch::kBool).contiguous().flatten();
  const bool* first = flat.data_ptr<bool>();
  return std::vector<bool>(first, first + flat.numel());
}

std::vector<double> values(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(torch::kFloat64).contiguous().flatten();
  const double* first = flat.data_ptr<double>();
  return std::vector<double>(first, first + flat.numel());
}

double number(const Tensor& scalar) { return scalar.detach().item<double>(); }

}  // namespace fathom::experiments
