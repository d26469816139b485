/// l(s, x, z, f(s, x, z)), one value a sample: integrated over depth along with z.
///
///   NeuralOdeOptions{.running_losses = {kinetic_energy(), tracking(beta)}}
///   NeuralOdeOptions{.running_losses = {[](const Tensor& s, const Tensor& x, const Tensor& z, const Tensor& rate) { ... }}}
#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include "fathom/depth/basis.hpp"
#include "fathom/depth/depth_module.hpp"

namespace fathom {

class RunningLoss {
 public:
  using Function =
      std::function<Tensor(const Tensor& s, const Tensor& x, const Tensor& z, const Tensor& rate)>;
  /// What the fused engine can compute by itself.
  enum class Kind { own, path_length, kinetic_energy, tracking };

  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, RunningLoss> && std::constructible_from<Function, F>)
      RunningLoss(F&& function)
      : function_(std::forward<F>(function)) {}  // NOLINT: a function is a loss
  RunningLoss(Function function, Kind kind, DepthBasis target = {})
      : function_(std::move(function)), kind_(kind), target_(std::move(target)) {}

  Tensor operator()(const Tensor& s, const Tensor& x, const Tensor& z, const Tensor& rate) const {
    return function_(s, x, z, rate);
  }
  Kind kind() const { return kind_; }
  const DepthBasis& target() const { return target_; }

 private:
  Function function_;
  Kind kind_ = Kind::own;
  DepthBasis target_ = {};
};

}  // namespace fathom
