/// The course of a training run: metrics.jsonl, one JSON object a line, written while it trains.
///   {"model", "iteration", "loss", "evaluations", "backward_evaluations", "seconds", further figures ...}
///
///   MetricsLog log(folder);
///   fit(*model, loss, {.observer = [&](const FitRecord& record) { return log.write("vanilla", record), true; }});
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fathom/train/fit.hpp"

namespace fathom {

struct MetricsLogOptions {
  /// Go on with the file that is there, without what follows this iteration; default: begin anew.
  std::optional<std::int64_t> keep_until = {};
};

class MetricsLog {
 public:
  explicit MetricsLog(const std::filesystem::path& folder, const MetricsLogOptions& options = {});

  /// One line, on disk when this returns. Throws Error when it cannot be written.
  void write(const std::string& model, const FitRecord& record,
             const std::vector<std::pair<std::string, double>>& further = {});

 private:
  std::filesystem::path file_;
  std::ofstream out_;
};

}  // namespace fathom
