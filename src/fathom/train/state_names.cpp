#include "fathom/train/state_names.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <locale>

namespace fathom {

StateNames::StateNames() : has_plain_locale_(std::locale() == std::locale::classic()) {}

std::string StateNames::of(const torch::Tensor& parameter) const {
  const auto* address = parameter.unsafeGetTensorImpl();
  if (!has_plain_locale_) return c10::guts::to_string(address);
  std::array<char, 2 + 2 * sizeof(address)> digits = {'0', 'x'};
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto end = std::to_chars(digits.data() + 2, digits.data() + digits.size(), number, 16).ptr;
  return {digits.data(), end};
}

}  // namespace fathom
