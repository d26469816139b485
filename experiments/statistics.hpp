/// Small arithmetic behind verdicts and figures, on plain numbers.
#pragma once

#include <functional>
#include <vector>

#include "fathom/report/page.hpp"
#include "fathom/train/run_folder.hpp"

namespace fathom::experiments {

/// first, ..., last in equal steps.
std::vector<double> spaced(double first, double last, std::size_t count);

struct Spread {
  double mean = 0;
  double deviation = 0;  ///< of a sample: divided by n - 1; 0 for a single value
};
Spread spread_of(const std::vector<double>& values);

/// The slope of log y over log x by least squares: p for y ~ x^p. Values must be positive.
double logarithmic_slope(const std::vector<double>& x, const std::vector<double>& y);

/// int y dx by trapezoids.
double integral(const std::vector<double>& x, const std::vector<double>& y);

struct Normal {
  double mean = 0;
  double deviation = 1;

  double log_density(double x) const;
  double density(double x) const;
};

/// Points that hold all but a billionth of the density's mass.
std::vector<double> support(const Normal& normal, std::size_t count);

/// KL(p || q) = int p (log p - log q) dx on the given points, q by the logarithms of its density there.
double divergence(const Normal& p, const std::vector<double>& points, const std::vector<double>& log_q);

/// The density of samples at the given points: Gaussian kernels with Silverman's width.
std::vector<double> kernel_density(const std::vector<double>& samples, const std::vector<double>& at);

/// One for several seeds: figures become means, each followed by its deviation; a verdict has the mean of its values and
/// holds when it does for at least four fifths of the seeds, which its claim says.
RunMetrics across_seeds(const std::vector<RunMetrics>& runs);
/// The first seed's page with the verdicts of all and a table of means and deviations.
report::Page across_seeds(const report::Page& first, const std::vector<RunMetrics>& runs);

}  // namespace fathom::experiments
