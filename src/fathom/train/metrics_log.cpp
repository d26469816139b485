#include "fathom/train/metrics_log.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "fathom/support/error.hpp"
#include "fathom/train/run_folder.hpp"

namespace fathom {

namespace {

nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

/// The whole lines of the file whose iteration is at most `last`; a line cut short by a kill is not one.
std::string lines_until(const std::filesystem::path& file, std::int64_t last) {
  std::ifstream in(file);
  std::string kept, line;
  while (std::getline(in, line)) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("iteration") || !record["iteration"].is_number()) break;
    if (record["iteration"].get<std::int64_t>() > last) break;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& folder, const MetricsLogOptions& options)
    : file_(folder / "metrics.jsonl") {
  write_atomically(file_, options.keep_until ? lines_until(file_, *options.keep_until) : "");
  out_.open(file_, std::ios::app);
}

void MetricsLog::write(const std::string& model, const FitRecord& record,
                       const std::vector<std::pair<std::string, double>>& further) {
  nlohmann::ordered_json line{{"model", model},
                              {"iteration", record.iteration},
                              {"loss", finite_or_null(record.loss)},
                              {"evaluations", record.evaluations},
                              {"backward_evaluations", record.backward_evaluations},
                              {"seconds", record.seconds}};
  for (const auto& [name, value] : record.validation) line[name] = finite_or_null(value);
  for (const auto& [name, value] : further) line[name] = finite_or_null(value);
  out_ << line.dump() << "\n" << std::flush;
  if (!out_) throw Error(text("cannot write `", file_.string(), "`: disk full or not writable"));
}

}  // namespace fathom
