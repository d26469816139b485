/// Runs a saved model with nothing but this library: no libtorch, no autograd, under 3 MB.
///
///   const runtime::Model model = runtime::load("iris.safetensors");
///   const std::vector<double> probabilities = model.predict(std::vector{5.1, 3.5, 1.4, 0.2});   // one row
///
/// Tables are given row by row, in the units of the data; so are the answers, which equal those of the full library to
/// rounding. A loaded model is constant: threads may share it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fathom/file/model_file.hpp"
#include "fathom/ode/report.hpp"

namespace fathom::runtime {

struct Options {
  int threads = 1;  ///< that may share one large batch
};

/// Answers with what they cost.
struct Answer {
  std::vector<double> values;
  ode::SolveReport report;
};

namespace detail {
class Solver;
}

class Model {
 public:
  /// Throws Error for a model that needs the full library, saying why.
  explicit Model(ModelFile file, const Options& options = {});

  const ModelSpec& spec() const { return spec_; }
  const Facts& facts() const { return facts_; }

  /// (rows, inputs) -> probabilities (rows, labels), targets (rows, targets), or the logarithm of the density (rows).
  std::vector<double> predict(std::span<const double> rows) const { return solve_rows(rows).values; }
  /// Series: (rows, columns) at times.front() -> (times, rows, columns).
  std::vector<double> forecast(std::span<const double> rows, const std::vector<double>& times) const {
    return solve_times(rows, times).values;
  }
  /// Density: (count, columns).
  std::vector<double> sample(std::size_t count, std::uint64_t seed = 0) const;

  /// The same with their reports.
  Answer solve_rows(std::span<const double> rows) const;
  Answer solve_times(std::span<const double> rows, const std::vector<double>& times) const;

  /// The label of the largest probability of a row.
  const std::string& label(std::span<const double> probabilities) const;

 private:
  std::size_t rows_in(std::span<const double> rows) const;

  ModelSpec spec_;
  Facts facts_;
  std::shared_ptr<const detail::Solver> solver_;
};

Model load(const std::filesystem::path& path, const Options& options = {});

}  // namespace fathom::runtime
