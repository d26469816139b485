/// The safetensors format: tensors by name, and text by name, in one file that many tools read.
///   8 bytes: length n of the header; n bytes: JSON {name: {dtype, shape, data_offsets}, "__metadata__": {text: text}}; the data
///
///   TensorFile file;
///   file.tensors["weight"] = stored_tensor({2, 3}, std::span<const float>(values));
///   write_safetensors("model.safetensors", file);
///   const std::vector<double> values = read_safetensors("model.safetensors").tensors.at("weight").numbers<double>();
///
/// A reader believes nothing: lengths, offsets, shapes and types are checked before anything is allocated by them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/support/names.hpp"

namespace fathom {

enum class DataType { boolean, u8, i8, i16, u16, f16, bf16, i32, u32, f32, f64, i64, u64 };
template <> const NameTable<DataType>& names<DataType>();  ///< as in the format: "F32"

std::size_t bytes_of(DataType type);

using Shape = std::vector<std::int64_t>;

/// "(2, 3)"
std::string shape_text(const Shape& shape);

struct StoredTensor {
  DataType type = DataType::f32;
  Shape shape = {};
  std::string bytes = {};  ///< row by row, little endian

  std::size_t count() const { return bytes.size() / bytes_of(type); }
  /// Its values as float or double, whatever floating-point type they are stored in.
  template <class T> std::vector<T> numbers() const;
};

/// Throws InvalidArgument when the number of values is not that of the shape.
template <class T> StoredTensor stored_tensor(Shape shape, std::span<const T> values);

struct TensorFile {
  std::map<std::string, StoredTensor> tensors = {};
  std::map<std::string, std::string> metadata = {};
};

/// The bytes of a file, and back. `source` names it in errors.
std::string to_bytes(const TensorFile& file);
TensorFile parse_safetensors(std::string_view bytes, const std::string& source = "the file");

/// The old file stays as it was when anything goes wrong.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);
TensorFile read_safetensors(const std::filesystem::path& path);

}  // namespace fathom
