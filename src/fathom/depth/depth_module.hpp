/// Layers that know the depth at which they are evaluated, and chains of them.
///
///   DepthSequential net(DepthLinear(2, 32, fourier()), torch::nn::Tanh(), torch::nn::Linear(32, 2));
///   net->forward(s, h);
///
/// Depth is an argument, not a state of the module. It is a float64 tensor: a scalar, or one value a sample (batch) where
/// samples run to depths of their own. The feature axis is axis 1: of vectors, image channels and node features alike.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

namespace fathom {

using torch::Tensor;

class DepthModule : public torch::nn::Module {
 public:
  virtual Tensor forward(const Tensor& s, const Tensor& h) = 0;
  /// Depths at which the layer's parameters jump.
  virtual std::vector<double> break_points() const { return {}; }
};

/// The type of a module without namespace and `Impl`: "Linear".
std::string short_name(const torch::nn::Module& module);

/// Throws unless depth is a scalar or has one value for each sample of `like`.
void check_depth(const Tensor& s, const Tensor& like);
/// Depth with trailing axes of size 1, so that it broadcasts against `like`: () or (batch, 1, ...).
Tensor depth_like(const Tensor& s, const Tensor& like);

class DepthSequentialImpl : public DepthModule {
 public:
  /// Takes layers with forward(s, h) and any torch module with forward(h), in any order; a Sequential as its layers.
  template <class... Layers> explicit DepthSequentialImpl(Layers&&... layers) {
    (push_back(std::forward<Layers>(layers)), ...);
  }

  template <class Layer> void push_back(torch::nn::ModuleHolder<Layer> layer) {
    if constexpr (std::is_base_of_v<DepthModule, Layer>) {
      add({.varying = layer.ptr(), .plain = {}});
    } else if constexpr (std::is_same_v<torch::nn::SequentialImpl, Layer>) {
      // Layer by layer: torch cannot hold a Sequential as one of many modules.
      for (const torch::nn::AnyModule& part : *layer) add({.varying = nullptr, .plain = part});
    } else {
      add({.varying = nullptr, .plain = torch::nn::AnyModule(std::move(layer))});
    }
  }
  void push_back(std::shared_ptr<DepthModule> layer) { add({.varying = std::move(layer), .plain = {}}); }

  Tensor forward(const Tensor& s, const Tensor& h) override;
  std::vector<double> break_points() const override;
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

  /// The layers, for code that looks inside: each a DepthModule or a plain torch module.
  std::vector<std::shared_ptr<torch::nn::Module>> layers() const;

 private:
  struct Entry {
    std::shared_ptr<DepthModule> varying;  // one of the two
    torch::nn::AnyModule plain;
  };
  void add(Entry entry);

  std::vector<Entry> entries_;
};

class DepthSequential : public torch::nn::ModuleHolder<DepthSequentialImpl> {
 public:
  using torch::nn::ModuleHolder<DepthSequentialImpl>::ModuleHolder;
  DepthSequential() : ModuleHolder(std::make_shared<DepthSequentialImpl>()) {}
  // A holder is a pointer: a constant one may point to what is not. A lambda has only constant copies, unless it is `mutable`.
  DepthSequentialImpl* operator->() const { return ptr().get(); }
  DepthSequentialImpl& operator*() const { return *ptr(); }
};

}  // namespace fathom
