/// PNG images, as they come and with their checksums put right, since no mutation would get past a wrong one.
#include "fathom/read/png.hpp"

#include <zlib.h>

#include <string>

#include "support/harness.hpp"

namespace fathom::fuzz {

namespace {

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

/// After the mark, chunks follow: length, type, data, checksum of type and data.
std::string repaired(std::string file) {
  constexpr std::size_t mark = 8, frame = 12;
  for (std::size_t at = mark; at + frame <= file.size();) {
    const std::size_t length = big_endian(std::string_view(file).substr(at, 4));
    if (length > file.size() - at - frame) break;
    const auto checksum = crc32(0, reinterpret_cast<const Bytef*>(file.data() + at + 4), uInt(length + 4));
    for (int i = 0; i < 4; ++i)
      file[at + 8 + length + std::size_t(i)] = char(checksum >> (24 - 8 * i) & 0xFF);
    at += frame + length;
  }
  return file;
}

void read(std::string_view input) {
  MemorySource source("input", input);
  const Array image = read_png(source, {.bytes = 1 << 20});
  check(image.shape.size() == 3, "an image has height, width and channels");
  check(image.bytes.size() == checked_bytes(image.shape, image.type, {}, "input"), "the shape has its bytes");
}

}  // namespace

void read_input(std::string_view input) {
  const std::string whole = repaired(std::string(input));
  read(whole);
  read(input);
}

}  // namespace fathom::fuzz
