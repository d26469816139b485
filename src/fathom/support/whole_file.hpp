/// Files read and written whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace fathom {

/// Writes the whole content or leaves what was there: to a file beside it first, flushed to the disk, then renamed.
void write_atomically(const std::filesystem::path& file, std::string_view content);

/// The content of a regular file. Throws Error with one sentence when it cannot be read or is larger than `limit` bytes.
std::string read_whole(const std::filesystem::path& file, std::uintmax_t limit = UINTMAX_MAX);

}  // namespace fathom
