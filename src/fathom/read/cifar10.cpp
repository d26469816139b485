#include "fathom/read/cifar10.hpp"

#include <array>

#include "fathom/support/error.hpp"

namespace fathom {

std::string cifar10_file(const Array& picture, std::span<const int> labels) {
  constexpr std::size_t colours = 3, pixels = cifar_pixels / colours;
  const std::vector<std::int64_t> expected = {std::int64_t(labels.size()), std::int64_t(pixels),
                                              std::int64_t(colours)};
  if (picture.shape != expected)
    throw Error(text("a picture of ", labels.size(), " rows of 1024 RGB pixels is needed, one row a label"));
  std::string file;
  file.reserve(labels.size() * (1 + cifar_pixels));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    file += static_cast<char>(labels[row]);
    for (std::size_t colour = 0; colour < colours; ++colour) {
      for (std::size_t pixel = 0; pixel < pixels; ++pixel)
        file += picture.bytes[(row * pixels + pixel) * colours + colour];
    }
  }
  return file;
}

CifarBatch read_cifar10(ByteSource& source, const ReadLimits& limits) {
  constexpr int classes = 10;
  CifarBatch batch{.images = {.type = ElementType::uint8}, .labels = {.type = ElementType::uint8}};
  std::array<char, cifar_pixels> pixels;
  for (char byte = 0; source.read(std::span(&byte, 1)) == 1;) {
    const std::size_t record = batch.labels.bytes.size() + 1;
    const int label = static_cast<unsigned char>(byte);
    if (label >= classes) {
      throw Error(text("`", source.name(), "` is not a CIFAR-10 file: record ", record, " has the label ",
                       label, ", labels go from 0 to 9"));
    }
    if (record * pixels.size() > limits.bytes) {
      throw Error(text("`", source.name(), "` is beyond the limit of ", limits.bytes >> 20,
                       " MiB; raise the limit if that is meant"));
    }
    read_fully(source, pixels, text("record ", record));
    batch.labels.bytes.push_back(byte);
    batch.images.bytes.append(pixels.data(), pixels.size());
  }
  const auto count = std::int64_t(batch.labels.bytes.size());
  if (count == 0) throw Error(text("`", source.name(), "` is empty; CIFAR-10 records are needed"));
  batch.images.shape = {count, 3, 32, 32};
  batch.labels.shape = {count};
  return batch;
}

CifarBatch read_cifar10(const std::filesystem::path& path, const ReadLimits& limits) {
  return read_cifar10(*open_source(path), limits);
}

}  // namespace fathom
