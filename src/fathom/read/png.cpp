#include "fathom/read/png.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

/// A PNG file is a sequence of chunks: length, type, data, checksum of type and data.
class Chunks {
 public:
  explicit Chunks(ByteSource& source) : source_(source) { next(); }

  const std::string& type() const { return type_; }
  std::uint32_t left() const { return left_; }
  const std::string& name() const { return source_.name(); }

  /// Of the chunk at hand; 0 at its end.
  std::size_t read(std::span<char> into) {
    const std::size_t wanted = std::min<std::size_t>(into.size(), left_);
    if (wanted == 0) return 0;
    read_fully(source_, into.first(wanted), text("a chunk `", type_, "`"));
    checksum_ = crc32(checksum_, reinterpret_cast<const Bytef*>(into.data()), uInt(wanted));
    left_ -= std::uint32_t(wanted);
    return wanted;
  }

  /// To the next chunk, after checking the rest of this one.
  void advance() {
    std::array<char, 4096> skipped;
    while (read(skipped) > 0) {}
    if (big_endian(read_string(source_, 4, "a checksum")) != checksum_)
      throw Error(text("`", name(), "` is damaged: the checksum of a chunk is wrong"));
    if (type_ != "IEND") next();
  }

 private:
  void next() {
    const std::string head = read_string(source_, 8, "the head of a chunk");
    left_ = big_endian(std::string_view(head).substr(0, 4));
    type_ = head.substr(4);
    const bool letters = std::all_of(type_.begin(), type_.end(),
                                     [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
    if (!letters) throw Error(text("`", name(), "` is damaged: a chunk has no type"));
    checksum_ = crc32(0, reinterpret_cast<const Bytef*>(type_.data()), 4);
  }

  ByteSource& source_;
  std::string type_;
  std::uint32_t left_ = 0;
  uLong checksum_ = 0;
};

/// The data of consecutive IDAT chunks: one compressed stream.
class ImageData : public ByteSource {
 public:
  explicit ImageData(Chunks& chunks) : ByteSource(chunks.name()), chunks_(chunks) {}

  std::size_t read(std::span<char> into) override {
    if (into.empty()) return 0;
    while (chunks_.type() == "IDAT") {
      if (const std::size_t count = chunks_.read(into)) return count;
      chunks_.advance();
    }
    return 0;
  }

 private:
  Chunks& chunks_;
};

struct Header {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t channels = 0;
};

Header read_header(Chunks& chunks) {
  std::string bytes(13, '\0');
  if (chunks.type() != "IHDR" || chunks.left() != bytes.size())
    throw Error(text("`", chunks.name(), "` is damaged: its first chunk is not a header"));
  chunks.read(bytes);
  chunks.advance();
  const std::string_view view(bytes);
  const Header header{.width = big_endian(view.substr(0, 4)),
                      .height = big_endian(view.substr(4, 4)),
                      .channels = bytes[9] == 2 ? 3 : 1};
  const int depth = bytes[8], colour = bytes[9], interlaced = bytes[12];
  const bool known = depth == 8 && (colour == 0 || colour == 2) && interlaced == 0;
  if (!known || bytes[10] != 0 || bytes[11] != 0) {
    throw Error(text("`", chunks.name(), "` has ", depth, " bits, colour type ", colour,
                     interlaced ? ", interlaced" : "",
                     "; 8 bits, grey (0) or RGB (2), not interlaced can be read"));
  }
  if (header.width == 0 || header.height == 0)
    throw Error(text("`", chunks.name(), "` is damaged: its image has no pixels"));
  return header;
}

/// The predictor of filter 4 (Paeth): whichever of left, above, upper left is nearest to left + above - upper left.
int nearest_of(int left, int above, int corner) {
  const int guess = left + above - corner;
  const int to_left = std::abs(guess - left), to_above = std::abs(guess - above),
            to_corner = std::abs(guess - corner);
  if (to_left <= to_above && to_left <= to_corner) return left;
  return to_above <= to_corner ? above : corner;
}

/// Adds to each byte what its filter predicts from the bytes `step` to the left and in the row above.
void unfilter(int filter, std::span<char> row, std::span<const char> above, std::size_t step,
              std::string_view source) {
  if (filter < 0 || filter > 4) throw Error(text("`", source, "` is damaged: a row has the filter ", filter));
  const auto byte = [](char c) { return int(static_cast<unsigned char>(c)); };
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int left = i >= step ? byte(row[i - step]) : 0;
    const int up = byte(above[i]);
    const int corner = i >= step ? byte(above[i - step]) : 0;
    const std::array<int, 5> predictions = {0, left, up, (left + up) / 2, nearest_of(left, up, corner)};
    row[i] = static_cast<char>(byte(row[i]) + predictions[std::size_t(filter)]);
  }
}

}  // namespace

Array read_png(ByteSource& source, const ReadLimits& limits) {
  constexpr std::string_view mark = "\x89PNG\r\n\x1a\n";
  if (read_string(source, mark.size(), "its first bytes") != mark)
    throw Error(text("`", source.name(), "` is not a PNG file"));
  Chunks chunks(source);
  const Header header = read_header(chunks);
  Array image{.type = ElementType::uint8, .shape = {header.height, header.width, header.channels}};
  checked_bytes(image.shape, image.type, limits, source.name());
  while (chunks.type() != "IDAT" && chunks.type() != "IEND") chunks.advance();

  const auto pixels = inflated(std::make_unique<ImageData>(chunks), Wrapping::zlib);
  // Read before room is made for it, so that a header that lies about the width costs nothing.
  const std::size_t row_size = std::size_t(header.width * header.channels);
  std::string above;
  for (std::int64_t row = 0; row < header.height; ++row) {
    const std::string filter = read_string(*pixels, 1, "its pixels");
    std::string bytes = read_string(*pixels, row_size, "its pixels");
    above.resize(row_size, '\0');
    unfilter(filter[0], bytes, above, std::size_t(header.channels), source.name());
    image.bytes += bytes;
    above = std::move(bytes);
  }
  require_end(*pixels, "its pixels");
  while (chunks.type() != "IEND") chunks.advance();
  chunks.advance();
  return image;
}

Array read_png(const std::filesystem::path& path, const ReadLimits& limits) {
  return read_png(*open_source(path), limits);
}

}  // namespace fathom
