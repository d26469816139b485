#include "fathom/ode/tableau.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fathom/support/error.hpp"

namespace fathom::ode {

namespace {

constexpr double row_sum_tolerance = 1e-13;

bool same_weights(const std::vector<double>& row, const std::vector<double>& b) {
  const std::size_t common = std::min(row.size(), b.size());
  const auto is_zero = [](double weight) { return weight == 0.0; };
  return std::equal(row.begin(), row.begin() + std::ptrdiff_t(common), b.begin()) &&
         std::all_of(row.begin() + std::ptrdiff_t(common), row.end(), is_zero) &&
         std::all_of(b.begin() + std::ptrdiff_t(common), b.end(), is_zero);
}

}  // namespace

int ButcherTableau::control_order() const {
  if (coarse_error.empty()) return error_order();
  const int coarse = 4;  // the coarse pair of dop853 is of order 3, so its error behaves like h^4
  return 2 * error_order() - coarse;
}

int ButcherTableau::error_order() const { return std::min(order, embedded_order) + 1; }

double ButcherTableau::error_constant() const {
  // k_i = lambda z sum_n (h lambda)^n (A^n 1)_i, so that the power q of h lambda in h e k comes with e A^(q-1) 1.
  std::vector<double> powers(error.size(), 1.0);
  for (int n = 1; n < error_order(); ++n) {
    for (std::size_t i = powers.size(); i-- > 0;) {  // from the last: a row reads the ones before it
      const auto end = a[i].begin() + std::ptrdiff_t(std::min(a[i].size(), i));
      powers[i] = std::inner_product(a[i].begin(), end, powers.begin(), 0.0);
    }
  }
  return std::abs(std::inner_product(error.begin(), error.end(), powers.begin(), 0.0));
}

std::optional<std::size_t> ButcherTableau::end_rate_stage() const {
  for (std::size_t i = c.size(); i-- > 1;) {
    if (c[i] == 1.0 && same_weights(a[i], b)) return i;
  }
  return std::nullopt;
}

bool ButcherTableau::first_same_as_last() const {
  const auto stage = end_rate_stage();
  return stage && *stage < stages();
}

std::vector<double> ButcherTableau::dense_weights(double t) const {
  std::vector<double> weights(dense.size());
  dense_weights(t, weights);
  return weights;
}

void ButcherTableau::dense_weights(double t, std::span<double> weights) const {
  for (std::size_t i = 0; i < dense.size(); ++i) {
    double value = 0.0;
    for (std::size_t n = dense[i].size(); n-- > 0;) value = (value + dense[i][n]) * t;
    weights[i] = value;
  }
}

std::vector<double> ButcherTableau::dense_weight_rates(double t) const {
  std::vector<double> rates(dense.size());
  dense_weight_rates(t, rates);
  return rates;
}

void ButcherTableau::dense_weight_rates(double t, std::span<double> rates) const {
  for (std::size_t i = 0; i < dense.size(); ++i) {
    double value = 0.0;
    for (std::size_t n = dense[i].size(); n-- > 0;) value = value * t + double(n + 1) * dense[i][n];
    rates[i] = value;
  }
}

ButcherTableau with_hermite_output(ButcherTableau method) {
  if (!method.end_rate_stage()) {
    method.c.push_back(1.0);
    method.a.push_back(method.b);
  }
  const std::size_t end = *method.end_rate_stage();
  // z(t) = z0 + (3t^2 - 2t^3)(z1 - z0) + h (t - 2t^2 + t^3) f0 + h (t^3 - t^2) f1,  z1 - z0 = h sum_i b_i k_i
  method.dense.assign(method.c.size(), {0.0, 0.0, 0.0});
  for (std::size_t i = 0; i < method.b.size(); ++i)
    method.dense[i] = {0.0, 3.0 * method.b[i], -2.0 * method.b[i]};
  const auto add = [](std::vector<double>& row, double t1, double t2, double t3) {
    row[0] += t1, row[1] += t2, row[2] += t3;
  };
  add(method.dense[0], 1.0, -2.0, 1.0);
  add(method.dense[end], 0.0, -1.0, 1.0);
  method.dense_order = std::min(method.order, 3);
  return method;
}

void check_consistency(const ButcherTableau& method) {
  const auto sized = [&](const auto& part, std::size_t size, const char* what) {
    require(part.size() == size, "method `", method.name, "`: `", what, "` needs ", size, " entries, got ",
            part.size());
  };
  require(!method.b.empty(), "method `", method.name, "` needs at least one stage");
  require(method.c.size() >= method.b.size(), "method `", method.name, "`: `c` needs one entry a stage, got ",
          method.c.size(), " for ", method.b.size());
  sized(method.a, method.c.size(), "a");
  sized(method.dense, method.c.size(), "dense");
  if (method.adaptive()) sized(method.error, method.stages(), "error");
  if (!method.coarse_error.empty()) sized(method.coarse_error, method.stages(), "coarse_error");
  for (std::size_t i = 0; i < method.c.size(); ++i) {
    require(method.a[i].size() <= i, "method `", method.name, "` is not explicit: row ", i, " of `a` has ",
            method.a[i].size(), " entries");
    const double sum = std::accumulate(method.a[i].begin(), method.a[i].end(), 0.0);
    require(std::abs(sum - method.c[i]) < row_sum_tolerance, "method `", method.name, "`: row ", i,
            " of `a` sums to ", sum, " but c is ", method.c[i]);
  }
}

}  // namespace fathom::ode
