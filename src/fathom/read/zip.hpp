/// The entries of a zip archive in memory, stored or deflated. (PKWARE's APPNOTE 6.3, without encryption and several disks)
///
///   for (const ZipEntry& entry : zip_entries(archive, "x.npz")) unpacked(archive, entry, "x.npz");
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/read/byte_source.hpp"

namespace fathom {

struct ZipEntry {
  std::string name = {};
  int method = 0;  // 0: stored, 8: deflated
  std::uint32_t checksum = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header = 0;  // where the entry's own header starts
};

/// The table of contents; throws Error when there is none or it points outside.
std::vector<ZipEntry> zip_entries(std::string_view archive, std::string_view source);

/// The bytes of an entry, whose size and checksum are compared at its end. `archive` must outlive it.
std::unique_ptr<ByteSource> unpacked(std::string_view archive, const ZipEntry& entry,
                                     std::string_view source);

}  // namespace fathom
