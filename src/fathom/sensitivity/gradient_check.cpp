#include "fathom/sensitivity/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

struct Variable {
  std::string name;
  Tensor tensor;
  double move;
};

double loss_value(const GradientProblem& problem, const Solver& solver) {
  const torch::NoGradGuard no_graph;
  return problem.loss(solve(problem.field, problem.z0, problem.depths, solver)).item<double>();
}

/// Puts a moved entry back, also when the loss throws.
class Restore {
 public:
  explicit Restore(Tensor entry) : entry_(std::move(entry)), value_(entry_.item<double>()) {}
  Restore(const Restore&) = delete;
  ~Restore() { entry_.fill_(value_); }

 private:
  Tensor entry_;
  double value_;
};

/// (8 (L(+h) - L(-h)) - (L(+2h) - L(-2h))) / 12 h
double difference(const GradientProblem& problem, const Solver& solver, Tensor entry, double move) {
  const torch::NoGradGuard no_graph;
  const Restore restore(entry);
  const double value = entry.item<double>();
  const double h = move * std::max(1.0, std::abs(value));
  const auto at = [&](double offset) {
    entry.fill_(value + offset);
    return loss_value(problem, solver);
  };
  const double near = at(h) - at(-h), far = at(2 * h) - at(-2 * h);
  return (8 * near - far) / (12 * h);
}

GradientRow compare(const GradientProblem& problem, const Solver& solver, const Variable& variable,
                    const Tensor& gradient, double loss, const GradientCheckOptions& options) {
  GradientRow row{.variable = variable.name};
  // A view that shares memory, so that a moved entry moves the variable itself.
  const Tensor flat = variable.tensor.detach().view(-1);
  const std::int64_t size = flat.numel();
  const std::int64_t stride = std::max<std::int64_t>(1, (size + options.entries - 1) / options.entries);
  double worst = 0;
  for (std::int64_t i = 0; i < size && row.entries < options.entries; i += stride, ++row.entries) {
    const double exact = difference(problem, solver, flat[i], variable.move);
    const double given = gradient.defined() ? gradient.reshape(-1)[i].item<double>() : 0.0;
    row.largest = std::max(row.largest, std::abs(exact));
    const double apart = std::abs(given - exact);
    worst = std::isfinite(apart) ? std::max(worst, apart) : INFINITY;
  }
  const double noise_floor =
      1e-6 * std::max(std::abs(loss), 1e-3);  // a gradient of zero has no scale of its own
  row.error = worst / std::max(row.largest, noise_floor);
  row.passed = row.error <= options.tolerance;
  return row;
}

}  // namespace

bool GradientCheck::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const GradientRow& row) { return row.passed; });
}

double GradientCheck::worst() const {
  double error = 0;
  for (const GradientRow& row : rows) error = std::max(error, row.error);
  return error;
}

std::string GradientCheck::table() const {
  std::size_t width = 8;
  for (const GradientRow& row : rows) width = std::max(width, row.variable.size());
  std::ostringstream out;
  out << std::left << std::setw(int(width)) << "variable"
      << "  entries     largest   rel. error\n"
      << std::right;
  for (const GradientRow& row : rows) {
    out << std::left << std::setw(int(width)) << row.variable << std::right << std::setw(9) << row.entries
        << std::scientific << std::setprecision(3) << std::setw(12) << row.largest << std::setw(13)
        << row.error << (row.passed ? "  ok" : "  WRONG") << "\n";
  }
  return out.str();
}

GradientCheck check_gradients(const GradientProblem& problem, const GradientCheckOptions& options) {
  require(options.entries > 0, "`entries` must be positive, got ", options.entries);
  std::vector<Variable> variables = {{"z0", problem.z0, options.move},
                                     {"depths", problem.depths, options.depth_move}};
  for (std::size_t i = 0; i < problem.field.parameters.size(); ++i) {
    variables.push_back({text("parameter ", i), problem.field.parameters[i], options.move});
  }
  std::vector<Tensor> wanted;
  for (Variable& variable : variables) {
    require(variable.tensor.is_leaf(), "`", variable.name,
            "` must be a leaf tensor, got the result of a computation");
    require(variable.tensor.scalar_type() == torch::kFloat64, "gradients are checked in float64, got `",
            variable.name, "` of type ", variable.tensor.scalar_type());
    require(variable.tensor.is_contiguous(), "`", variable.name, "` must be contiguous");
    variable.tensor.requires_grad_();
    wanted.push_back(variable.tensor);
  }
  const Solution solution =
      solve(problem.field, problem.z0, problem.depths, problem.solver, problem.sensitivity);
  const Tensor loss = problem.loss(solution);
  require(loss.numel() == 1, "the loss must be a scalar, got shape ", loss.sizes());
  const auto gradients = torch::autograd::grad({loss}, wanted, {}, false, false, /*allow_unused=*/true);

  Solver repeated = problem.solver;
  if (std::holds_alternative<AdaptiveSteps>(repeated.steps)) repeated.steps = steps_along(solution.grid);
  GradientCheck check;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    check.rows.push_back(
        compare(problem, repeated, variables[i], gradients[i], loss.item<double>(), options));
  }
  return check;
}

}  // namespace fathom
