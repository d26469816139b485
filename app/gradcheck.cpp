/// `fathom gradcheck`: finite differences against the gradients of a solve, on this machine, with this libtorch.
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "names.hpp"

namespace fathom::app {

namespace {

struct Request {
  std::string field = "controlled";
  std::string solver = "dopri5";
  std::string gradient = "all";
  double solver_tolerance = 1e-12;
  double tolerance = 1e-6;
};

/// tanh with the derivative 1 - y where it should be 1 - y^2: what a mistake looks like.
class WrongTanh : public torch::autograd::Function<WrongTanh> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& h) {
    const Tensor y = h.tanh();
    context->save_for_backward({y});
    return y;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    return {grads[0] * (1 - context->get_saved_variables()[0])};
  }
};

const std::vector<std::string> field_names = {"vanilla",    "concat",       "galerkin", "stacked",
                                              "controlled", "second-order", "wrong"};

/// State of 4 features for all of them, so that one problem serves.
Field field_named(const std::string& name) {
  checked_name("field", name, field_names);
  constexpr std::int64_t d = 4, hidden = 5;
  if (name == "concat")
    return depth_varying(mlp({.features = {d, hidden, d}, .depth = DepthInput::every_layer}));
  if (name == "galerkin")
    return depth_varying(mlp({.features = {d, hidden, d}, .basis = fourier({.harmonics = 2})}));
  if (name == "stacked") {
    return depth_varying(mlp({.features = {d, hidden, d}, .basis = piecewise_constant({.pieces = 3})}));
  }
  if (name == "controlled") return controlled(mlp({.features = {2 * d, hidden, d}}));
  if (name == "second-order") return higher_order(autonomous(mlp({.features = {d, hidden, d / 2}})), 2);
  if (name == "wrong") {
    const Tensor weight = torch::randn({d, d}, torch::kFloat64).requires_grad_();
    return own_field({.rate = [=](const Tensor&, const Tensor&,
                                  const Tensor& z) { return WrongTanh::apply(z.matmul(weight)); },
                      .parameters = {weight}});
  }
  return autonomous(mlp({.features = {d, hidden, d}}));
}

GradientProblem problem(const Request& request) {
  torch::manual_seed(0);
  const Field field = field_named(request.field);
  field->to(torch::kFloat64);
  const Tensor x = torch::randn({3, 4}, torch::kFloat64);
  GradientProblem problem;
  problem.field.parameters = field->parameters();
  for (const Tensor& extra : field->extra_parameters()) problem.field.parameters.push_back(extra);
  if (field->is_controlled()) problem.field.parameters.push_back(x);
  problem.field.rate = [=](const Tensor& s, const Tensor& z) { return field->rate(s, x, z); };
  problem.field.break_points = field->break_points();
  problem.field.running_loss = [](const Tensor&, const Tensor& z, const Tensor& rate) {
    return (z.square() + rate.square()).sum(1);
  };
  problem.z0 = torch::randn({3, 4}, torch::kFloat64);
  problem.depths = torch::tensor({0.0, 0.4, 1.0}, torch::kFloat64);
  problem.loss = [](const Solution& solution) {
    return solution.states.square().sum() + solution.running_loss[-1].sum();
  };
  const AdaptiveSteps adaptive{.relative_tolerance = request.solver_tolerance,
                               .absolute_tolerance = request.solver_tolerance};
  problem.solver.method = method_named(request.solver);
  if (problem.solver.method->adaptive())
    problem.solver.steps = adaptive;
  else
    problem.solver.steps = FixedSteps{.count = 20};
  return problem;
}

int check(const Request& request) {
  const bool all = request.gradient == "all";
  if (!all) checked_name("gradient", request.gradient, sensitivity_names());
  bool passed = true;
  for (const std::string& name : all ? sensitivity_names() : std::vector{request.gradient}) {
    GradientProblem each = problem(request);
    each.sensitivity = sensitivity_named(name);
    const GradientCheck check = check_gradients(each, {.tolerance = request.tolerance});
    std::cout << request.field << " field, " << request.solver << ", " << name << " gradient:\n"
              << check.table() << "\n";
    passed = passed && check.passed();
  }
  std::cout << (passed ? "All gradients agree with finite differences.\n" : "A gradient is WRONG.\n");
  return passed ? success : failure;
}

}  // namespace

void add_gradcheck(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("gradcheck", "Compare gradients of a solve with finite differences");
  command
      ->add_option("--field", request->field,
                   "vanilla, concat, galerkin, stacked, controlled, second-order, or wrong")
      ->capture_default_str();
  command->add_option("--solver", request->solver, "A method of `fathom solvers`")->capture_default_str();
  command
      ->add_option("--gradient", request->gradient,
                   "discrete, adjoint, interpolated-adjoint, unrolled, or all")
      ->capture_default_str();
  command->add_option("--rtol", request->solver_tolerance, "Tolerance of the solves")
      ->check(CLI::PositiveNumber);
  command->add_option("--tolerance", request->tolerance, "Largest relative error that passes")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->footer(
      "Examples:\n"
      "  fathom gradcheck\n"
      "  fathom gradcheck --field galerkin --solver tsit5 --gradient adjoint\n"
      "  fathom gradcheck --field wrong      what a mistake looks like (exit code 1)");
  command->callback([request, &exit_code] { exit_code = check(*request); });
}

}  // namespace fathom::app
