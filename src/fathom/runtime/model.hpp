/// Runs a saved model with nothing but this library: no libtorch, no autograd, under 4 MB.
///
///   const runtime::Model model = runtime::load("iris.safetensors");
///   const std::vector<double> probabilities = model.predict(std::vector{5.1, 3.5, 1.4, 0.2});   // one row
///
/// Tables are given row by row, in the units of the data; so are the answers, which equal those of the full library for the same
/// rows to rounding. The rows of a call share their adaptive steps: a row alone and among others gives answers that differ within the
/// tolerance, unless the model has steps of each sample's own (`spec().solver.steps_per_sample`, `fathom train --steps-per-sample`):
/// then they have the same bits. A loaded model is constant: threads may share it.
///
/// A control loop keeps what its calls need in a Workspace. Calls like an earlier one (as many rows and times) then allocate nothing:
///
///   runtime::Workspace workspace(model);                        // one for each thread
///   model.predict_into(row, probabilities, workspace);          // the same numbers as predict(row)
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
struct Memory;
}  // namespace detail

class Model;

/// What the calls of one thread need again: for one model, which it keeps alive, and one thread at a time.
class Workspace {
 public:
  explicit Workspace(const Model& model);
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  ~Workspace();

  const ode::SolveReport& report() const;  ///< of the last call

 private:
  friend class Model;
  Workspace(std::shared_ptr<const detail::Solver> solver, std::unique_ptr<detail::Memory> memory);

  std::shared_ptr<const detail::Solver> solver_;
  std::unique_ptr<detail::Memory> memory_;
};

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

  /// The same, written to `answers`, which must have the size of the answer. `rows`, `times` and `answers` are used during the call alone.
  /// After an error the workspace can be used again; what is in `answers` is unspecified.
  void predict_into(std::span<const double> rows, std::span<double> answers, Workspace& workspace) const;
  void forecast_into(std::span<const double> rows, std::span<const double> times, std::span<double> answers,
                     Workspace& workspace) const;
  std::size_t answer_size()
      const;  ///< numbers that predict() gives for a row, and forecast() for a row at a time

  /// The same with their reports.
  Answer solve_rows(std::span<const double> rows) const;
  Answer solve_times(std::span<const double> rows, const std::vector<double>& times) const;

  /// The label of the largest probability of a row.
  const std::string& label(std::span<const double> probabilities) const;

 private:
  friend class Workspace;
  std::size_t rows_in(std::span<const double> rows) const;
  void check_call(std::size_t size, std::span<double> answers, const Workspace& workspace) const;
  template <class Work> Answer answer_of(std::size_t size, const Work& work) const;
  void find_log_densities(std::span<double> answers, detail::Memory& memory) const;

  ModelSpec spec_;
  Facts facts_;
  std::shared_ptr<const detail::Solver> solver_;
};

Model load(const std::filesystem::path& path, const Options& options = {});

}  // namespace fathom::runtime
