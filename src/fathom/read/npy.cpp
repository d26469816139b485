#include "fathom/read/npy.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

constexpr std::size_t header_limit = std::size_t{1} << 16;
constexpr std::size_t most_sides = 32;  // NumPy's own limit

struct Header {
  std::string type = {};  // as in '<f8'
  bool fortran_order = false;
  std::vector<std::int64_t> shape = {};
};

/// Reads {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }, in any order of the keys.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view source) : left_(text), source_(source) {}

  Header parse() {
    Header header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        header.type = type();
        has_type = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.shape = shape();
        has_shape = true;
      } else {
        fail();
      }
      if (take('}')) break;
      expect(',');
    }
    if (!has_type || !has_order || !has_shape || !rest_is_blank()) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(text("`", source_, "` is not a .npy file that can be read: its header is damaged"));
  }

  bool rest_is_blank() const { return left_.find_first_not_of(" \n") == std::string_view::npos; }

  void skip_blanks() { left_.remove_prefix(std::min(left_.find_first_not_of(" \n"), left_.size())); }

  bool take(char wanted) {
    skip_blanks();
    if (!left_.starts_with(wanted)) return false;
    left_.remove_prefix(1);
    return true;
  }

  bool take(std::string_view word) {
    skip_blanks();
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fail();
  }

  std::string quoted() {
    const char quote = take('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = left_.find(quote);
    if (end == std::string_view::npos) fail();
    const std::string word(left_.substr(0, end));
    left_.remove_prefix(end + 1);
    return word;
  }

  std::string type() {
    if (take('['))
      throw Error(
          text("`", source_, "` has records of several fields; save each field as an array of its own"));
    return quoted();
  }

  bool boolean() {
    if (take("True")) return true;
    if (!take("False")) fail();
    return false;
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sides;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      std::int64_t side = 0;
      const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), side);
      if (error != std::errc{} || side < 0 || sides.size() == most_sides) fail();
      left_.remove_prefix(std::size_t(end - left_.data()));
      sides.push_back(side);
      if (take(')')) break;
      expect(',');
    }
    return sides;
  }

  std::string_view left_;
  std::string_view source_;
};

std::pair<ElementType, ByteOrder> element_type(const std::string& type, std::string_view source) {
  static const std::pair<std::string_view, ElementType> known[] = {
      {"b1", ElementType::boolean}, {"i1", ElementType::int8},    {"u1", ElementType::uint8},
      {"i2", ElementType::int16},   {"u2", ElementType::uint16},  {"i4", ElementType::int32},
      {"u4", ElementType::uint32},  {"i8", ElementType::int64},   {"u8", ElementType::uint64},
      {"f4", ElementType::float32}, {"f8", ElementType::float64},
  };
  const bool marked = type.find_first_of("<>|=") == 0;
  const std::string_view kind = std::string_view(type).substr(marked ? 1 : 0);
  for (const auto& [name, element] : known)
    if (name == kind) return {element, type.front() == '>' ? ByteOrder::big : ByteOrder::little};
  throw Error(text("`", source, "` has elements of type `", type.substr(0, 20),
                   "`; booleans, integers, float32 and float64 can be read"));
}

/// From column-major to row-major.
void transpose(Array& array) {
  const std::size_t size = size_of(array.type), count = array.elements(), sides = array.shape.size();
  std::vector<std::size_t> stride(sides), index(sides, 0);
  std::size_t step = 1;
  for (std::size_t side = 0; side < sides; ++side) {
    stride[side] = step;
    step *= std::size_t(array.shape[side]);
  }
  std::string ordered;
  ordered.reserve(array.bytes.size());
  std::size_t from = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ordered.append(array.bytes, from * size, size);
    // Count up the last index first, as row-major order does.
    for (std::size_t side = sides; side-- > 0;) {
      from += stride[side];
      if (++index[side] < std::size_t(array.shape[side])) break;
      from -= stride[side] * index[side];
      index[side] = 0;
    }
  }
  array.bytes = std::move(ordered);
}

std::string header_text(ByteSource& source) {
  constexpr std::string_view mark = "\x93NUMPY";
  const std::string start = read_string(source, mark.size() + 2, "its first bytes");
  const int version = start[mark.size()];
  if (!start.starts_with(mark) || version < 1 || version > 3)
    throw Error(text("`", source.name(), "` is not a .npy file of version 1 to 3"));
  const std::string length = read_string(source, version == 1 ? 2 : 4, "its header");
  std::size_t size = 0;
  for (std::size_t i = length.size(); i-- > 0;) size = size << 8 | static_cast<unsigned char>(length[i]);
  if (size > header_limit)
    throw Error(
        text("`", source.name(), "` is not a .npy file that can be read: its header has ", size, " bytes"));
  return read_string(source, size, "its header");
}

}  // namespace

Array read_npy(ByteSource& source, const ReadLimits& limits) {
  const std::string text = header_text(source);
  const Header header = HeaderParser(text, source.name()).parse();
  const auto [type, order] = element_type(header.type, source.name());
  Array array{.type = type, .shape = header.shape};
  array.bytes = read_string(source, checked_bytes(array.shape, type, limits, source.name()), "its elements");
  require_end(source, "its array");
  to_native(array, order);
  if (header.fortran_order && array.shape.size() > 1) transpose(array);
  return array;
}

Array read_npy(const std::filesystem::path& path, const ReadLimits& limits) {
  return read_npy(*open_source(path), limits);
}

}  // namespace fathom
