#include "fathom/ode/limits.hpp"

#include <iomanip>
#include <limits>

#include "fathom/support/error.hpp"

namespace fathom::ode {

std::string Limits::advice() const {
  std::string sentences;
  if (stability_from) {
    sentences = text(
        "steps are limited by stability, not by the tolerance, from depth ", *stability_from,
        ": loosening the tolerance saves nothing, and there is no implicit method; what helps is a method of "
        "low order (bosh3), a shorter span, a field with a smaller Jacobian (in training: regularise it), or "
        "a "
        "higher `step_limit`");
  }
  if (resolution > 0) {
    const bool is_double = resolution <= std::numeric_limits<double>::epsilon();
    sentences += text(sentences.empty() ? "" : "; ",
                      "the tolerance is below the resolution of the state's type, ", std::setprecision(2),
                      resolution, ": raise `relative_tolerance`", is_double ? "" : ", or solve in float64");
  }
  return sentences;
}

}  // namespace fathom::ode
