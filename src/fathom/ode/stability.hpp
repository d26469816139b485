/// Are steps limited by the method's stability instead of the tolerance? Two stages at one depth measure the field's slope for
/// nothing (HNW IV.2), and steps of a stiff problem stay where it is the end of the method's interval of stability:
///   h L = |k_i - k_j| / |sum_m (a_im - a_jm) k_m|   with c_i = c_j
///
///   const StabilityGauge gauge = *stability_gauge(dopri5());
///   gauge.bound;   // 3.31: on z' = lambda z, errors grow from step to step below h lambda = -3.31
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fathom/ode/limits.hpp"
#include "fathom/ode/step.hpp"
#include "fathom/ode/tableau.hpp"

namespace fathom::ode {

/// The end of the method's interval of stability on the negative real axis, the first x with |R(-x)| > 1; none up to 1000.
std::optional<double> stability_bound(const ButcherTableau& method);

/// Weights of the stages for h L. The rate at the end of the step counts as a stage even where it serves dense output only: the next
/// step begins with it.
struct StabilityGauge {
  std::vector<double> rates = {};      ///< of the difference of two rates ...
  std::vector<double> arguments = {};  ///< ... and of that of the states that they belong to
  double bound = 0;
};

/// None for a method without two stages at one depth (bosh3, ralston2), or without error estimate.
std::optional<StabilityGauge> stability_gauge(const ButcherTableau& method);

/// What an engine found in an accepted step, in norms scaled by the tolerance.
struct StepSlope {
  double rates = 0;      ///< of gauge.rates
  double arguments = 0;  ///< of gauge.arguments
  double rounding = 0;   ///< of the state
};

/// Every now and then looks whether h L is at the bound; if so, at every step until it is certain. Costs no evaluation.
class StabilityWatch {
 public:
  /// Without a gauge it never asks.
  explicit StabilityWatch(const StabilityGauge* gauge = nullptr) : gauge_(gauge) {}

  /// Is the slope of the step wanted that was accepted as the n-th?
  bool asks(std::int64_t n) const;
  void see(const Step& step, const StepSlope& slope);

  const StabilityGauge& gauge() const { return *gauge_; }
  /// The depth from which stability limits the steps.
  std::optional<double> limited_from() const { return limited_from_; }
  StepLimit limit() const;

 private:
  const StabilityGauge* gauge_;
  std::int64_t seen_ = 0;
  int suspicious_ = 0;  // steps at the bound, without many innocent ones in a row between them
  int innocent_ = 0;    // in a row
  double since_ = 0;    // start of the first suspicious one
  std::optional<double> limited_from_ = {};
};

}  // namespace fathom::ode
