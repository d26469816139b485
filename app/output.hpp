/// Tables that commands give out: CSV or JSON, to a file or to standard output.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "fathom/ode/report.hpp"
#include "fathom/train/fit.hpp"

namespace fathom::app {

/// A number or a text. (A std::variant of the two makes gcc 12 warn of what is not there.)
struct Cell {
  Cell(double value) : number(value) {}                               // NOLINT: a number is a cell
  Cell(std::string value) : is_text(true), text(std::move(value)) {}  // NOLINT: so is a text
  bool is_text = false;
  double number = 0;
  std::string text = {};
};

struct Answer {
  std::vector<std::string> header = {};
  std::vector<std::vector<Cell>> rows = {};
  Figures figures = {};          ///< how good it is, where that can be known
  ode::SolveReport report = {};  ///< of the solve behind it
};

struct OutputOptions {
  std::string file = {};  ///< empty: standard output
  bool json = false;
  bool quiet = false;
};

/// The rows of a tensor (rows, columns).
std::vector<std::vector<Cell>> rows_of(const Tensor& values);

/// The flags --out, --json and --quiet.
void add_output(CLI::App& command, OutputOptions& output);

/// CSV with the figures on standard error, or one JSON object {"figures", "rows": [{column: value}]}.
void give_out(const Answer& answer, const OutputOptions& options);

/// What limited the solve besides its tolerance, in one line on standard error; nothing where nothing did.
void tell_limits(const ode::SolveReport& report);

}  // namespace fathom::app
