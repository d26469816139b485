/// A finished solve as a function of depth: the dense output of every step, joined.
///
///   const Solution solution = solve(field, z0, {0.0, 1.0}, {.dense = true});
///   solution.interpolant(0.37);   // z(0.37), without graph
#pragma once

#include <vector>

#include "fathom/tensor/engine.hpp"

namespace fathom {

class Interpolant {
 public:
  Interpolant() = default;
  /// `records` of an engine that kept its stages; `start` for a solve without steps.
  Interpolant(ode::ButcherTableau method, std::vector<Part> parts, std::vector<StepRecord> records,
              Tensor start, double first_depth);

  bool defined() const { return start_.defined(); }
  double first() const { return first_; }
  double last() const { return records_.empty() ? first_ : records_.back().step.end; }

  /// The state, of the shape it was given in.
  Tensor operator()(double depth) const;
  /// State and running loss as one flat vector.
  Tensor flat(double depth) const;

 private:
  ode::ButcherTableau method_;
  std::vector<Part> parts_;
  std::vector<StepRecord> records_;
  Tensor start_;
  double first_ = 0;
};

}  // namespace fathom
