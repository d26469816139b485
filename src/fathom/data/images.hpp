/// Image sets on disk as tensors: MNIST, Fashion-MNIST and whatever else comes as idx files, and CIFAR-10.            (E3)
///
///   const Labelled train = read_images("data/fashion-mnist", ImagePart::train);      // inputs (60000, 1, 28, 28) in [0, 1]
///
/// `fathom data fashion-mnist --to data/fashion-mnist` fetches one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "fathom/data/labelled.hpp"
#include "fathom/read/array.hpp"

namespace fathom {

enum class ImagePart { train, test };

/// From a folder with train-images-idx3-ubyte and its three companions (each may end in .gz), or data_batch_1.bin to test_batch.bin.
/// Inputs: float32 (images, channels, height, width) in [0, 1]; labels: int64. `count`: the first ones only.
Labelled read_images(const std::filesystem::path& folder, ImagePart part,
                     std::optional<std::int64_t> count = {});

/// The same elements in the same shape; unsigned integers that torch lacks become the next larger signed ones.
torch::Tensor tensor_of(const Array& array);

}  // namespace fathom
