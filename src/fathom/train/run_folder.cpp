#include "fathom/train/run_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// JSON has no NaN or infinity.
nlohmann::ordered_json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  if (whole) return static_cast<std::int64_t>(value);
  return value;
}

std::string cell(double value) {
  std::ostringstream out;
  if (value == std::floor(value) && std::abs(value) < 1e15)
    out << std::int64_t(value);
  else
    out << std::setprecision(4) << value;
  return out.str();
}

}  // namespace

void make_run_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed || !std::filesystem::is_directory(folder)) {
    throw Error(text("cannot make the run folder `", folder.string(),
                     "`: ", failed ? failed.message() : "a file of that name is in the way",
                     "; choose another with --out"));
  }
  if (access(folder.c_str(), W_OK) != 0) {
    throw Error(
        text("the run folder `", folder.string(), "` cannot be written to; choose another with --out"));
  }
}

std::string metrics_json(const RunMetrics& metrics) {
  nlohmann::ordered_json document{
      {"experiment", metrics.experiment}, {"size", metrics.size}, {"seed", metrics.seed}};
  document["models"] = nlohmann::ordered_json::object();
  for (const ModelFigures& model : metrics.models) {
    for (const auto& [figure, value] : model.figures) document["models"][model.name][figure] = number(value);
  }
  document["verdicts"] = nlohmann::ordered_json::array();
  for (const ClaimVerdict& verdict : metrics.verdicts) {
    document["verdicts"].push_back({{"claim", verdict.claim},
                                    {"value", number(verdict.value)},
                                    {"threshold", number(verdict.threshold)},
                                    {"holds", verdict.holds}});
  }
  return document.dump(2) + "\n";
}

void write_metrics(const std::filesystem::path& folder, const RunMetrics& metrics) {
  write_atomically(folder / "metrics.json", metrics_json(metrics));
}

std::string table(const RunMetrics& metrics) {
  if (metrics.models.empty()) return {};
  std::vector<std::vector<std::string>> rows = {{"model"}};
  const auto column_of = [&rows](const std::string& figure) {
    return std::find(rows[0].begin() + 1, rows[0].end(), figure) - rows[0].begin();
  };
  for (const ModelFigures& model : metrics.models) {
    for (const auto& [figure, value] : model.figures) {
      if (column_of(figure) == std::ssize(rows[0])) rows[0].push_back(figure);
    }
  }
  for (const ModelFigures& model : metrics.models) {
    std::vector<std::string> row(rows[0].size());
    row[0] = model.name;
    for (const auto& [figure, value] : model.figures) row[std::size_t(column_of(figure))] = cell(value);
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::ostringstream out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      out << (i == 0 ? std::left : std::right) << std::setw(int(widths[i] + (i == 0 ? 0 : 2))) << row[i];
    }
    out << "\n";
  }
  return out.str();
}

}  // namespace fathom
