#include "fathom/model/inputs.hpp"

namespace fathom {

Tensor add_input(VectorField& field, const Tensor& input, const Sensitivity& sensitivity) {
  if (!input.defined()) return input;
  if (!input.requires_grad()) {
    field.constants.push_back(input);
    return input;
  }
  const bool keeps_graph = std::holds_alternative<Unrolled>(sensitivity);
  const Tensor seen = keeps_graph ? input : input.detach().requires_grad_();
  field.parameters.push_back(seen);
  field.sources.push_back(input);
  return seen;
}

}  // namespace fathom
