/// PNG images of 8 bits a channel, grey or RGB, not interlaced: what data sets are shipped in. (ISO 15948)
///
///   const Array image = read_png("data_batch_1.png");      // uint8 (height, width, channels)
#pragma once

#include <filesystem>

#include "fathom/read/array.hpp"

namespace fathom {

Array read_png(const std::filesystem::path& path, const ReadLimits& limits = {});
Array read_png(ByteSource& source, const ReadLimits& limits = {});

}  // namespace fathom
