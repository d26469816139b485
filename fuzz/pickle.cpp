/// The pickle of a state_dict alone: deep inside an archive with checksums no mutation would reach it.
#include "fathom/file/pickle.hpp"

#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  for (const auto& [name, tensor] : unpickled_state_dict(input))
    check(tensor.shape.size() <= input.size() && tensor.storage.key.size() <= input.size(),
          "no more than was given");
}

}  // namespace fathom::fuzz
