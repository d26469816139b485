/// The files of MNIST, bare and within gzip.
#include "fathom/read/idx.hpp"
#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  MemorySource source("input", input);
  const bool packed = input.starts_with("\x1f\x8b");
  const Array array =
      packed ? read_idx(*inflated(std::make_unique<MemorySource>("input", input), Wrapping::gzip),
                        {.bytes = 1 << 20})
             : read_idx(source, {.bytes = 1 << 20});
  check(array.bytes.size() == checked_bytes(array.shape, array.type, {}, "input"), "the shape has its bytes");
  check(numbers(array).size() == array.elements(), "an element is a number");
}

}  // namespace fathom::fuzz
