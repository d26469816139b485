#include "fathom/ode/stability.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fathom::ode {

namespace {

/// Of R(z) = 1 + sum_n (b^T A^n 1) z^(n+1).
std::vector<double> stability_polynomial(const ButcherTableau& method) {
  std::vector<double> coefficients = {1.0}, powers(method.stages(), 1.0);
  for (std::size_t n = 0; n < method.stages(); ++n) {
    coefficients.push_back(std::inner_product(method.b.begin(), method.b.end(), powers.begin(), 0.0));
    for (std::size_t i = powers.size(); i-- > 0;) {  // from the last: a row reads the ones before it
      const auto end = method.a[i].begin() + std::ptrdiff_t(std::min(method.a[i].size(), i));
      powers[i] = std::inner_product(method.a[i].begin(), end, powers.begin(), 0.0);
    }
  }
  return coefficients;
}

/// Two stages at one depth. Of several pairs the latest: its difference went through the field most often, so that the steepest
/// directions prevail in it.
std::optional<std::pair<std::size_t, std::size_t>> stages_at_one_depth(const ButcherTableau& method) {
  std::size_t last = method.stages();
  const std::optional<std::size_t> end = method.end_rate_stage();
  if (end && *end == last) ++last;  // a dense stage that the next step begins with
  for (std::size_t j = last; j-- > 1;) {
    for (std::size_t i = j; i-- > 1;) {
      if (method.c[i] == method.c[j] && method.a[i] != method.a[j]) return {{i, j}};
    }
  }
  return {};
}

}  // namespace

std::optional<double> stability_bound(const ButcherTableau& method) {
  constexpr double step = 0.05, farthest = 1000, rounding = 1e-10;
  const std::vector<double> coefficients = stability_polynomial(method);
  const auto is_stable = [&](double x) {
    double value = 0;
    for (std::size_t n = coefficients.size(); n-- > 0;) value = coefficients[n] - x * value;
    return std::abs(value) <= 1 + rounding;
  };
  for (double inside = 0, outside = step; outside <= farthest; inside = outside, outside += step) {
    if (is_stable(outside)) continue;
    while (outside - inside > 1e-6) {
      const double middle = (inside + outside) / 2;
      (is_stable(middle) ? inside : outside) = middle;
    }
    return inside;
  }
  return {};
}

std::optional<StabilityGauge> stability_gauge(const ButcherTableau& method) {
  if (!method.adaptive()) return {};
  const auto pair = stages_at_one_depth(method);
  const auto bound = pair ? stability_bound(method) : std::nullopt;
  if (!bound) return {};
  const auto [i, j] = *pair;
  StabilityGauge gauge{.rates = std::vector<double>(j + 1), .arguments = method.a[j], .bound = *bound};
  gauge.rates[i] = -1, gauge.rates[j] = 1;
  gauge.arguments.resize(j);
  for (std::size_t m = 0; m < method.a[i].size(); ++m) gauge.arguments[m] -= method.a[i][m];
  return gauge;
}

bool StabilityWatch::asks(std::int64_t n) const {
  constexpr std::int64_t every = 16;  // a solve of fewer steps has no trouble with stability
  return gauge_ && !limited_from_ && (suspicious_ > 0 || n % every == 0);
}

void StabilityWatch::see(const Step& step, const StepSlope& slope) {
  // The codes of HNW are certain after 15 suspicious steps and begin again after 6 innocent ones in a row. Here there must be enough of
  // them to be worth a word: many a harmless solve ends in a few dozen steps near a state of rest.
  constexpr int certain = 100, enough_innocent = 6;
  constexpr double near_bound = 0.9;  // steps swing around it
  constexpr double clear_of_rounding = 10;
  if (!std::isfinite(slope.rates) || !std::isfinite(slope.arguments)) return;
  ++seen_;
  const bool is_measured = std::abs(step.size()) * slope.arguments > clear_of_rounding * slope.rounding;
  if (is_measured && slope.rates >= near_bound * gauge_->bound * slope.arguments) {
    if (suspicious_ == 0) since_ = step.start;
    innocent_ = 0;
    if (++suspicious_ == certain) limited_from_ = since_;
  } else if (suspicious_ > 0 && ++innocent_ == enough_innocent) {
    suspicious_ = innocent_ = 0;
  }
}

StepLimit StabilityWatch::limit() const {
  if (limited_from_) return StepLimit::stability;
  return seen_ == 0 || suspicious_ > 0 ? StepLimit::unknown : StepLimit::tolerance;
}

}  // namespace fathom::ode
