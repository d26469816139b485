/// Equation (1), literally: z'(s) = f_theta(s)(s, x, z(s)), as torch modules that compose.
///
///   Field vanilla    = autonomous(net);
///   Field galerkin   = depth_varying(DepthSequential(DepthLinear(2, 32, fourier()), torch::nn::Tanh(), ...));
///   Field controlled = controlled(net);                           // f(s, z, x) = net(s, [z, x])
///   Field second     = higher_order(controlled(net), 2);          // z_q' = z_p, z_p' = f
///
/// A field knows nothing of solvers. The feature axis is axis 1.
///
/// `rate` must be a pure function: the same s, x and z give the same rate, and nothing that it is given is changed. Gradients
/// evaluate it again at the states of the solve. What is random (dropout in training mode) must be drawn before the solve.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fathom/depth/depth_layers.hpp"
#include "fathom/depth/depth_module.hpp"

namespace fathom {

class FieldModule : public torch::nn::Module {
 public:
  /// f(s, x, z). Depth is a float64 scalar or one value a sample; x is undefined unless is_controlled().
  virtual Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) = 0;

  virtual std::vector<double> break_points() const { return {}; }
  /// Does the field read x? Only then it gets it, and only then x has a gradient.
  virtual bool is_controlled() const { return false; }
  /// Tensors besides the module's own parameters that may want a gradient.
  virtual std::vector<Tensor> extra_parameters() const { return {}; }

  std::shared_ptr<FieldModule> clone_field(
      const torch::optional<torch::Device>& device = torch::nullopt) const {
    return std::dynamic_pointer_cast<FieldModule>(clone(device));
  }
  /// Throws: only a subclass can make another one of itself. It needs one line:
  ///   return filled(std::make_shared<Mine>(what, it, is, made, of), device);
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

 protected:
  /// `fresh`, which is made like this field, with the numbers of this field's parameters and buffers.
  std::shared_ptr<FieldModule> filled(std::shared_ptr<FieldModule> fresh,
                                      const torch::optional<torch::Device>& device) const;
};

using Field = std::shared_ptr<FieldModule>;

/// What a field has to learn: its own parameters, those of its layers, and the extra ones.
std::vector<Tensor> parameters_of(const FieldModule& field);

/// Any network that can give a rate: a DepthSequential, one of its layers, or a plain torch module or Sequential.
class Net {
 public:
  template <class Module>
  Net(torch::nn::ModuleHolder<Module> module) {  // NOLINT: a network is one whatever its type
    if constexpr (std::is_base_of_v<DepthModule, Module>) {
      module_ = module.ptr();
    } else {
      auto chain = std::make_shared<DepthSequentialImpl>();
      chain->push_back(std::move(module));
      module_ = chain;
    }
  }
  Net(std::shared_ptr<DepthModule> module) : module_(std::move(module)) {}  // NOLINT
  const std::shared_ptr<DepthModule>& module() const { return module_; }

 private:
  std::shared_ptr<DepthModule> module_;
};

/// f = net(z)                                                                                     (M1)
Field autonomous(const Net& net);
/// f = net(s, z), whose layers may vary with depth or have it concatenated                        (M2, M3, M4)
Field depth_varying(const Net& net);

enum class ControlEntry {
  concatenation,  ///< net(s, [z, u])
  addition        ///< net(s, z + u)
};

struct ControlOptions {
  ControlEntry entry = ControlEntry::concatenation;
  /// u = embedding(x); without it u = x.
  std::shared_ptr<DepthModule> embedding = {};
};
/// f = net(s, z, u) with u = x or an embedding g(x)                                               (M8)
Field controlled(const Net& net, const ControlOptions& options = {});

/// f = net(s, z, u(s)) with a signal u that varies with depth; `parameters` of it get gradients.
struct Signal {
  std::function<Tensor(const Tensor& s)> value;
  std::vector<Tensor> parameters = {};
  std::vector<double> break_points = {};
};
Field driven(const Net& net, const Signal& signal, ControlEntry entry = ControlEntry::concatenation);

/// z = (z_1, ..., z_n) in equal blocks of features: z_i' = z_{i+1}, z_n' = f(s, x, z).             (M7, M7b)
Field higher_order(const Field& field, std::int64_t order);
/// z = (z_q, z_p, z_bar): only the first `states` features are of the given order, in equal blocks; f gives the rates of
/// the last of these blocks and of z_bar.                                                        (M7c)
struct SelectiveOrder {
  std::int64_t states = 0;
  std::int64_t order = 2;
};
Field higher_order(const Field& field, const SelectiveOrder& selective);

/// f = -theta (z + x) with one number theta to learn                                              (M8b, G7)
Field linear_reflection(double theta = 1);

/// z = (z_x, z_a): z_x' = 0, z_a' = net(z_x), so that z_a(1) = net(x) when it starts at 0.         (M13)
Field approximation(const Net& net, std::int64_t inputs);

/// Any module that an own field calls.
class OwnModule {
 public:
  template <class Module>
  OwnModule(const torch::nn::ModuleHolder<Module>& module) : module_(module.ptr()) {}   // NOLINT: any will do
  OwnModule(std::shared_ptr<torch::nn::Module> module) : module_(std::move(module)) {}  // NOLINT
  const std::shared_ptr<torch::nn::Module>& ptr() const { return module_; }

 private:
  std::shared_ptr<torch::nn::Module> module_;
};

/// A user's own function, with all that it learns: `modules` that it calls, and other tensors that want a gradient. Both become the
/// field's, so that optimisers, fit(), save_module() and to() find them.
///   own_field({.rate = [net](const Tensor& s, const Tensor&, const Tensor& z) { return net->forward(s, z) - z; }, .modules = {net}});
/// A lambda that calls a module of torch's own (torch::nn::Linear, ...) must be `mutable`.
struct OwnField {
  std::function<Tensor(const Tensor& s, const Tensor& x, const Tensor& z)> rate;
  std::vector<Tensor> parameters = {};
  std::vector<OwnModule> modules = {};
  std::vector<double> break_points = {};
  bool controlled = false;  ///< does `rate` read x?
};
Field own_field(const OwnField& field);

}  // namespace fathom
