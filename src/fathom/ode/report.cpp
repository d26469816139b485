#include "fathom/ode/report.hpp"

#include <iomanip>
#include <sstream>

namespace fathom::ode {

std::string SolveReport::brief() const {
  std::ostringstream out;
  out << evaluations << " evaluations";
  if (backward_evaluations > 0) out << " + " << backward_evaluations << " backwards";
  out << ", " << accepted << " steps accepted, " << rejected << " rejected";
  out << ", " << std::setprecision(2) << 1e3 * seconds << " ms";
  if (!engine.empty()) out << ", " << engine << " engine";
  if (stopped) out << ", stopped at depth " << std::setprecision(6) << reached;
  return out.str();
}

}  // namespace fathom::ode
