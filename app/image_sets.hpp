/// Well-known image sets: fetched by the package manager that has them, converted to their standard files, and verified.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fathom::app {

/// One file of a set, known by the MD5 of its (unpacked) content.
struct KnownFile {
  std::string name;
  std::string md5;
};

struct ImageSet {
  std::string name;
  std::string summary;
  std::string package;   ///< what has it
  std::string manager;   ///< the program that fetches it
  std::string download;  ///< how much that is
  std::vector<KnownFile> files;
  /// Fetches the package into the folder and unpacks it there.
  void (*fetch)(const std::filesystem::path& work) = nullptr;
  /// Makes the file in the folder, from what was unpacked there; gives its path.
  std::filesystem::path (*make)(const std::filesystem::path& work, const std::string& name) = nullptr;
};

const std::vector<ImageSet>& image_sets();

/// Leaves the verified files in `folder`. What is there already and intact is kept, what an interrupted earlier call left is cleaned up.
void fetch_images(const ImageSet& set, const std::filesystem::path& folder, bool quiet);

/// The folder of a set's name, data/NAME, after fetching what is missing or damaged there; any other folder is taken as it is.
std::filesystem::path image_folder(const std::string& name_or_folder, bool quiet);

}  // namespace fathom::app
