/// Archives of arrays, stored and deflated.
#include "fathom/read/npz.hpp"
#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  for (const auto& [name, array] : read_npz(input, "input", {.bytes = 1 << 20}))
    check(numbers(array).size() == array.elements(), "an element is a number");
}

}  // namespace fathom::fuzz
