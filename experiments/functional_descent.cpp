/// E12, descent in the space of functions: theta(s) on a fine grid follows its functional gradient (G2),
///   theta_{k+1}(s) = theta_k(s) - eta delta ell / delta theta(s),   delta ell / delta theta(s) = a(s) df/dtheta,
/// on the tracking task of E1 with a fixed batch. Beside it, with the same steps: Galerkin, whose coefficients on an
/// orthonormal basis descend by the projections of that gradient (G3), and stacked, by its means over the pieces (G4).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include "experiments/run.hpp"
#include "experiments/statistics.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

constexpr double two_pi = 2 * std::numbers::pi;

DepthBasis target() {
  return own_basis("circle", 2, [](double s) {
    return std::vector{std::cos(two_pi * s), std::sin(two_pi * s)};
  });
}

/// All three start at the same theta(s), constant over depth.
NeuralOde model(const Run& run, const DepthBasis& basis) {
  torch::manual_seed(run.seed());
  NeuralOdeOptions options = run.ode();
  options.running_losses = {fathom::tracking(target())};
  NeuralOde ode(depth_varying(mlp({.features = {2, run.count("hidden"), 2}, .basis = basis})), options);
  ode->to(torch::kFloat64);
  return ode;
}

/// delta ell / delta alpha at depths: for each parameter (depths, basis, ...), which is psi_j(s) delta ell / delta theta(s).
FunctionalGradient gradient_at(NeuralOde& ode, const Tensor& x, const std::vector<double>& depths,
                               const Solver& solver) {
  VectorField field{.rate = [&](const Tensor& s, const Tensor& z) { return ode->field()->rate(s, {}, z); },
                    .parameters = ode->parameters(),
                    .break_points = ode->field()->break_points()};
  const RunningLoss loss = fathom::tracking(target());
  const double share_of_one = 1.0 / double(x.size(0));
  field.running_loss = [loss, share_of_one](const Tensor& s, const Tensor& z, const Tensor& rate) {
    return loss(s, {}, z, rate) * share_of_one;
  };
  return functional_gradient(field, x, {0, 1}, {}, depths, solver);
}

struct Descent {
  std::vector<std::vector<double>> norms;  // (iterations, depths) of delta ell / delta theta
};

/// theta lives at the knots of a piecewise linear function; hats sum to 1, so the sum over the basis is the gradient itself.
Descent descend(Run& run, NeuralOde& ode, const Tensor& x, const std::vector<double>& knots,
                const Solver& solver) {
  Descent descent;
  const auto began = std::chrono::steady_clock::now();
  for (std::int64_t iteration = 1; iteration <= run.count("iterations"); ++iteration) {
    const FunctionalGradient gradient = gradient_at(ode, x, knots, solver);
    const torch::NoGradGuard no_graph;
    const double loss = number(ode->running_loss(x));
    Tensor squares = torch::zeros({std::int64_t(knots.size())}, torch::kFloat64);
    std::vector<Tensor> parameters = ode->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const Tensor at_knots = gradient.values[p].sum(1);  // (knots, shape of theta)
      squares += at_knots.flatten(1).square().sum(1);
      parameters[p] -= run.number("learning-rate") * at_knots;
    }
    descent.norms.push_back(values(squares.sqrt()));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    run.log("functional", {iteration, loss, ode->report().evaluations, 0, seconds});
  }
  return descent;
}

/// The largest difference between int psi_j delta ell / delta theta ds and dell / dalpha_j, relative to the largest of them.
double projection_gap(NeuralOde& ode, const Tensor& x, const Solver& solver) {
  ode->zero_grad();
  ode->running_loss(x).backward();
  const std::vector<double> depths = spaced(0, 1, 201);
  const FunctionalGradient gradient = gradient_at(ode, x, depths, solver);
  double apart = 0, largest = 0;
  const std::vector<Tensor> parameters = ode->parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Tensor projected = torch::trapezoid(gradient.values[p], 1.0 / double(depths.size() - 1), 0);
    apart = std::max(apart, number((projected - parameters[p].grad()).abs().max()));
    largest = std::max(largest, number(parameters[p].grad().abs().max()));
  }
  ode->zero_grad();
  return apart / largest;
}

report::Figure heat(const Descent& descent, const std::vector<double>& knots, double fall) {
  // Where the loss wants nothing, as at the end of the depth, the norm is zero; what is far below the largest is shown alike.
  constexpr double share_shown = 1e-4;
  double largest = 0;
  for (const std::vector<double>& norms : descent.norms)
    largest = std::max(largest, *std::max_element(norms.begin(), norms.end()));
  report::HeatPanel panel{.title = "functional descent"};
  const std::size_t epochs = descent.norms.size();
  panel.values = {{1, double(epochs)}, {knots.front(), knots.back()}, epochs, knots.size()};
  for (std::size_t row = 0; row < knots.size(); ++row) {
    for (std::size_t column = 0; column < epochs; ++column)
      panel.values.values.push_back(std::max(descent.norms[column][row], share_shown * largest));
  }
  return report::heat_map(
      {.title = "The functional gradient over depth and epoch",
       .idea =
           "The norm of delta ell / delta theta(s): where along the depth the loss wants theta to change.",
       .finding = text("Its mean over depth ends at ", report::readable(fall), " of where it began.")},
      {.panels = {panel}, .value_title = "norm"});
}

void run_functional_descent(Run& run) {
  const std::int64_t count = run.count("knots");
  const std::vector<double> knots = spaced(0, 1, std::size_t(count) + 1);
  const Solver on_knots{.method = rk4(), .steps = FixedSteps{.count = count}};
  NeuralOde free = model(run, piecewise_linear({.pieces = std::size_t(count)}));
  NeuralOde galerkin = model(run, fourier({.harmonics = std::size_t(run.count("harmonics"))}));
  NeuralOde stacked = model(run, piecewise_constant({.pieces = std::size_t(run.count("pieces"))}));
  const Tensor x = torch::tensor({{1.0, 0.0}}, torch::kFloat64) +
                   0.5 * torch::randn({run.count("batch"), 2}, torch::kFloat64);

  const double gap = projection_gap(galerkin, x, run.solver());
  for (NeuralOde* each : {&free, &galerkin, &stacked}) (*each)->options().solver = on_knots;
  const Descent descent = descend(run, free, x, knots, on_knots);
  run.note("functional", "parameters", double(parameter_count(*free)));
  run.note("functional", "NFE", double(free->report().evaluations));
  run.note("functional", "seconds", run.course("functional").seconds);
  run.train("galerkin", *galerkin, [&](std::int64_t) { return galerkin->running_loss(x); },
            {.report = [&] { return galerkin->report(); }, .optimizer = Optimizer::sgd});
  // A piece of length 1/p sees only 1/p of the integral: p times the step is the same descent.
  run.train("stacked", *stacked, [&](std::int64_t) { return stacked->running_loss(x); },
            {.report = [&] { return stacked->report(); },
             .optimizer = Optimizer::sgd,
             .learning_rate = run.number("learning-rate") * run.number("pieces")});
  for (const char* name : {"functional", "galerkin", "stacked"}) {
    run.note(name, "first loss", run.course(name).losses.front());
    run.note(name, "loss", run.final_loss(name));
  }
  const double fall = run.final_loss("functional") / run.course("functional").losses.front();
  const double against = run.final_loss("functional") / run.final_loss("galerkin");
  run.claim_below("functional descent lowers the loss, to less than a quarter", fall, 0.25);
  run.claim_below("its gradient, projected on the basis, is Galerkin's: relative difference below 0.001", gap,
                  1e-3);
  run.claim_below("it ends where Galerkin ends or below: ratio of final losses below 1.05", against, 1.05);

  const double gradient_fall = spread_of(descent.norms.back()).mean / spread_of(descent.norms.front()).mean;
  run.show("The gradient", heat(descent, knots, gradient_fall));
  run.show(
      "theta(s)",
      report::parameters_over_depth(
          {.title = "theta(s) after the descent",
           .idea = "The same start, constant over depth, and the same descent: free at every knot, in the "
                   "span of a "
                   "Fourier basis, and constant on pieces.",
           .finding = text("The final loss is ", report::readable(run.final_loss("functional")), " free, ",
                           report::readable(run.final_loss("galerkin")), " for Galerkin and ",
                           report::readable(run.final_loss("stacked")), " for stacked.")},
          {.panels = {theta_panel("functional", free->field()), theta_panel("galerkin", galerkin->field()),
                      theta_panel("stacked", stacked->field())}}));
}

}  // namespace

Experiment functional_descent() {
  return {.id = "E12",
          .name = "functional-descent",
          .title = "Descent in the space of functions",
          .summary = "theta(s) follows its functional gradient; Galerkin and stacked are its discretisations",
          .claim =
              "Training a Neural ODE with free theta(s) is descent along delta ell / delta theta(s); "
              "Galerkin and stacked "
              "models are two discretisations of it.",
          .settings = {{"iterations", 80, 300, 300, "steps of plain gradient descent; our choice"},
                       {"learning-rate", 0.1, 0.1, 0.1, "eta; our choice"},
                       {"weight-decay", 0, 0, 0, "none"},
                       {"batch", 64, 128, 128, "fixed starts; our choice"},
                       {"hidden", 16, 32, 32, "units of the hidden layer; our choice"},
                       {"knots", 20, 40, 40, "pieces of the grid that theta(s) lives on; our choice"},
                       {"harmonics", 5, 5, 5, "of the Fourier basis; our choice"},
                       {"pieces", 5, 5, 5, "of the stacked model; our choice"},
                       {"tolerance", 1e-8, 1e-8, 1e-8,
                        "of the solver where gradients are compared; the descent itself takes steps of rk4 "
                        "that end at the knots"}},
          .run = run_functional_descent};
}

}  // namespace fathom::experiments
