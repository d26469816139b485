#include "fathom/read/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

constexpr std::size_t block_size = std::size_t{1} << 16;

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : ByteSource(path.string()) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw Error(text("cannot read `", name(), "`: ", reason(errno)));
    struct stat facts = {};
    if (fstat(descriptor_, &facts) == 0 && S_ISDIR(facts.st_mode)) {
      ::close(descriptor_);
      throw Error(text("cannot read `", name(), "`: it is a folder, a file is needed"));
    }
  }
  ~FileSource() override { ::close(descriptor_); }

  std::size_t read(std::span<char> into) override {
    for (;;) {
      const ssize_t count = ::read(descriptor_, into.data(), into.size());
      if (count >= 0) return std::size_t(count);
      if (errno != EINTR) throw Error(text("cannot read `", name(), "`: ", reason(errno)));
    }
  }

 private:
  static std::string reason(int code) { return code == ENOENT ? "no such file" : std::strerror(code); }

  int descriptor_ = -1;
};

/// Gives back what was read to find out what kind of file it is, then the rest.
class ReplaySource : public ByteSource {
 public:
  ReplaySource(std::string head, std::unique_ptr<ByteSource> rest)
      : ByteSource(rest->name()), head_(std::move(head)), rest_(std::move(rest)) {}

  std::size_t read(std::span<char> into) override {
    if (used_ == head_.size()) return rest_->read(into);
    const std::size_t count = head_.copy(into.data(), into.size(), used_);
    used_ += count;
    return count;
  }

 private:
  std::string head_;
  std::size_t used_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

class InflatedSource : public ByteSource {
 public:
  InflatedSource(std::unique_ptr<ByteSource> packed, Wrapping wrapping)
      : ByteSource(packed->name()), packed_(std::move(packed)), wrapping_(wrapping), input_(block_size) {
    constexpr int window = 15, for_gzip = 16;  // zlib's encoding of the wrapping
    const int bits = wrapping == Wrapping::gzip   ? window + for_gzip
                     : wrapping == Wrapping::zlib ? window
                                                  : -window;
    if (inflateInit2(&stream_, bits) != Z_OK) throw Error("zlib cannot be started: out of memory");
  }
  ~InflatedSource() override { inflateEnd(&stream_); }

  std::size_t read(std::span<char> into) override {
    if (into.empty() || finished_) return 0;
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = uInt(std::min<std::size_t>(into.size(), 1u << 30));
    const uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted && !finished_) step();
    return wanted - stream_.avail_out;
  }

 private:
  bool refill() {
    const std::size_t count = packed_->read(input_);
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = uInt(count);
    return count > 0;
  }

  void step() {
    if (stream_.avail_in == 0 && !refill())
      throw Error(text("`", name(), "` is cut off: its compressed data has no end"));
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      // A gzip file may be several, one after the other.
      finished_ = wrapping_ != Wrapping::gzip || (stream_.avail_in == 0 && !refill());
      if (!finished_) inflateReset(&stream_);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw Error(text("`", name(), "` is damaged: its compressed data cannot be unpacked",
                       stream_.msg ? text(" (", stream_.msg, ")") : ""));
    }
  }

  std::unique_ptr<ByteSource> packed_;
  Wrapping wrapping_;
  std::vector<char> input_;
  z_stream stream_ = {};
  bool finished_ = false;
};

}  // namespace

std::size_t MemorySource::read(std::span<char> into) {
  const std::size_t count = left_.copy(into.data(), into.size());
  left_.remove_prefix(count);
  return count;
}

std::unique_ptr<ByteSource> inflated(std::unique_ptr<ByteSource> packed, Wrapping wrapping) {
  return std::make_unique<InflatedSource>(std::move(packed), wrapping);
}

std::unique_ptr<ByteSource> open_source(const std::filesystem::path& path) {
  constexpr std::string_view gzip_mark = "\x1f\x8b";
  auto file = std::make_unique<FileSource>(path);
  std::string head(gzip_mark.size(), '\0');
  std::size_t count = 0;
  while (count < head.size()) {
    const std::size_t more = file->read(std::span(head).subspan(count));
    if (more == 0) break;
    count += more;
  }
  head.resize(count);
  const bool packed = head == gzip_mark;
  auto whole = std::make_unique<ReplaySource>(std::move(head), std::move(file));
  if (packed) return inflated(std::move(whole), Wrapping::gzip);
  return whole;
}

void read_fully(ByteSource& source, std::span<char> into, std::string_view what) {
  while (!into.empty()) {
    const std::size_t count = source.read(into);
    if (count == 0) throw Error(text("`", source.name(), "` ends early, within ", what));
    into = into.subspan(count);
  }
}

std::string read_string(ByteSource& source, std::size_t count, std::string_view what) {
  constexpr std::size_t first_piece = std::size_t{1} << 16;
  std::string bytes;
  while (bytes.size() < count) {
    const std::size_t have = bytes.size();
    bytes.resize(std::min(count, std::max(first_piece, 2 * have)));
    read_fully(source, std::span(bytes).subspan(have), what);
  }
  return bytes;
}

void require_end(ByteSource& source, std::string_view what) {
  char more = 0;
  if (source.read(std::span(&more, 1)) != 0) throw Error(text("`", source.name(), "` goes on after ", what));
}

}  // namespace fathom
