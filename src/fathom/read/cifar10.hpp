/// The binary files of CIFAR-10: records of a label (0 to 9) and 3 x 32 x 32 bytes, red, green, blue, each row by row.
///
///   const CifarBatch batch = read_cifar10("data_batch_1.bin");
#pragma once

#include <filesystem>
#include <span>

#include "fathom/read/array.hpp"

namespace fathom {

inline constexpr std::size_t cifar_pixels = 3 * 32 * 32;

struct CifarBatch {
  Array images;  ///< uint8 (n, 3, 32, 32)
  Array labels;  ///< uint8 (n)
};

CifarBatch read_cifar10(const std::filesystem::path& path, const ReadLimits& limits = {});
CifarBatch read_cifar10(ByteSource& source, const ReadLimits& limits = {});

/// The binary file of images that are the rows of one picture, (n, 32 * 32, 3), as some packages ship them.
std::string cifar10_file(const Array& picture, std::span<const int> labels);

}  // namespace fathom
