/// Where z(0) comes from: more features for the flow to move in, on axis 1 of vectors, images and node features alike. They may
/// stand inside a field as well, among the layers of its network.
///   ZeroAugmentation(n)          z(0) = [x, 0]                                                       (M5)
///   torch::nn::Linear, Conv2d    z(0) = h_x(x), the input layer: any torch module                   (M6)
///   PartialAugmentation(xi)      z(0) = [x, xi(x)]                                                   (M6b)
/// Second order: positions followed by velocities, which start at rest with ZeroAugmentation(n), or learned with
/// PartialAugmentation(velocity layer).                                                              (M7)
#pragma once

#include <cstdint>

#include "fathom/field/any_layer.hpp"

namespace fathom {

enum class Side { front, end };

class ZeroAugmentationImpl : public torch::nn::Module {
 public:
  explicit ZeroAugmentationImpl(std::int64_t features, Side side = Side::end);
  Tensor forward(const Tensor& x);
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

  std::int64_t features() const { return features_; }
  Side side() const { return side_; }

 private:
  std::int64_t features_;
  Side side_;
};
TORCH_MODULE(ZeroAugmentation);

class PartialAugmentationImpl : public torch::nn::Module {
 public:
  explicit PartialAugmentationImpl(AnyLayer layer, Side side = Side::end);
  Tensor forward(const Tensor& x);
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

  const AnyLayer& layer() const { return layer_; }
  Side side() const { return side_; }

 private:
  AnyLayer layer_;
  Side side_;
};
TORCH_MODULE(PartialAugmentation);

}  // namespace fathom
