/// A model with its description: what is accepted can be built and described again.
#include "fathom/file/model_file.hpp"

#include "fathom/runtime/model.hpp"
#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  const ModelFile file = parse_model_file(input);
  check(to_json(model_spec_from_json(to_json(file.spec))) == to_json(file.spec), "a description comes back");
  check(parse_model_file(to_bytes(file)).tensors.size() == file.tensors.size(), "a model comes back");
  if (file.spec.field.depth.kind != DepthKind::hyper) runtime::Model{file};
}

}  // namespace fathom::fuzz
