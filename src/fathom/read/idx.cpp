#include "fathom/read/idx.hpp"

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

ElementType element_type(unsigned char code, std::string_view source) {
  switch (code) {
    case 0x08: return ElementType::uint8;
    case 0x09: return ElementType::int8;
    case 0x0B: return ElementType::int16;
    case 0x0C: return ElementType::int32;
    case 0x0D: return ElementType::float32;
    case 0x0E: return ElementType::float64;
    default: throw Error(text("`", source, "` is not an idx file: it has no element type ", int(code)));
  }
}

std::int64_t big_endian(std::string_view bytes) {
  std::int64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace

Array read_idx(ByteSource& source, const ReadLimits& limits) {
  const std::string mark = read_string(source, 4, "its first 4 bytes");
  const auto sides = static_cast<unsigned char>(mark[3]);
  if (mark[0] != 0 || mark[1] != 0 || sides == 0)
    throw Error(text("`", source.name(), "` is not an idx file: its first bytes are others"));
  Array array{.type = element_type(static_cast<unsigned char>(mark[2]), source.name())};
  const std::string shape = read_string(source, 4u * sides, "its shape");
  for (std::size_t i = 0; i < sides; ++i)
    array.shape.push_back(big_endian(std::string_view(shape).substr(4 * i, 4)));
  array.bytes =
      read_string(source, checked_bytes(array.shape, array.type, limits, source.name()), "its elements");
  require_end(source, "its array");
  to_native(array, ByteOrder::big);
  return array;
}

Array read_idx(const std::filesystem::path& path, const ReadLimits& limits) {
  return read_idx(*open_source(path), limits);
}

}  // namespace fathom
