/// Equation (1), literally: z'(s) = f_theta(s)(s, x, z(s)), as torch modules that compose.
///
///   Field vanilla    = autonomous(net);
///   Field galerkin   = depth_varying(DepthSequential(DepthLinear(2, 32, fourier()), torch::nn::Tanh(), ...));
///   Field controlled = controlled(net);                           // f(s, z, x) = net(s, [z, x])
///   Field second     = higher_order(controlled(net), 2);          // z_q' = z_p, z_p' = f
///
/// A field knows nothing of solvers. The feature axis is axis 1.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fathom/depth/depth_layers.hpp"
#include "fathom/depth/depth_module.hpp"

namespace fathom {

class FieldModule : public torch::nn::Module {
 public:
  /// f(s, x, z). Depth is a float64 scalar or one value a sample; x may be undefined where it is not used.
  virtual Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) = 0;

  virtual std::vector<double> break_points() const { return {}; }
  /// Does the field read x?
  virtual bool is_controlled() const { return false; }
  /// Tensors besides the module's own parameters that may want a gradient.
  virtual std::vector<Tensor> extra_parameters() const { return {}; }

  std::shared_ptr<FieldModule> clone_field(
      const torch::optional<torch::Device>& device = torch::nullopt) const {
    return std::dynamic_pointer_cast<FieldModule>(clone(device));
  }
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

/// A user's own function. Tensors it depends on that want a gradient are listed.
struct OwnField {
  std::function<Tensor(const Tensor& s, const Tensor& x, const Tensor& z)> rate;
  std::vector<Tensor> parameters = {};
  std::vector<double> break_points = {};
  bool controlled = false;
};
Field own_field(const OwnField& field);

}  // namespace fathom
