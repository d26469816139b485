#include "fathom/data/images.hpp"

#include <algorithm>

#include "fathom/read/cifar10.hpp"
#include "fathom/read/idx.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

using torch::Tensor;
using Path = std::filesystem::path;

/// What is there of `name` and `name`.gz.
std::optional<Path> plain_or_packed(const Path& folder, const std::string& name) {
  for (const Path& path : {folder / name, folder / (name + ".gz")})
    if (std::filesystem::exists(path)) return path;
  return {};
}

Labelled checked(const Tensor& images, const Tensor& labels, const Path& folder) {
  if (images.dim() != 4 || labels.dim() != 1 || images.size(0) != labels.size(0)) {
    throw Error(text("the images and labels in `", folder.string(),
                     "` do not belong together: their shapes are ", images.sizes(), " and ", labels.sizes()));
  }
  return {images, labels};
}

Labelled read_idx_pair(const Path& images, const Path& labels, const Path& folder) {
  return checked(tensor_of(read_idx(images)).unsqueeze(1), tensor_of(read_idx(labels)), folder);
}

Labelled read_cifar(const std::vector<std::string>& names, const Path& folder, std::int64_t wanted) {
  std::vector<Tensor> images, labels;
  std::int64_t have = 0;
  for (const std::string& name : names) {
    if (have >= wanted) break;
    const CifarBatch batch = read_cifar10(folder / name);
    images.push_back(tensor_of(batch.images));
    labels.push_back(tensor_of(batch.labels));
    have += labels.back().size(0);
  }
  return checked(torch::cat(images), torch::cat(labels), folder);
}

/// The bytes of the files, all or more than wanted.
Labelled read_bytes(const Path& folder, ImagePart part, std::int64_t wanted) {
  const bool train = part == ImagePart::train;
  const std::string prefix = train ? "train" : "t10k";
  const auto images = plain_or_packed(folder, prefix + "-images-idx3-ubyte");
  const auto labels = plain_or_packed(folder, prefix + "-labels-idx1-ubyte");
  if (images && labels) return read_idx_pair(*images, *labels, folder);
  const std::vector<std::string> batches = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                            "data_batch_4.bin", "data_batch_5.bin"};
  const std::vector<std::string> names = train ? batches : std::vector<std::string>{"test_batch.bin"};
  if (std::filesystem::exists(folder / names.front())) return read_cifar(names, folder, wanted);
  throw Error(text("no images in `", folder.string(), "`: ", prefix, "-images-idx3-ubyte and ", prefix,
                   "-labels-idx1-ubyte or ", names.front(), " are needed; `fathom data fashion-mnist --to ",
                   folder.string(), "` fetches some"));
}

}  // namespace

torch::Tensor tensor_of(const Array& array) {
  const auto copied = [&](torch::ScalarType type) {
    return torch::from_blob(const_cast<char*>(array.bytes.data()), array.shape, type).clone();
  };
  const auto converted = [&](torch::ScalarType type) {
    const std::vector<double> values = numbers(array);
    return torch::tensor(values, torch::kFloat64).to(type).reshape(array.shape);
  };
  switch (array.type) {
    case ElementType::boolean: return copied(torch::kUInt8).to(torch::kBool);
    case ElementType::int8: return copied(torch::kInt8);
    case ElementType::uint8: return copied(torch::kUInt8);
    case ElementType::int16: return copied(torch::kInt16);
    case ElementType::uint16: return converted(torch::kInt32);
    case ElementType::int32: return copied(torch::kInt32);
    case ElementType::uint32: return converted(torch::kInt64);
    case ElementType::int64: return copied(torch::kInt64);
    case ElementType::uint64: {
      const Tensor values = copied(torch::kInt64);
      if ((values < 0).any().item<bool>())
        throw Error("an array has integers of 2^63 and more, which torch lacks");
      return values;
    }
    case ElementType::float32: return copied(torch::kFloat32);
    case ElementType::float64: return copied(torch::kFloat64);
  }
  throw Error("an array has no element type");
}

Labelled read_images(const Path& folder, ImagePart part, std::optional<std::int64_t> count) {
  require(!count || *count > 0, "the number of images must be positive, got ", count.value_or(0));
  const Labelled all = read_bytes(folder, part, count.value_or(INT64_MAX));
  const std::int64_t used = std::min(all.labels.size(0), count.value_or(all.labels.size(0)));
  return {all.inputs.narrow(0, 0, used).to(torch::kFloat32) / 255,
          all.labels.narrow(0, 0, used).to(torch::kInt64)};
}

}  // namespace fathom
