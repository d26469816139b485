#include "fathom/ode/failure.hpp"

#include <cmath>
#include <utility>

namespace fathom::ode {

namespace {

std::string happened(FailureReason reason, const FailureSite& site, const std::string& detail) {
  switch (reason) {
    case FailureReason::non_finite:
      return site.component.empty() ? "a value became NaN or infinite" : site.component + " is not finite";
    case FailureReason::step_too_small: return text("step size fell to ", std::abs(site.step));
    case FailureReason::too_many_steps: return detail;
    case FailureReason::field_threw: return "the field threw \"" + detail + "\"";
  }
  return detail;
}

const char* remedy(FailureReason reason) {
  switch (reason) {
    case FailureReason::non_finite:
      return "; check the field for overflow, logarithms or roots of negative values there, and the data for "
             "NaN; with "
             "FixedSteps, take more steps";
    case FailureReason::step_too_small:
      return "; the solution may blow up or the field be stiff or discontinuous there: loosen "
             "`relative_tolerance`, "
             "name jumps as `break_points`, or choose FixedSteps";
    case FailureReason::too_many_steps:
      return "; the field may be stiff: loosen `relative_tolerance`, raise `step_limit`, or choose "
             "FixedSteps";
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
    : Error(text("solve failed at depth ", where.depth, ": ", happened(why, where, detail), " (step ",
                 where.step, ", evaluation ", where.evaluations, ")", remedy(why))),
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
