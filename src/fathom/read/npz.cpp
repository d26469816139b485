#include "fathom/read/npz.hpp"

#include "fathom/read/npy.hpp"
#include "fathom/read/zip.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/whole_file.hpp"

namespace fathom {

std::map<std::string, Array> read_npz(std::string_view archive, std::string_view source,
                                      const ReadLimits& limits) {
  constexpr std::string_view suffix = ".npy";
  std::map<std::string, Array> arrays;
  ReadLimits left = limits;
  for (const ZipEntry& entry : zip_entries(archive, source)) {
    if (!entry.name.ends_with(suffix)) continue;
    Array array = read_npy(*unpacked(archive, entry, source), left);
    left.bytes -= array.bytes.size();
    const std::string name = entry.name.substr(0, entry.name.size() - suffix.size());
    if (!arrays.emplace(name, std::move(array)).second)
      throw Error(text("`", source, "` has two arrays called `", name, "`"));
  }
  if (arrays.empty()) throw Error(text("`", source, "` holds no arrays; an archive of .npy files is needed"));
  return arrays;
}

std::map<std::string, Array> read_npz(const std::filesystem::path& path, const ReadLimits& limits) {
  const std::string archive = read_whole(path, limits.bytes);
  return read_npz(archive, path.string(), limits);
}

}  // namespace fathom
