#include "fathom/read/array.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

template <class T> std::vector<double> converted(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(element);
  }
  return values;
}

}  // namespace

std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::boolean:
    case ElementType::int8:
    case ElementType::uint8: return 1;
    case ElementType::int16:
    case ElementType::uint16: return 2;
    case ElementType::int32:
    case ElementType::uint32:
    case ElementType::float32: return 4;
    case ElementType::int64:
    case ElementType::uint64:
    case ElementType::float64: return 8;
  }
  return 1;
}

std::size_t checked_bytes(const std::vector<std::int64_t>& shape, ElementType type, const ReadLimits& limits,
                          std::string_view source) {
  // An empty side makes the array empty, however long the others are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::size_t total = size_of(type);
  for (const std::int64_t side : shape) {
    if (side < 0 || std::size_t(side) > limits.bytes / total) {
      throw Error(text("`", source, "` asks for an array beyond the limit of ", limits.bytes >> 20,
                       " MiB; raise the limit if that is meant"));
    }
    total *= std::size_t(side);
  }
  return total;
}

void to_native(Array& array, ByteOrder order) {
  const bool same = (order == ByteOrder::little) == (std::endian::native == std::endian::little);
  const std::size_t size = size_of(array.type);
  if (same || size == 1) return;
  for (std::size_t at = 0; at + size <= array.bytes.size(); at += size)
    std::reverse(array.bytes.begin() + std::ptrdiff_t(at), array.bytes.begin() + std::ptrdiff_t(at + size));
}

std::vector<double> numbers(const Array& array) {
  switch (array.type) {
    case ElementType::boolean:
    case ElementType::uint8: return converted<std::uint8_t>(array.bytes);
    case ElementType::int8: return converted<std::int8_t>(array.bytes);
    case ElementType::int16: return converted<std::int16_t>(array.bytes);
    case ElementType::uint16: return converted<std::uint16_t>(array.bytes);
    case ElementType::int32: return converted<std::int32_t>(array.bytes);
    case ElementType::uint32: return converted<std::uint32_t>(array.bytes);
    case ElementType::int64: return converted<std::int64_t>(array.bytes);
    case ElementType::uint64: return converted<std::uint64_t>(array.bytes);
    case ElementType::float32: return converted<float>(array.bytes);
    case ElementType::float64: return converted<double>(array.bytes);
  }
  return {};
}

}  // namespace fathom
