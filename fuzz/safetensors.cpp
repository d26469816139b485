/// Tensors by name: what is accepted is written again as it was read.
#include "fathom/file/safetensors.hpp"

#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  const TensorFile file = parse_safetensors(input);
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : file.tensors) bytes += tensor.bytes.size();
  check(bytes <= input.size(), "the tensors are in the file");
  const TensorFile again = parse_safetensors(to_bytes(file));
  check(again.tensors.size() == file.tensors.size() && again.metadata == file.metadata, "a file comes back");
  for (const auto& [name, tensor] : file.tensors)
    check(again.tensors.at(name).bytes == tensor.bytes && again.tensors.at(name).shape == tensor.shape,
          "a tensor comes back");
}

}  // namespace fathom::fuzz
