/// Bytes one after the other, from a file, from memory or out of a compressed stream: what every reader of this folder reads.
///
///   const auto source = open_source("data.csv.gz");      // gzip is unpacked on the way
///   std::array<char, 4096> block;
///   while (const std::size_t count = source->read(block)) ...
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fathom {

class ByteSource {
 public:
  /// `name` is how errors call the source, usually a path.
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Fills the front of `into` and gives the number of bytes; 0 only at the end or for an empty `into`.
  virtual std::size_t read(std::span<char> into) = 0;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// Bytes that are in memory already and stay there.
class MemorySource : public ByteSource {
 public:
  MemorySource(std::string name, std::string_view bytes) : ByteSource(std::move(name)), left_(bytes) {}
  std::size_t read(std::span<char> into) override;

 private:
  std::string_view left_;
};

enum class Wrapping { gzip, zlib, raw_deflate };

/// Unpacks a deflated source; damage is an Error, as is an end before the stream's own.
std::unique_ptr<ByteSource> inflated(std::unique_ptr<ByteSource> packed, Wrapping wrapping);

/// A file, unpacked if it is gzip. Throws Error when there is no such file, when it is a folder or cannot be read.
std::unique_ptr<ByteSource> open_source(const std::filesystem::path& path);

/// Fills all of `into`; throws Error "`name` ends early, within <what>" when the source has less.
void read_fully(ByteSource& source, std::span<char> into, std::string_view what);

/// The next `count` bytes. A wrong count costs no more memory than the source has bytes, because it grows as they come.
std::string read_string(ByteSource& source, std::size_t count, std::string_view what);

/// Throws Error "`name` goes on after <what>" unless the source is at its end.
void require_end(ByteSource& source, std::string_view what);

}  // namespace fathom
