/// The idx files of MNIST and its relatives: two zero bytes, type, number of sides, sides, elements; all big-endian.
///
///   const Array labels = read_idx("train-labels-idx1-ubyte.gz");
#pragma once

#include <filesystem>

#include "fathom/read/array.hpp"

namespace fathom {

Array read_idx(const std::filesystem::path& path, const ReadLimits& limits = {});
Array read_idx(ByteSource& source, const ReadLimits& limits = {});

}  // namespace fathom
