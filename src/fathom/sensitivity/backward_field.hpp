/// The field of a way back in depth, for the continuous adjoints:
///   y' = f,   a' = -a df/dy,   a_theta' = -a df/dtheta
/// Its flat state is [y, a, a_theta ...], without y where y is read from the forward solve's interpolant.
#pragma once

#include <vector>

#include "fathom/sensitivity/pullback.hpp"
#include "fathom/tensor/interpolant.hpp"

namespace fathom {

class BackwardField {
 public:
  /// `interpolant` may be null: then y is integrated backwards along with its adjoint.
  BackwardField(const ForwardPass& pass, std::vector<bool> wanted_parameters, const Interpolant* interpolant,
                bool parameters_in_error_norm);
  BackwardField(const BackwardField&) = delete;  // flat().rate refers to this

  const FlatField& flat() const { return flat_; }
  Tensor join(const Tensor& y, const Tensor& a, const std::vector<Tensor>& parameters) const;
  Tensor adjoint_of(const Tensor& flat) const { return flat.narrow(-1, interpolant_ ? 0 : size_, size_); }
  std::vector<Tensor> parameters_of(const Tensor& flat) const;

 private:
  Tensor rate(double depth, const Tensor& flat) const;

  const ForwardPass& pass_;
  std::vector<bool> wanted_;
  std::int64_t size_;  // of y, and of a
  const Interpolant* interpolant_;
  FlatField flat_;
};

}  // namespace fathom
