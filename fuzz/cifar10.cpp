/// CIFAR-10 records.
#include "fathom/read/cifar10.hpp"
#include "support/harness.hpp"

namespace fathom::fuzz {

void read_input(std::string_view input) {
  MemorySource source("input", input);
  const CifarBatch batch = read_cifar10(source, {.bytes = 1 << 20});
  check(batch.images.bytes.size() == cifar_pixels * batch.labels.bytes.size(), "a label has its image");
  for (const double label : numbers(batch.labels)) check(label < 10, "labels go from 0 to 9");
}

}  // namespace fathom::fuzz
