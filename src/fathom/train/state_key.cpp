#include "fathom/train/state_key.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <locale>

namespace fathom {

std::string state_key(const torch::Tensor& parameter) {
  const auto* address = parameter.unsafeGetTensorImpl();
  // A stream writes as the locale of the program wants it.
  if (std::locale() != std::locale::classic()) return c10::guts::to_string(address);
  std::array<char, 2 + 2 * sizeof(address)> digits = {'0', 'x'};
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto end = std::to_chars(digits.data() + 2, digits.data() + digits.size(), number, 16).ptr;
  return {digits.data(), end};
}

}  // namespace fathom
