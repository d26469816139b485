#include "fathom/ode/solve.hpp"

#include <cmath>
#include <utility>

#include "fathom/support/not_finite.hpp"

namespace fathom::ode {

PlainSolution solve(PlainEngine::Rate rate, PlainEngine::State start, const std::vector<double>& depths,
                    const Plan& options) {
  require(bool(rate), "a solve needs a rate function f(s, z, rate), got none");
  for (std::size_t n = 0; n < start.size(); ++n) {
    if (!std::isfinite(start[n]))
      throw NotFinite(text("`start` must be finite, got ", start[n], " at place ", n));
  }
  const auto* adaptive = std::get_if<AdaptiveSteps>(&options.steps);
  PlainEngine engine(std::move(rate), std::move(start), options.method,
                     adaptive ? *adaptive : AdaptiveSteps{});
  PlainSolution solution;
  solution.report = integrate(engine, options, depths);
  solution.states = engine.saved();
  return solution;
}

}  // namespace fathom::ode
