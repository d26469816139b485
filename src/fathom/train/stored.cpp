#include "fathom/train/stored.hpp"

#include <cstring>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

constexpr std::pair<torch::ScalarType, DataType> types[] = {
    {torch::kFloat32, DataType::f32},   {torch::kFloat64, DataType::f64}, {torch::kFloat16, DataType::f16},
    {torch::kBFloat16, DataType::bf16}, {torch::kInt64, DataType::i64},   {torch::kInt32, DataType::i32},
    {torch::kInt16, DataType::i16},     {torch::kInt8, DataType::i8},     {torch::kUInt8, DataType::u8},
    {torch::kBool, DataType::boolean}};

}  // namespace

StoredTensor stored(const Tensor& tensor) {
  const Tensor plain = tensor.detach().to(torch::kCPU).contiguous();
  for (const auto& [ours, theirs] : types) {
    if (plain.scalar_type() != ours) continue;
    return {.type = theirs,
            .shape = plain.sizes().vec(),
            .bytes = {static_cast<const char*>(plain.data_ptr()), plain.nbytes()}};
  }
  throw InvalidArgument(text("tensors of type ", tensor.scalar_type(), " cannot be stored in a file"));
}

Tensor restored(const StoredTensor& stored) {
  for (const auto& [ours, theirs] : types) {
    if (stored.type != theirs) continue;
    const Tensor tensor = torch::empty(stored.shape, ours);
    require(tensor.nbytes() == stored.bytes.size(), "a tensor of shape ", tensor.sizes(), " needs ",
            tensor.nbytes(), " bytes, got ", stored.bytes.size());
    if (!stored.bytes.empty()) std::memcpy(tensor.data_ptr(), stored.bytes.data(), stored.bytes.size());
    return tensor;
  }
  throw Error(text("tensors of type ", name_of(stored.type), " cannot be used here"));
}

}  // namespace fathom
