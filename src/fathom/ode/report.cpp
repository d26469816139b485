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

SolveReport sum_of(const std::vector<SolveReport>& reports) {
  SolveReport sum = reports.front();
  for (std::size_t i = 1; i < reports.size(); ++i) {
    const SolveReport& one = reports[i];
    sum.evaluations += one.evaluations;
    sum.backward_evaluations += one.backward_evaluations;
    sum.scouting += one.scouting;
    sum.accepted += one.accepted;
    sum.rejected += one.rejected;
    sum.smallest_step = std::min(sum.smallest_step, one.smallest_step);
    sum.largest_step = std::max(sum.largest_step, one.largest_step);
    sum.seconds += one.seconds;
    const double resolution = std::max(sum.limits.resolution, one.limits.resolution);
    if (one.limits.stability_from && !sum.limits.stability_from) sum.limits = one.limits;
    sum.limits.resolution = resolution;
  }
  return sum;
}

SolveReport mean_of(const std::vector<SolveReport>& reports) {
  SolveReport mean = sum_of(reports);
  const std::int64_t count = std::int64_t(reports.size());
  const auto share = [count](auto& total) { total = (total + count - 1) / count; };
  share(mean.evaluations), share(mean.backward_evaluations), share(mean.scouting);
  share(mean.accepted), share(mean.rejected);
  return mean;
}

}  // namespace fathom::ode
