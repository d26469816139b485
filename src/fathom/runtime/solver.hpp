/// The solves of a loaded model, in its own precision behind an interface in double precision.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fathom/file/model_file.hpp"
#include "fathom/ode/report.hpp"
#include "fathom/runtime/program.hpp"

namespace fathom::runtime::detail {

/// A flow from the first depth to the last.
struct Course {
  std::vector<double> states;     ///< (depths, rows, features)
  std::vector<double> integrals;  ///< (rows): of the divergence, where it was asked for
  ode::SolveReport report;
};

class Solver {
 public:
  virtual ~Solver() = default;
  /// From standardised inputs (rows, inputs).
  virtual Course from_inputs(std::span<const double> inputs, const std::vector<double>& depths,
                             Carries carries) const = 0;
  /// From states (rows, features), where there is no control.
  virtual Course from_states(std::span<const double> states, const std::vector<double>& depths) const = 0;
  /// (rows, features) -> (rows, outputs)
  virtual std::vector<double> head(std::span<const double> states) const = 0;
};

std::unique_ptr<const Solver> make_solver(const ModelFile& file, int threads);

}  // namespace fathom::runtime::detail
