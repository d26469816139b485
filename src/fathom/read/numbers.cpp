#include "fathom/read/numbers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string>

namespace fathom {

namespace {

bool equal_in_any_case(std::string_view a, std::string_view lower) {
  const auto same = [](char x, char y) { return (x >= 'A' && x <= 'Z' ? char(x - 'A' + 'a') : x) == y; };
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), same);
}

}  // namespace

std::string_view trimmed(std::string_view field) {
  constexpr std::string_view blank = " \t";
  const std::size_t first = field.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return field.substr(first, field.find_last_not_of(blank) - first + 1);
}

std::optional<double> parsed_number(std::string_view field) {
  field = trimmed(field);
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (end != field.data() + field.size() || field.empty()) return {};
  // from_chars does not say whether the number was too large or too small; strtod gives infinity or 0.
  if (error == std::errc::result_out_of_range) return std::strtod(std::string(field).c_str(), nullptr);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

bool is_missing(std::string_view field) {
  field = trimmed(field);
  if (field.empty()) return true;
  constexpr std::array<std::string_view, 6> words = {"na", "n/a", "nan", "null", "none", "?"};
  return field.size() <= 4 &&
         std::any_of(words.begin(), words.end(), [&](auto word) { return equal_in_any_case(field, word); });
}

}  // namespace fathom
