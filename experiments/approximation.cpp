/// E11, universal approximation: z_x' = 0, z_a' = f(z_x), z_a(0) = 0 gives z_a(1) = f(x): the ODE answers what its network
/// answers. Trained as an ODE on a function of one and one of two variables, in double precision.                  (M13)
#include "experiments/run.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

constexpr std::size_t points_in_plane = 21;  // on each axis

struct Task {
  std::string name;
  std::int64_t inputs;
  Tensor x;       // (points, inputs)
  Tensor target;  // (points, 1)
};

std::vector<Task> tasks() {
  const Tensor line = torch::linspace(-1, 1, 201, torch::kFloat64).unsqueeze(1);
  const Tensor plane = Plane{.half_width = 1, .points = points_in_plane}.grid(torch::kFloat64);
  const Tensor first = plane.narrow(1, 0, 1), second = plane.narrow(1, 1, 1);
  return {{"sin(3 x) + x^2 / 2", 1, line, (3 * line).sin() + line.square() / 2},
          {"sin(2 x1) cos(2 x2)", 2, plane, (2 * first).sin() * (2 * second).cos()}};
}

report::Figure picture(const Task& task, const Tensor& by_ode, const Tensor& by_net, double apart) {
  const report::Caption caption{
      .title = "The function, the network, the ODE",
      .idea =
          "The augmented state rests in x and collects f(x): at depth 1 the ODE has the network's answer.",
      .finding = text("ODE and network differ by at most ", report::readable(apart),
                      "; the ODE and the function by ",
                      report::readable(number((by_ode - task.target).abs().max())), ".")};
  if (task.inputs == 1) {
    const std::vector<double> x = values(task.x);
    report::Lines figure{.x = {.title = "x"}, .y = {.title = "answer"}};
    figure.panels.push_back({.title = task.name,
                             .lines = {{.name = "function", .x = x, .y = values(task.target), .dashed = true},
                                       {.name = "network", .x = x, .y = values(by_net)},
                                       {.name = "ODE", .x = x, .y = values(by_ode)}}});
    return report::lines(caption, figure);
  }
  const auto panel = [&](const std::string& title, const Tensor& answer) {
    return report::HeatPanel{.title = title,
                             .values = {{-1, 1}, {-1, 1}, points_in_plane, points_in_plane, values(answer)}};
  };
  return report::heat_map(
      caption, {.panels = {panel("function", task.target), panel("network", by_net), panel("ODE", by_ode)},
                .x_title = "x1",
                .y_title = "x2",
                .value_title = "answer"});
}

void run_approximation(Run& run) {
  const std::int64_t hidden = run.count("hidden");
  for (const Task& task : tasks()) {
    DepthSequential net = mlp({.features = {task.inputs, hidden, hidden, 1}});
    NeuralOde ode(fathom::approximation(net, task.inputs), run.ode());
    ode->to(torch::kFloat64);
    const Tensor start = torch::constant_pad_nd(task.x, {0, 1});
    const auto answer = [&] { return ode->forward(start).narrow(1, task.inputs, 1); };
    run.train(task.name, *ode, [&](std::int64_t) { return torch::mse_loss(answer(), task.target); },
              {.report = [&] { return ode->report(); }});
    const torch::NoGradGuard no_graph;
    const Tensor by_ode = answer(), by_net = net->forward(torch::zeros({}, torch::kFloat64), task.x);
    const double apart = number((by_ode - by_net).abs().max());
    run.note(task.name, "ODE against network", apart);
    run.note(task.name, "largest error", number((by_ode - task.target).abs().max()));
    run.claim_below(task.name + ": the ODE equals its network, largest difference below 1e-12", apart, 1e-12);
    run.claim_below(task.name + ": the function is learned, largest error below 0.05",
                    number((by_ode - task.target).abs().max()), 0.05);
    run.show(task.name, picture(task, by_ode, by_net, apart));
  }
}

}  // namespace

Experiment approximation() {
  return {.id = "E11",
          .name = "approximation",
          .title = "Representing any function a network can",
          .summary = "an augmented Neural ODE that answers exactly what its network answers",
          .claim =
              "With one more dimension a Neural ODE can approximate whatever its network can: the field that "
              "rests in "
              "x and adds f(x) ends at f(x), to the last digit.",
          .settings = {{"iterations", 2000, 5000, 5000, "of training; our choice"},
                       {"hidden", 32, 32, 32, "units of both hidden layers; our choice"},
                       {"learning-rate", 5e-3, 5e-3, 5e-3, "of Adam; our choice"},
                       {"weight-decay", 0, 0, 0, "of Adam; our choice"},
                       {"tolerance", 1e-6, 1e-6, 1e-6, "of the solver; our choice"}},
          .run = run_approximation};
}

}  // namespace fathom::experiments
