/// Arrays of NumPy.
#include "fathom/read/npy.hpp"
#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  MemorySource source("input", input);
  const Array array = read_npy(source, {.bytes = 1 << 20});
  check(array.bytes.size() == checked_bytes(array.shape, array.type, {}, "input"), "the shape has its bytes");
  check(numbers(array).size() == array.elements(), "an element is a number");
}

}  // namespace fathom::fuzz
