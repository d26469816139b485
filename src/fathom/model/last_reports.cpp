#include "fathom/model/last_reports.hpp"

namespace fathom {

SolveReport mean_of(const std::vector<std::shared_ptr<SolveReport>>& reports) {
  std::vector<SolveReport> copies;
  for (const auto& one : reports) copies.push_back(*one);
  return ode::mean_of(copies);
}

}  // namespace fathom
