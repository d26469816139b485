/// NumPy's .npy files: a header in Python's notation, then the elements. (NEP 1, versions 1 to 3)
///
///   const Array x = read_npy("x.npy");
#pragma once

#include <filesystem>

#include "fathom/read/array.hpp"

namespace fathom {

/// Booleans, integers and floats of 32 and 64 bits, in either byte order and either memory order.
Array read_npy(const std::filesystem::path& path, const ReadLimits& limits = {});
Array read_npy(ByteSource& source, const ReadLimits& limits = {});

}  // namespace fathom
