#include "fathom/model/last_reports.hpp"

#include <algorithm>

namespace fathom {

SolveReport mean_of(const std::vector<std::shared_ptr<SolveReport>>& reports) {
  SolveReport mean = *reports.front();
  for (std::size_t i = 1; i < reports.size(); ++i) {
    const SolveReport& one = *reports[i];
    mean.evaluations += one.evaluations;
    mean.backward_evaluations += one.backward_evaluations;
    mean.scouting += one.scouting;
    mean.accepted += one.accepted;
    mean.rejected += one.rejected;
    mean.smallest_step = std::min(mean.smallest_step, one.smallest_step);
    mean.largest_step = std::max(mean.largest_step, one.largest_step);
    mean.seconds += one.seconds;
  }
  const std::int64_t count = std::int64_t(reports.size());
  for (std::int64_t* total :
       {&mean.evaluations, &mean.backward_evaluations, &mean.scouting, &mean.accepted, &mean.rejected}) {
    *total = (*total + count - 1) / count;
  }
  return mean;
}

}  // namespace fathom
