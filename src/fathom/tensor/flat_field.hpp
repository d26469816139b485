/// A field on one flat vector y, made of named parts: the state, its running loss, adjoints. Engines and sensitivities see
/// only this form, so that whatever is integrated along with z needs no special case.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fathom/tensor/vector_field.hpp"

namespace fathom {

struct Part {
  std::string name;
  std::vector<std::int64_t> shape;
  bool in_error_norm = true;

  std::int64_t size() const;
  /// Entries of the first axis; a part without axes is one sample.
  std::int64_t samples() const { return shape.empty() ? 1 : shape.front(); }
};

struct FlatField {
  std::function<Tensor(const Tensor& s, const Tensor& y)> rate;  ///< y: (size)
  std::vector<Part> parts = {};
  std::vector<Tensor> parameters = {};
  std::vector<double> break_points = {};

  std::int64_t size() const;
};

/// `field` on states like `z0`: y = z, followed by the running loss if there is one. Shapes and types are checked at
/// every evaluation.
FlatField flatten(const VectorField& field, const Tensor& z0);

/// The flat vector made of `values`, and one part of it with its shape; leading axes before the flat one are kept.
Tensor pack(const std::vector<Tensor>& values);
Tensor unpack(const Tensor& flat, const std::vector<Part>& parts, std::size_t place);

/// "z[3, 1] = nan" for the first value of `flat` that is not finite; empty when all are.
std::string first_non_finite(const Tensor& flat, const std::vector<Part>& parts);

}  // namespace fathom
