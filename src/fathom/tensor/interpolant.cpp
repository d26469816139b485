#include "fathom/tensor/interpolant.hpp"

#include <algorithm>

#include "fathom/support/error.hpp"

namespace fathom {

Interpolant::Interpolant(ode::ButcherTableau method, std::vector<Part> parts, std::vector<StepRecord> records,
                         Tensor start, double first_depth)
    : method_(std::move(method)),
      parts_(std::move(parts)),
      records_(std::move(records)),
      start_(std::move(start)),
      first_(first_depth) {}

Tensor Interpolant::operator()(double depth) const { return unpack(flat(depth), parts_, 0); }

Tensor Interpolant::flat(double depth) const {
  require(defined(), "this solution has no interpolant; solve with `Solver{.dense = true}`");
  const bool inside = std::min(first(), last()) <= depth && depth <= std::max(first(), last());
  require(inside, "depth ", depth, " is outside the solved span from ", first(), " to ", last());
  if (records_.empty()) return start_;
  const bool forwards = last() >= first();
  const auto before = [&](const StepRecord& record, double at) {
    return forwards ? record.step.end < at : record.step.end > at;
  };
  const auto record = std::lower_bound(records_.begin(), records_.end(), depth, before);
  return interpolate(method_, record->step, record->start, record->stages, record->step.fraction(depth));
}

}  // namespace fathom
