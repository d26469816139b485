/// The shortest way to solve an equation without tensors: one set of options for the loop and its engine.
///   z' = f(s, z),   z(depths[0]) = start     ->     states[i] = z(depths[i])
///
///   const auto decay = [](double, const auto& z, auto& rate) { rate[0] = -z[0]; };
///   ode::solve(decay, {1.0}, {0.0, 1.0}, {.method = dopri5()}).states.back();   // {0.3679}
#pragma once

#include <vector>

#include "fathom/ode/integrate.hpp"
#include "fathom/ode/plain_engine.hpp"

namespace fathom::ode {

struct PlainSolution {
  std::vector<PlainEngine::State> states;  ///< one a depth; fewer after an early stop
  SolveReport report;
};

PlainSolution solve(PlainEngine::Rate rate, PlainEngine::State start, const std::vector<double>& depths,
                    const Plan& options = {});

}  // namespace fathom::ode
