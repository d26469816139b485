#include "fathom/ode/report.hpp"

#include <algorithm>
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
  out << std::setprecision(6);
  if (stopped) out << ", stopped at depth " << reached;
  if (limits.stability_from) out << ", limited by stability from depth " << *limits.stability_from;
  if (limits.resolution > 0) out << ", tolerance below the resolution of the state's type";
  return out.str();
}

SolveReport mean_of(const std::vector<SolveReport>& reports) {
  SolveReport mean = reports.front();
  for (std::size_t i = 1; i < reports.size(); ++i) {
    const SolveReport& one = reports[i];
    mean.evaluations += one.evaluations;
    mean.backward_evaluations += one.backward_evaluations;
    mean.scouting += one.scouting;
    mean.accepted += one.accepted;
    mean.rejected += one.rejected;
    mean.smallest_step = std::min(mean.smallest_step, one.smallest_step);
    mean.largest_step = std::max(mean.largest_step, one.largest_step);
    mean.seconds += one.seconds;
    const double resolution = std::max(mean.limits.resolution, one.limits.resolution);
    if (one.limits.stability_from && !mean.limits.stability_from) mean.limits = one.limits;
    mean.limits.resolution = resolution;
  }
  const std::int64_t count = std::int64_t(reports.size());
  const auto share = [count](auto& total) { total = (total + count - 1) / count; };
  share(mean.evaluations), share(mean.backward_evaluations), share(mean.scouting);
  share(mean.accepted), share(mean.rejected);
  return mean;
}

}  // namespace fathom::ode
