/// Run folders as a web site: an index with the verdicts of all runs, the report of each, and a page that follows a run
/// while it trains. Reads only, and only inside the folders it was given.
///
///   Site site({"runs"});
///   Server server({}, [&](const Request& request) { return site.answer(request); });
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fathom/report/server.hpp"

namespace fathom::report {

class Site {
 public:
  /// Each folder is a run, or holds runs at most two levels below. Throws InvalidArgument when one is not a folder.
  explicit Site(std::vector<std::filesystem::path> folders);

  Response answer(const Request& request) const;

 private:
  std::vector<std::filesystem::path> folders_;
};

}  // namespace fathom::report
