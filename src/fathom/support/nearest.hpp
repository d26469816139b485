/// The valid name that a mistyped one is closest to: "dopri" -> "dopri5".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

/// Number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `given`; none when even the nearest shares less than half of it.
std::optional<std::string> nearest(std::string_view given, const std::vector<std::string>& candidates);

/// "; did you mean `dopri5`?" or nothing: the tail of an error message.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& candidates);

}  // namespace fathom
