/// The paper's experiments by name. Each is one file that reads like the paper's paragraph.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fathom/train/run_folder.hpp"

namespace fathom::experiments {

struct RunOptions {
  std::uint64_t seed = 0;
  std::optional<std::int64_t> iterations = {};  ///< default: the experiment's own
  bool quiet = false;
};

struct Experiment {
  std::string id;       ///< of the specification, for example "E5"
  std::string name;     ///< on the command line
  std::string summary;  ///< one line
  std::function<RunMetrics(const RunOptions&)> run;
};

Experiment annuli();

/// All experiments, in the order of the paper.
const std::vector<Experiment>& all_experiments();

}  // namespace fathom::experiments
