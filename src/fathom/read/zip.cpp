#include "fathom/read/zip.hpp"

#include <zlib.h>

#include <algorithm>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

constexpr std::uint64_t in_extra_field = 0xFFFFFFFF;  // a 64-bit size stands elsewhere

/// Bytes with little-endian numbers at given places; reading outside is an Error.
class Bytes {
 public:
  Bytes(std::string_view bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  std::uint64_t number(std::uint64_t at, std::size_t size) const {
    const std::string_view field = slice(at, size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(field[i]);
    return value;
  }

  std::string_view slice(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) fail();
    return bytes_.substr(std::size_t(at), std::size_t(size));
  }

  void expect(std::uint64_t at, std::string_view mark) const {
    if (slice(at, mark.size()) != mark) fail();
  }

  std::uint64_t size() const { return bytes_.size(); }

  [[noreturn]] void fail() const {
    throw Error(text("`", source_, "` is not a zip archive that can be read: it is damaged or cut off"));
  }

 private:
  std::string_view bytes_;
  std::string_view source_;
};

/// Where the record that ends the archive starts: the last 22 bytes, or earlier if a comment follows.
std::uint64_t end_record(std::string_view archive, const Bytes& bytes) {
  constexpr std::size_t record_size = 22, longest_comment = 65535;
  if (archive.size() < record_size) bytes.fail();
  const std::size_t earliest = archive.size() - std::min(archive.size(), record_size + longest_comment);
  const std::size_t at = archive.rfind("PK\x05\x06", archive.size() - record_size);
  if (at == std::string_view::npos || at < earliest) bytes.fail();
  return at;
}

/// Sizes and place that do not fit 32 bits are in the extra field 1, in this order.
void read_extra(ZipEntry& entry, std::string_view extra, std::string_view source) {
  const Bytes bytes(extra, source);
  for (std::uint64_t at = 0; at + 4 <= bytes.size();) {
    const std::uint64_t kind = bytes.number(at, 2), size = bytes.number(at + 2, 2);
    const Bytes field(bytes.slice(at + 4, size), source);
    std::uint64_t used = 0;
    for (std::uint64_t* each : {&entry.size, &entry.packed_size, &entry.header}) {
      if (kind != 1 || *each != in_extra_field) continue;
      *each = field.number(used, 8);
      used += 8;
    }
    at += 4 + size;
  }
}

/// Passes bytes on, and at their end compares size and checksum with what the archive says.
class CheckedSource : public ByteSource {
 public:
  CheckedSource(std::unique_ptr<ByteSource> inner, const ZipEntry& entry)
      : ByteSource(inner->name()), inner_(std::move(inner)), left_(entry.size), expected_(entry.checksum) {}

  std::size_t read(std::span<char> into) override {
    if (into.empty()) return 0;
    const std::size_t count = inner_->read(into.first(std::min<std::size_t>(into.size(), 1u << 30)));
    checksum_ = crc32(checksum_, reinterpret_cast<const Bytef*>(into.data()), uInt(count));
    if (count > left_) throw Error(text("`", name(), "` is damaged: it is longer than the archive says"));
    left_ -= count;
    if (count == 0 && (left_ != 0 || checksum_ != expected_))
      throw Error(text("`", name(), "` is damaged: its checksum is wrong"));
    return count;
  }

 private:
  std::unique_ptr<ByteSource> inner_;
  std::uint64_t left_;
  uLong expected_;
  uLong checksum_ = 0;
};

}  // namespace

std::vector<ZipEntry> zip_entries(std::string_view archive, std::string_view source) {
  const Bytes bytes(archive, source);
  const std::uint64_t end = end_record(archive, bytes);
  const std::uint64_t count = bytes.number(end + 10, 2);
  std::uint64_t at = bytes.number(end + 16, 4);
  std::vector<ZipEntry> entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    bytes.expect(at, "PK\x01\x02");
    const std::uint64_t name = bytes.number(at + 28, 2), extra = bytes.number(at + 30, 2);
    ZipEntry entry{.name = std::string(bytes.slice(at + 46, name)),
                   .method = int(bytes.number(at + 10, 2)),
                   .checksum = std::uint32_t(bytes.number(at + 16, 4)),
                   .packed_size = bytes.number(at + 20, 4),
                   .size = bytes.number(at + 24, 4),
                   .header = bytes.number(at + 42, 4)};
    read_extra(entry, bytes.slice(at + 46 + name, extra), source);
    entries.push_back(std::move(entry));
    at += 46 + name + extra + bytes.number(at + 32, 2);
  }
  return entries;
}

std::unique_ptr<ByteSource> unpacked(std::string_view archive, const ZipEntry& entry,
                                     std::string_view source) {
  const Bytes bytes(archive, source);
  bytes.expect(entry.header, "PK\x03\x04");
  constexpr std::uint64_t encrypted = 1;
  if (bytes.number(entry.header + 6, 2) & encrypted) throw Error(text("`", source, "` is encrypted"));
  const std::uint64_t start =
      entry.header + 30 + bytes.number(entry.header + 26, 2) + bytes.number(entry.header + 28, 2);
  auto packed = std::make_unique<MemorySource>(text(source, "` entry `", entry.name.substr(0, 100)),
                                               bytes.slice(start, entry.packed_size));
  if (entry.method == 0) return std::make_unique<CheckedSource>(std::move(packed), entry);
  if (entry.method != 8)
    throw Error(
        text("`", source, "` is packed by method ", entry.method, "; only stored and deflated can be read"));
  return std::make_unique<CheckedSource>(inflated(std::move(packed), Wrapping::raw_deflate), entry);
}

}  // namespace fathom
