/// A run is one folder; its figures are in metrics.json:
///   {"experiment", "size", "seed", "models": {name: {figure: value}}, "verdicts": [{"claim", "value", "threshold", "holds"}]}
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "fathom/support/whole_file.hpp"

namespace fathom {

/// The figures of one trained model, in the order they are shown.
struct ModelFigures {
  std::string name;
  std::vector<std::pair<std::string, double>> figures;
};

/// A claim of the paper, and whether it held in this run.
struct ClaimVerdict {
  std::string claim;
  double value = 0;
  double threshold = 0;
  bool holds = false;
};

struct RunMetrics {
  std::string experiment;
  std::string size;
  std::uint64_t seed = 0;
  std::vector<ModelFigures> models;
  std::vector<ClaimVerdict> verdicts;
};

/// Makes the folder; throws Error with one sentence when it cannot be written to.
void make_run_folder(const std::filesystem::path& folder);

/// The content of metrics.json, and the file itself.
std::string metrics_json(const RunMetrics& metrics);
void write_metrics(const std::filesystem::path& folder, const RunMetrics& metrics);

/// The models' figures as an aligned table.
std::string table(const RunMetrics& metrics);

}  // namespace fathom
