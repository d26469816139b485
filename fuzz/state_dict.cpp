/// Torch's state_dict: a pickle and raw numbers in a zip archive.
#include "fathom/file/state_dict.hpp"

#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  TensorFile file{.tensors = parse_state_dict(input)};
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : file.tensors) bytes += tensor.bytes.size();
  check(bytes <= 8 * input.size(), "no more numbers than the file can mean");
}

}  // namespace fathom::fuzz
