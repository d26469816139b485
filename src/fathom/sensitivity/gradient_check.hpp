/// Are the gradients of a solve right? Finite differences of the loss against any sensitivity, as a table.
///
///   const GradientCheck check = check_gradients({.field = field, .z0 = z0, .depths = depths, .loss = loss});
///   std::cout << check.table();
///   check.passed();
///
/// Adaptive steps are found once and repeated for the differences: the steps of a solve are not differentiated, and a
/// grid that jumps between two solves would drown the differences in noise.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fathom/sensitivity/solve.hpp"

namespace fathom {

struct GradientProblem {
  VectorField field;  ///< its parameters must be leaves: they are moved in place and put back
  Tensor z0;
  Tensor depths;  ///< float64
  std::function<Tensor(const Solution&)> loss;
  Solver solver = {};
  Sensitivity sensitivity = Discrete{};
};

struct GradientCheckOptions {
  double tolerance = 1e-6;    ///< largest error allowed, relative to the largest entry of the gradient
  double move = 1e-3;         ///< of each entry, relative to max(1, |entry|); differences are of fourth order
  double depth_move = 1e-5;   ///< of each depth: small, since dense output is smooth only inside a step
  std::int64_t entries = 24;  ///< checked of each tensor at most, spread evenly
};

struct GradientRow {
  std::string variable;
  std::int64_t entries = 0;
  double largest = 0;  ///< entry of the finite-difference gradient
  double error = 0;    ///< relative to it
  bool passed = false;
};

struct GradientCheck {
  std::vector<GradientRow> rows;

  bool passed() const;
  double worst() const;
  std::string table() const;
};

GradientCheck check_gradients(const GradientProblem& problem, const GradientCheckOptions& options = {});

}  // namespace fathom
