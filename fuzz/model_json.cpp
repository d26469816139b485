/// The description of a model alone.
#include "fathom/file/model_spec.hpp"
#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  const ModelSpec spec = model_spec_from_json(input);
  check(to_json(model_spec_from_json(to_json(spec))) == to_json(spec), "a description comes back");
  check(!layout(spec).empty(), "a model has tensors");
}

}  // namespace fathom::fuzz
