/// PNG images.
#include "fathom/read/png.hpp"
#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  MemorySource source("input", input);
  const Array image = read_png(source, {.bytes = 1 << 20});
  check(image.shape.size() == 3, "an image has height, width and channels");
  check(image.bytes.size() == checked_bytes(image.shape, image.type, {}, "input"), "the shape has its bytes");
}

}  // namespace fathom::fuzz
