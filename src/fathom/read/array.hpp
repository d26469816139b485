/// An array as files hold it: a shape and elements of one type.
///
///   const Array images = read_idx("train-images-idx3-ubyte.gz");      // uint8 (60000, 28, 28)
///   numbers(images)[0];
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/read/byte_source.hpp"

namespace fathom {

enum class ElementType {
  boolean,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64
};

std::size_t size_of(ElementType type);

struct Array {
  ElementType type = ElementType::float64;
  std::vector<std::int64_t> shape = {};
  std::string bytes = {};  ///< row-major, in the byte order of this machine

  std::size_t elements() const { return bytes.size() / size_of(type); }
};

/// What a file may ask for at most. A file that says more is refused; one that says more than it holds is found out at its end.
struct ReadLimits {
  std::size_t bytes = std::size_t{4} << 30;
};

/// The bytes that an array of this shape takes; throws Error when that is beyond the limit.
std::size_t checked_bytes(const std::vector<std::int64_t>& shape, ElementType type, const ReadLimits& limits,
                          std::string_view source);

/// Swaps the bytes of every element unless the machine's order is that of the file.
enum class ByteOrder { little, big };
void to_native(Array& array, ByteOrder order);

/// Every element as a double, in row-major order. Integers beyond 2^53 are rounded.
std::vector<double> numbers(const Array& array);

}  // namespace fathom
