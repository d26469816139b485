/// The entry point that libFuzzer calls; see tools/fuzz.
#include <cstddef>
#include <cstdint>

#include "support/harness.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fathom::fuzz::accepts({reinterpret_cast<const char*>(data), size});
  return 0;
}
