#include "fathom/ode/report.hpp"

#include <iomanip>
#include <sstream>

namespace fathom::ode {

std::string SolveReport::brief() const {
  std::ostringstream out;
  out << evaluations << " evaluations";
  if (backward_evaluations > 0) out << " + " << backward_evaluations << " backwards";
  out << ", " << accepted << " steps accepted, " << rejected << " rejected";
  const double milliseconds = 1e3 * seconds;
  if (milliseconds < 99.5) {
    out << ", " << std::setprecision(2) << milliseconds << " ms";
  } else {
    out << ", " << std::fixed << std::setprecision(0) << milliseconds << " ms" << std::defaultfloat;
  }
  if (!engine.empty()) out << ", " << engine << " engine";
  if (stopped) out << ", stopped at depth " << std::setprecision(6) << reached;
  return out.str();
}

}  // namespace fathom::ode
