/// The solves of a loaded model, in its own precision behind an interface in double precision.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fathom/file/model_file.hpp"
#include "fathom/ode/report.hpp"
#include "fathom/runtime/program.hpp"

namespace fathom::runtime::detail {

/// What the solves of one caller need again. The solver's precision decides what else there is.
struct Memory {
  virtual ~Memory() = default;
  ode::SolveReport report;
  std::vector<double> inputs;     // (rows, inputs), standardised
  std::vector<double> depths;     // of a forecast
  std::vector<double> states;     // (rows, features), where a flow ended
  std::vector<double> integrals;  // (rows)
};

/// Constant: threads may share it, each with a memory of its own. A call like an earlier one with the same memory allocates nothing.
class Solver {
 public:
  virtual ~Solver() = default;
  virtual std::unique_ptr<Memory> make_memory() const = 0;
  /// From standardised inputs (rows, inputs).
  virtual void solve_inputs(std::span<const double> inputs, std::span<const double> depths, Carries carries,
                            Memory& memory) const = 0;
  /// From states (rows, features), where there is no control.
  virtual void solve_states(std::span<const double> states, std::span<const double> depths,
                            Memory& memory) const = 0;
  /// What the head makes of the states of the last solve, from the depth of number `first` on: (depths, rows, outputs).
  virtual void read_answers(std::size_t first, std::span<double> answers, Memory& memory) const = 0;
  /// Where the last solve ended, with the integral of the divergence where it was asked for: into `states` and `integrals`.
  virtual void read_ends(Memory& memory) const = 0;

  /// For calls without a workspace: the memory of an earlier one where it is not in use, so that not every call sets up all anew.
  std::unique_ptr<Memory> take_spare() const;
  void give_spare(std::unique_ptr<Memory> memory) const;

 private:
  mutable std::mutex spare_guard_;
  mutable std::unique_ptr<Memory> spare_;
};

std::unique_ptr<const Solver> make_solver(const ModelFile& file, int threads);

}  // namespace fathom::runtime::detail
