/// Problems and comparisons that the gradient tests share.
#pragma once

#include <string>
#include <vector>

#include "fathom/fathom.hpp"

namespace fathom::testing {

inline const auto float64 = torch::kFloat64;

enum class LossKind { terminal, saved_depths, running, mixed, theta_dependent };

inline const std::vector<LossKind> all_losses = {LossKind::terminal, LossKind::saved_depths,
                                                 LossKind::running, LossKind::mixed,
                                                 LossKind::theta_dependent};

std::string name(LossKind kind);

/// z' = tanh(z W + x sin(s + 1/2)) + c s, with a control x, an unused parameter, inner depths, and a loss of the given kind:
/// everything a gradient can be asked for in one solve.
GradientProblem full_problem(LossKind kind, const Solver& solver = {},
                             const Sensitivity& sensitivity = Discrete{});

/// The gradients of z0, depths and all parameters, in this order; zeros where torch returns none.
std::vector<Tensor> gradients(const GradientProblem& problem);

/// Largest difference between two gradients, relative to the largest entry of the second, over all variables.
double distance(const std::vector<Tensor>& given, const std::vector<Tensor>& expected);

/// |a - b| / max(1, |b|), largest over the entries.
double distance(const Tensor& given, const Tensor& expected);

Solver adaptive(ode::ButcherTableau method, double tolerance);
Solver fixed(ode::ButcherTableau method, std::int64_t count);

/// The message of the fathom::Error that `work` throws; a complaint when it throws none.
template <class Work> std::string message_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "nothing was thrown";
}

}  // namespace fathom::testing
