#include "fathom/model/one_by_one.hpp"

#include "fathom/model/last_reports.hpp"

namespace fathom {

ApartSolution solve_one_by_one(const VectorField& field, const Tensor& z0, const std::vector<double>& depths,
                               const Solver& solver, const Sensitivity& sensitivity,
                               const std::function<Solution(std::int64_t)>& sample) {
  auto apart = solve_apart(field, z0, depths, solver, sensitivity);
  if (!apart) {
    apart.emplace();
    std::vector<Tensor> states, losses;
    for (std::int64_t i = 0; i < z0.size(0); ++i) {
      const Solution one = sample(i);
      states.push_back(one.states);
      if (one.running_loss.defined()) losses.push_back(one.running_loss);
      apart->reports.push_back(one.shared_report);
    }
    apart->solution.depths = depths;
    apart->solution.states = torch::cat(states, 1);
    if (!losses.empty()) apart->solution.running_loss = torch::cat(losses, 1);
  }
  apart->solution.shared_report = std::make_shared<SolveReport>(mean_of(apart->reports));
  return std::move(*apart);
}

}  // namespace fathom
