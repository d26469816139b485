/// The order of a Runge-Kutta method by rooted trees (HNW II.2): it has order p when for every tree t of at most p nodes
///   sum_i b_i u_i(t) = 1 / gamma(t),   u_i([t1 ... tm]) = prod_k sum_j a_ij u_j(tk),   gamma(t) = |t| prod_k gamma(tk),
/// and its interpolant has order q when  sum_i b_i(theta) u_i(t) = theta^|t| / gamma(t)  up to q nodes.
///
///   order_residual(dopri5(), dopri5().b, 5);   // 1e-15
///   order_residual(dopri5(), dopri5().b, 6);   // 3e-4
#pragma once

#include <vector>

#include "fathom/ode/tableau.hpp"

namespace fathom::ode {

/// Largest violation of a condition of exactly `order` nodes by `weights` (one a stage) at a fraction of the step.
double order_residual(const ButcherTableau& method, const std::vector<double>& weights, int order,
                      double fraction = 1.0);

/// How many rooted trees have `order` nodes: 1, 1, 2, 4, 9, 20, 48, 115.
std::size_t rooted_tree_count(int order);

}  // namespace fathom::ode
