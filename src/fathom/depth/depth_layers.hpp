/// Layers whose parameters or inputs vary with depth.
///   DepthConcat      [h, s]                                                               (M2)
///   DepthLinear      W(s) h + b(s),      W(s) = sum_j W_j psi_j(s)                        (M3, M4)
///   DepthConv2d      the same for a convolution
///   HyperLinear      W(s) h + b(s),      (W, b)(s) = net(s)                               (M4b)
/// A fresh layer equals the constant layer of its shape at every depth (as nearly as its basis can).
#pragma once

#include <cstdint>

#include "fathom/depth/basis.hpp"
#include "fathom/depth/depth_module.hpp"

namespace fathom {

/// psi(s) with its slope in the graph: (size) for a scalar depth, (batch, size) for one a sample; in the given type.
Tensor evaluate(const DepthBasis& basis, const Tensor& s, const at::TensorOptions& options);

/// theta(s): what a layer's parameters are at one depth.
struct Theta {
  Tensor weight;
  Tensor bias;  ///< undefined without bias
};

/// Appends depth to the features: one more column, or one more channel filled with it.
class DepthConcatImpl : public DepthModule {
 public:
  Tensor forward(const Tensor& s, const Tensor& h) override;
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;
};
TORCH_MODULE(DepthConcat);

/// What DepthLinear and DepthConv2d share: coefficients for each basis function and their sum at a depth.
class GalerkinLayer : public DepthModule {
 public:
  std::vector<double> break_points() const override { return basis_.break_points; }
  const DepthBasis& basis() const { return basis_; }
  /// The parameters at a depth.
  Theta theta(double s) const;

  Tensor weight;  ///< (basis size, shape of the constant layer's weight)
  Tensor bias;    ///< (basis size, outputs), undefined without bias

 protected:
  explicit GalerkinLayer(DepthBasis basis);
  /// Registers coefficients that make theta(s) the given constant.
  void register_like(const Tensor& constant_weight, const Tensor& constant_bias);
  /// The layer's linear map with a weight and bias of the constant shape, or with several stacked along the outputs.
  virtual Tensor apply(const Tensor& h, const Tensor& weight, const Tensor& bias) const = 0;
  Tensor evaluate_layer(const Tensor& s, const Tensor& h) const;

  DepthBasis basis_;
};

class DepthLinearImpl : public GalerkinLayer {
 public:
  DepthLinearImpl(std::int64_t inputs, std::int64_t outputs, DepthBasis basis, bool with_bias = true);
  Tensor forward(const Tensor& s, const Tensor& h) override;
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;
  const std::int64_t inputs, outputs;

 protected:
  Tensor apply(const Tensor& h, const Tensor& weight, const Tensor& bias) const override;
};
TORCH_MODULE(DepthLinear);

struct DepthConv2dOptions {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  bool bias = true;
};

class DepthConv2dImpl : public GalerkinLayer {
 public:
  DepthConv2dImpl(std::int64_t inputs, std::int64_t outputs, DepthBasis basis,
                  DepthConv2dOptions options = {});
  Tensor forward(const Tensor& s, const Tensor& h) override;
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;
  const std::int64_t inputs, outputs;

 protected:
  Tensor apply(const Tensor& h, const Tensor& weight, const Tensor& bias) const override;

 private:
  DepthConv2dOptions options_;
};
TORCH_MODULE(DepthConv2d);

/// theta(s) is the output of a small network of depth, 1 -> hidden tanh -> (inputs + 1) outputs.
class HyperLinearImpl : public DepthModule {
 public:
  HyperLinearImpl(std::int64_t inputs, std::int64_t outputs, std::int64_t hidden = 8);
  Tensor forward(const Tensor& s, const Tensor& h) override;
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;
  Theta theta(double s);
  const std::int64_t inputs, outputs;

 private:
  Tensor parameters_at(const Tensor& s);  // (..., outputs * (inputs + 1))

  std::int64_t hidden_;
  torch::nn::Linear first_, second_;
};
TORCH_MODULE(HyperLinear);

}  // namespace fathom
