/// NumPy's .npz files: a zip archive of .npy files, plain (savez) or compressed (savez_compressed).
///
///   const auto arrays = read_npz("data.npz");
///   arrays.at("x");
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "fathom/read/array.hpp"

namespace fathom {

/// All arrays by name; the limit holds for them together.
std::map<std::string, Array> read_npz(const std::filesystem::path& path, const ReadLimits& limits = {});
std::map<std::string, Array> read_npz(std::string_view archive, std::string_view source,
                                      const ReadLimits& limits = {});

}  // namespace fathom
