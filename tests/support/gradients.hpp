/// Problems and comparisons that the gradient tests share.
#pragma once

#include <gtest/gtest.h>

#include <optional>
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

struct NamedSensitivity {
  std::string name;
  Sensitivity value;
};

void PrintTo(const NamedSensitivity& sensitivity, std::ostream* out);

/// Discrete, Adjoint, InterpolatedAdjoint and Unrolled, each with its defaults.
const std::vector<NamedSensitivity>& all_sensitivities();

/// A test that must hold whichever way the solve is differentiated.
class EverySensitivity : public ::testing::TestWithParam<NamedSensitivity> {
 protected:
  const Sensitivity& sensitivity() const { return GetParam().value; }
};

inline std::string name_of(const ::testing::TestParamInfo<NamedSensitivity>& test) { return test.param.name; }

/// z' = tanh(z W + x sin(s + 1/2)) + c s, with a control x, an unused parameter, inner depths, and a loss of the given kind:
/// everything a gradient can be asked for in one solve.
GradientProblem full_problem(LossKind kind, const Solver& solver = {},
                             const Sensitivity& sensitivity = Discrete{});

/// The gradients of z0, depths and all parameters, in this order; zeros where torch returns none.
std::vector<Tensor> gradients(const GradientProblem& problem);

/// Largest difference between two gradients, relative to the largest entry of the second, over all variables.
double distance(const std::vector<Tensor>& given, const std::vector<Tensor>& expected);

/// The gradient of a scalar with respect to one tensor; zeros where torch returns none.
Tensor gradient(const Tensor& loss, const Tensor& variable);

/// A float64 scalar or vector that wants a gradient.
Tensor variable(double value);
Tensor variables(const std::vector<double>& values);

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

/// How the solve inside `work` failed; empty when it did not.
template <class Work> std::optional<SolveFailure> failure_of(Work&& work) {
  try {
    work();
  } catch (const SolveFailure& failure) { return failure; }
  return std::nullopt;
}

}  // namespace fathom::testing
