#include "experiments/statistics.hpp"

#include <cmath>
#include <numbers>

#include "fathom/support/error.hpp"

namespace fathom::experiments {

std::vector<double> spaced(double first, double last, std::size_t count) {
  std::vector<double> points(count);
  for (std::size_t i = 0; i < count; ++i)
    points[i] = count == 1 ? first : first + (last - first) * double(i) / double(count - 1);
  return points;
}

Spread spread_of(const std::vector<double>& values) {
  require(!values.empty(), "a mean needs at least one value");
  Spread spread;
  for (double value : values) spread.mean += value / double(values.size());
  if (values.size() < 2) return spread;
  double squares = 0;
  for (double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / double(values.size() - 1));
  return spread;
}

double logarithmic_slope(const std::vector<double>& x, const std::vector<double>& y) {
  require(x.size() == y.size() && x.size() >= 2, "a slope needs two points or more, got ", x.size(), " and ",
          y.size(), " values");
  std::vector<double> log_x, log_y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    require(x[i] > 0 && y[i] > 0, "a logarithmic slope needs positive values, got ", x[i], " and ", y[i]);
    log_x.push_back(std::log(x[i]));
    log_y.push_back(std::log(y[i]));
  }
  const double mean_x = spread_of(log_x).mean, mean_y = spread_of(log_y).mean;
  double above = 0, below = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    above += (log_x[i] - mean_x) * (log_y[i] - mean_y);
    below += (log_x[i] - mean_x) * (log_x[i] - mean_x);
  }
  return above / below;
}

double integral(const std::vector<double>& x, const std::vector<double>& y) {
  require(x.size() == y.size(), "an integral needs a value at every point, got ", x.size(), " and ",
          y.size());
  double sum = 0;
  for (std::size_t i = 1; i < x.size(); ++i) sum += (x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2;
  return sum;
}

double Normal::log_density(double x) const {
  const double t = (x - mean) / deviation;
  return -t * t / 2 - std::log(deviation) - std::log(2 * std::numbers::pi) / 2;
}

double Normal::density(double x) const { return std::exp(log_density(x)); }

std::vector<double> support(const Normal& normal, std::size_t count) {
  constexpr double reach = 6.5;  // deviations: both tails together hold 8e-11
  return spaced(normal.mean - reach * normal.deviation, normal.mean + reach * normal.deviation, count);
}

double divergence(const Normal& p, const std::vector<double>& points, const std::vector<double>& log_q) {
  require(points.size() == log_q.size(), "a divergence needs log q at every point, got ", points.size(),
          " and ", log_q.size());
  std::vector<double> terms;
  for (std::size_t i = 0; i < points.size(); ++i) {
    terms.push_back(p.density(points[i]) * (p.log_density(points[i]) - log_q[i]));
  }
  return integral(points, terms);
}

std::vector<double> kernel_density(const std::vector<double>& samples, const std::vector<double>& at) {
  const double width = 1.06 * spread_of(samples).deviation * std::pow(double(samples.size()), -0.2);
  std::vector<double> densities;
  for (double x : at) {
    double sum = 0;
    for (double sample : samples) sum += Normal{sample, width}.density(x);
    densities.push_back(sum / double(samples.size()));
  }
  return densities;
}

RunMetrics across_seeds(const std::vector<RunMetrics>& runs) {
  require(!runs.empty(), "seeds to put together: at least one, got none");
  RunMetrics whole = runs.front();
  if (runs.size() == 1) return whole;
  for (std::size_t m = 0; m < whole.models.size(); ++m) {
    whole.models[m].figures.clear();
    for (std::size_t f = 0; f < runs[0].models[m].figures.size(); ++f) {
      std::vector<double> values;
      for (const RunMetrics& run : runs) values.push_back(run.models.at(m).figures.at(f).second);
      const Spread spread = spread_of(values);
      const std::string& name = runs[0].models[m].figures[f].first;
      whole.models[m].figures.emplace_back(name, spread.mean);
      whole.models[m].figures.emplace_back(name + " deviation", spread.deviation);
    }
  }
  for (std::size_t v = 0; v < whole.verdicts.size(); ++v) {
    std::vector<double> values;
    std::size_t held = 0;
    for (const RunMetrics& run : runs) {
      values.push_back(run.verdicts.at(v).value);
      held += run.verdicts[v].holds ? 1 : 0;
    }
    whole.verdicts[v].value = spread_of(values).mean;
    whole.verdicts[v].holds = 5 * held >= 4 * runs.size();
    whole.verdicts[v].claim += text(" (", held, " of ", runs.size(), " seeds)");
  }
  return whole;
}

report::Page across_seeds(const report::Page& first, const std::vector<RunMetrics>& runs) {
  report::Page page = first;
  const RunMetrics together = across_seeds(runs);
  page.subtitle += text(", the first of ", runs.size(), " seeds");
  page.verdicts.clear();
  for (const ClaimVerdict& each : together.verdicts)
    page.verdicts.push_back({each.claim, each.value, each.threshold, each.holds});
  report::Table table{.caption = {.title = text("Means and deviations over ", runs.size(), " seeds")},
                      .columns = {"model", "figure", "mean", "deviation"}};
  for (const ModelFigures& model : together.models) {
    for (std::size_t i = 0; i + 1 < model.figures.size(); i += 2) {
      table.rows.push_back({model.name, model.figures[i].first, report::readable(model.figures[i].second),
                            report::readable(model.figures[i + 1].second)});
    }
  }
  page.sections.push_back({.title = "Seeds", .tables = {table}});
  return page;
}

}  // namespace fathom::experiments
