#include "fathom/ode/failure.hpp"

#include <cmath>
#include <utility>

namespace fathom::ode {

namespace {

/// "z[3, 1] = nan" -> "z[3, 1] is nan"
std::string told(std::string component) {
  const std::size_t sign = component.find(" = ");
  return sign == std::string::npos ? component : component.replace(sign, 3, " is ");
}

std::string happened(FailureReason reason, const FailureSite& site, const std::string& detail) {
  switch (reason) {
    case FailureReason::non_finite:
      return site.component.empty() ? "a value became NaN or infinite" : told(site.component);
    case FailureReason::step_too_small: return "steps became too small";
    case FailureReason::too_many_steps: return detail;
    case FailureReason::field_threw: return "the field threw \"" + detail + "\"";
  }
  return detail;
}

const char* remedy_of_many_steps(StepLimit limit) {
  switch (limit) {
    case StepLimit::tolerance:
      return "; the tolerance limits the steps, not stability: loosen `relative_tolerance`, raise "
             "`step_limit`, or name jumps of the field as `break_points`";
    case StepLimit::unknown:
      return "; raise `step_limit`, or loosen `relative_tolerance`; where that saves no steps, the field is "
             "stiff (dopri5 and tsit5 tell after some 120 steps)";
    case StepLimit::grid:
    case StepLimit::stability: break;
  }
  return "";
}

std::string remedy(FailureReason reason, const FailureSite& site) {
  const std::string known = site.limits.advice();
  const std::string limits = known.empty() ? "" : "; " + known;
  switch (reason) {
    case FailureReason::non_finite:
      return text("; check the field for overflow, logarithms or roots of negative values there, and the ",
                  "data for NaN",
                  site.limits.steps == StepLimit::grid
                      ? "; fixed steps that are too long overflow: take more steps"
                      : "",
                  limits);
    case FailureReason::step_too_small:
      return text(
          "; the solution may blow up there, or the field jump: end the solve before it blows up, name jumps "
          "as `break_points`, or loosen `relative_tolerance` for a field that is noisy",
          limits);
    case FailureReason::too_many_steps: return remedy_of_many_steps(site.limits.steps) + limits;
    case FailureReason::field_threw: return "";
  }
  return "";
}

}  // namespace

const char* name(FailureReason reason) {
  switch (reason) {
    case FailureReason::non_finite: return "non_finite";
    case FailureReason::step_too_small: return "step_too_small";
    case FailureReason::too_many_steps: return "too_many_steps";
    case FailureReason::field_threw: return "field_threw";
  }
  return "unknown";
}

SolveFailure::SolveFailure(FailureReason why, FailureSite where, const std::string& detail)
    : Error(text("solve failed at depth ", where.depth, ": ", happened(why, where, detail), " (step size ",
                 std::abs(where.step), ", evaluation ", where.evaluations, ")", remedy(why, where))),
      reason(why),
      site(std::move(where)),
      detail_(detail) {}

SolveFailure SolveFailure::of_sample(std::int64_t number) const {
  FailureSite there = site;
  if (const std::size_t first = there.component.find("[0"); first != std::string::npos)
    there.component.replace(first + 1, 1, std::to_string(number));
  return {reason, std::move(there), detail_};
}

}  // namespace fathom::ode
