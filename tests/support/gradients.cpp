#include "support/gradients.hpp"

namespace fathom::testing {

std::string name(LossKind kind) {
  switch (kind) {
    case LossKind::terminal: return "terminal";
    case LossKind::saved_depths: return "saved_depths";
    case LossKind::running: return "running";
    case LossKind::mixed: return "mixed";
    case LossKind::theta_dependent: return "theta_dependent";
  }
  return "unknown";
}

void PrintTo(const NamedSensitivity& sensitivity, std::ostream* out) { *out << sensitivity.name; }

const std::vector<NamedSensitivity>& all_sensitivities() {
  static const std::vector<NamedSensitivity> all = {{"Discrete", Discrete{}},
                                                    {"Adjoint", Adjoint{}},
                                                    {"InterpolatedAdjoint", InterpolatedAdjoint{}},
                                                    {"Unrolled", Unrolled{}}};
  return all;
}

GradientProblem full_problem(LossKind kind, const Solver& solver, const Sensitivity& sensitivity) {
  torch::manual_seed(7);
  const Tensor W = torch::randn({2, 2}, float64), x = torch::randn({3, 2}, float64),
               c = torch::randn({2}, float64);
  const Tensor unused = torch::randn({2}, float64);
  GradientProblem problem{.solver = solver, .sensitivity = sensitivity};
  problem.field.rate = [=](const Tensor& s, const Tensor& z) {
    return torch::tanh(z.matmul(W) + x * torch::sin(s + 0.5)) + c * s;
  };
  problem.field.parameters = {W, x, c, unused};
  problem.z0 = torch::randn({3, 2}, float64);
  problem.depths = torch::tensor({0.2, 0.35, 0.63, 0.85}, float64);
  const auto squares = [](const Tensor& states) {
    return (states.square() * torch::arange(1, states.size(0) + 1, float64).view({-1, 1, 1})).sum();
  };
  if (kind == LossKind::running || kind == LossKind::mixed) {
    problem.field.running_loss = [](const Tensor& s, const Tensor& z, const Tensor&) {
      return (z - s).square().sum(1);
    };
  }
  if (kind == LossKind::theta_dependent) {
    problem.field.running_loss = [=](const Tensor& s, const Tensor& z, const Tensor& rate) {
      return rate.square().sum(1) + (z * W.sum() + c * s).square().sum(1);
    };
  }
  problem.loss = [=](const Solution& solution) {
    switch (kind) {
      case LossKind::terminal: return solution.states[-1].square().sum();
      case LossKind::saved_depths: return squares(solution.states);
      case LossKind::running: return 0.3 * solution.running_loss[-1].mean();
      case LossKind::mixed: return squares(solution.states) + 0.7 * solution.running_loss.square().sum();
      case LossKind::theta_dependent:
        return solution.states[-1].mul(W.sum()).square().sum() + solution.running_loss[-1].sum();
    }
    return Tensor{};
  };
  return problem;
}

std::vector<Tensor> gradients(const GradientProblem& problem) {
  std::vector<Tensor> wanted = {problem.z0, problem.depths};
  wanted.insert(wanted.end(), problem.field.parameters.begin(), problem.field.parameters.end());
  for (Tensor& tensor : wanted) tensor.requires_grad_();
  const Solution solution =
      solve(problem.field, problem.z0, problem.depths, problem.solver, problem.sensitivity);
  auto found = torch::autograd::grad({problem.loss(solution)}, wanted, {}, false, false, true);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) found[i] = torch::zeros_like(wanted[i].detach());
  }
  return found;
}

Tensor gradient(const Tensor& loss, const Tensor& variable) {
  const Tensor found = torch::autograd::grad({loss}, {variable}, {}, /*retain_graph=*/true,
                                             /*create_graph=*/false, /*allow_unused=*/true)[0];
  return found.defined() ? found : torch::zeros_like(variable.detach());
}

Tensor variable(double value) { return torch::scalar_tensor(value, float64).requires_grad_(); }

Tensor variables(const std::vector<double>& values) {
  return torch::tensor(values, float64).requires_grad_();
}

double distance(const std::vector<Tensor>& given, const std::vector<Tensor>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double scale = std::max(expected[i].abs().max().item<double>(), 1e-3);
    worst = std::max(worst, (given[i] - expected[i]).abs().max().item<double>() / scale);
  }
  return worst;
}

double distance(const Tensor& given, const Tensor& expected) {
  return ((given - expected).abs() / expected.abs().clamp_min(1.0)).max().item<double>();
}

Solver adaptive(ode::ButcherTableau method, double tolerance) {
  return {.method = std::move(method),
          .steps = AdaptiveSteps{.relative_tolerance = tolerance, .absolute_tolerance = tolerance}};
}

Solver fixed(ode::ButcherTableau method, std::int64_t count) {
  return {.method = std::move(method), .steps = FixedSteps{.count = count}};
}

}  // namespace fathom::testing
