/// Files of other programs' formats, written by the book, for tests of the readers.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom::testing {

inline std::string little(std::uint64_t value, int bytes) {
  std::string result;
  for (int i = 0; i < bytes; ++i) result += char(value >> 8 * i & 0xFF);
  return result;
}

inline std::string big(std::uint64_t value, int bytes) {
  const std::string reversed = little(value, bytes);
  return {reversed.rbegin(), reversed.rend()};
}

inline std::uint32_t checksum(std::string_view bytes) {
  return std::uint32_t(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), uInt(bytes.size())));
}

/// window: 15 for zlib, 31 for gzip, -15 for bare deflate.
inline std::string deflated(std::string_view bytes, int window) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = uInt(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// As numpy.save writes it.
inline std::string npy(const std::string& type, const std::string& order, const std::string& shape,
                       const std::string& elements) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  return "\x93NUMPY" + std::string("\x01\x00", 2) + little(header.size(), 2) + header + elements;
}

enum class Packing { stored, deflated };

/// As numpy.savez and numpy.savez_compressed write it, without the extra fields.
inline std::string zip(const std::vector<std::pair<std::string, std::string>>& entries, Packing packing) {
  const bool packed = packing == Packing::deflated;
  std::string archive, contents;
  for (const auto& [name, bytes] : entries) {
    const std::string data = packed ? deflated(bytes, -15) : bytes;
    const std::string common = little(20, 2) + little(0, 2) + little(packed ? 8 : 0, 2) + little(0, 4) +
                               little(checksum(bytes), 4) + little(data.size(), 4) + little(bytes.size(), 4) +
                               little(name.size(), 2) + little(0, 2);
    contents +=
        "PK\x01\x02" + little(20, 2) + common + std::string(10, '\0') + little(archive.size(), 4) + name;
    archive += "PK\x03\x04" + common + name + data;
  }
  return archive + contents + "PK\x05\x06" + little(0, 4) + little(entries.size(), 2) +
         little(entries.size(), 2) + little(contents.size(), 4) + little(archive.size(), 4) + little(0, 2);
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  return big(data.size(), 4) + type + data + big(checksum(type + data), 4);
}

/// `rows` are filtered already, each with its filter in front; the data is split into two chunks.
inline std::string png(std::uint32_t width, std::uint32_t height, int colour, const std::string& rows) {
  const std::string data = deflated(rows, 15);
  const std::string header = big(width, 4) + big(height, 4) + char(8) + char(colour) + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_chunk("tEXt", "a comment") +
         png_chunk("IDAT", data.substr(0, data.size() / 2)) +
         png_chunk("IDAT", data.substr(data.size() / 2)) + png_chunk("IEND", "");
}

/// As the files of MNIST; `type` 8 is uint8, 13 is float32.
inline std::string idx(int type, const std::vector<std::uint32_t>& shape, const std::string& elements) {
  std::string file = std::string(2, '\0') + char(type) + char(shape.size());
  for (const std::uint32_t side : shape) file += big(side, 4);
  return file + elements;
}

/// An image set in the files of MNIST: for each class a bright spot at another place, over some noise.
inline std::vector<std::pair<std::string, std::string>> small_images(std::uint32_t train, std::uint32_t test,
                                                                     std::uint32_t side) {
  std::uint32_t state = 1;
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [prefix, count] : {std::pair("train", train), std::pair("t10k", test)}) {
    std::string pixels, labels;
    for (std::uint32_t n = 0; n < count; ++n) {
      const std::uint32_t label = n % 10;
      labels += char(label);
      for (std::uint32_t i = 0; i < side * side; ++i) {
        state = state * 1664525 + 1013904223;
        pixels += char(i % 10 == label ? 255 : state >> 26);
      }
    }
    files.emplace_back(std::string(prefix) + "-images-idx3-ubyte", idx(8, {count, side, side}, pixels));
    files.emplace_back(std::string(prefix) + "-labels-idx1-ubyte", idx(8, {count}, labels));
  }
  return files;
}

}  // namespace fathom::testing
