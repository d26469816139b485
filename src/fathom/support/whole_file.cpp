#include "fathom/support/whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// A file open for writing, closed whatever happens.
class Draft {
 public:
  explicit Draft(const std::filesystem::path& file)
      : handle_(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (handle_ >= 0) close(handle_);
  }

  /// Whether every byte is on the disk; errno says why not.
  bool write_all(std::string_view content) const {
    if (handle_ < 0) return false;
    while (!content.empty()) {
      const ssize_t written = write(handle_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      content.remove_prefix(std::size_t(written));
    }
    return fsync(handle_) == 0;
  }

 private:
  int handle_;
};

/// A rename is on the disk only when the folder is; where folders cannot be flushed, it is as safe as it gets.
void flush_folder(const std::filesystem::path& folder) {
  const int handle = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;
  fsync(handle);
  close(handle);
}

}  // namespace

void write_atomically(const std::filesystem::path& file, std::string_view content) {
  // A name of its own for every call: threads may write the same file.
  static std::atomic<std::uint64_t> drafts = 0;
  const std::filesystem::path draft = text(file.string(), ".part", getpid(), "-", ++drafts);
  std::error_code failed;
  if (!Draft(draft).write_all(content)) failed = {errno, std::generic_category()};
  if (!failed) std::filesystem::rename(draft, file, failed);
  if (failed) {
    std::error_code ignored;
    std::filesystem::remove(draft, ignored);
    throw Error(text("cannot write `", file.string(), "`: ", failed.message()));
  }
  flush_folder(file.parent_path());
}

std::string read_whole(const std::filesystem::path& file, std::uintmax_t limit) {
  std::error_code failed;
  const auto status = std::filesystem::status(file, failed);
  if (!std::filesystem::exists(status)) throw Error(text("there is no file `", file.string(), "`"));
  if (!std::filesystem::is_regular_file(status))
    throw Error(text("`", file.string(), "` is not a file but a ",
                     std::filesystem::is_directory(status) ? "folder" : "device or pipe"));
  const std::uintmax_t size = std::filesystem::file_size(file, failed);
  if (failed) throw Error(text("cannot read `", file.string(), "`: ", failed.message()));
  if (size > limit)
    throw Error(text("`", file.string(), "` has ", size, " bytes; at most ", limit, " are read"));
  std::ifstream in(file, std::ios::binary);
  std::string content(size, '\0');
  in.read(content.data(), std::streamsize(size));
  if (!in) throw Error(text("cannot read `", file.string(), "`: ", std::strerror(errno)));
  return content;
}

}  // namespace fathom
