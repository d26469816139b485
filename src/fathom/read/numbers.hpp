/// Numbers as people write them in files.
#pragma once

#include <optional>
#include <string_view>

namespace fathom {

/// Without the blanks and tabs around it.
std::string_view trimmed(std::string_view field);

/// The number that a field spells, blanks around it allowed; nothing for any other text. NaN and infinity are numbers here.
std::optional<double> parsed_number(std::string_view field);

/// Nothing at all, NA, N/A, NaN, null, None or ?, in upper or lower case.
bool is_missing(std::string_view field);

}  // namespace fathom
