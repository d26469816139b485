/// The one family of exceptions of a solve that cannot go on. Its text says where, after how much work, and what to do.
///
///   try { ... } catch (const SolveFailure& failure) { if (failure.reason == FailureReason::non_finite) ... }
#pragma once

#include <cstdint>
#include <string>

#include "fathom/ode/limits.hpp"
#include "fathom/support/error.hpp"

namespace fathom::ode {

enum class FailureReason {
  non_finite,      ///< NaN or infinity that smaller steps do not cure
  step_too_small,  ///< the error stays above tolerance down to the resolution of depth, or to `smallest_step`
  too_many_steps,  ///< `step_limit` reached
  field_threw      ///< the field itself threw; its exception is nested
};

const char* name(FailureReason reason);

/// Where a solve stood when it failed.
struct FailureSite {
  double depth = 0;
  double step = 0;
  std::int64_t evaluations = 0;
  std::string component = {};  ///< for example "z[3, 1] = nan"; empty when no single one is to blame
  Limits limits = {};
};

class SolveFailure : public Error {
 public:
  SolveFailure(FailureReason reason, FailureSite site, const std::string& detail);

  /// The same of sample `number`, which was solved as a batch of one.
  SolveFailure of_sample(std::int64_t number) const;

  const FailureReason reason;
  const FailureSite site;

 private:
  std::string detail_;
};

}  // namespace fathom::ode
