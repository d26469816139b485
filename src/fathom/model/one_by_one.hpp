/// Samples with steps of their own.
#pragma once

#include <functional>
#include <vector>

#include "fathom/sensitivity/solve.hpp"

namespace fathom {

/// Every sample as if it were alone: all in one piece where the fused engine can, else by one solve after another, each of which is
/// `sample(i)`.
ApartSolution solve_one_by_one(const VectorField& field, const Tensor& z0, const std::vector<double>& depths,
                               const Solver& solver, const Sensitivity& sensitivity,
                               const std::function<Solution(std::int64_t)>& sample);

}  // namespace fathom
