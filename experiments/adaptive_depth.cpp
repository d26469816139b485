/// E8, adaptive depth: the reflection -x without data control and without crossing, because every input is integrated to a
/// depth of its own. Concat field 2x8 tanh; (a) x in {-1, 1} with depths 1 and 3 set by hand; (b) x in [-1, 1] with
///   g(x) = |1 + w_o . relu(w_i x + b_i) + b_o|,  8 units, learned.                                                (M9)
#include "experiments/run.hpp"
#include "experiments/statistics.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

Field concat_field() {
  return depth_varying(mlp({.features = {1, 8, 8, 1}, .depth = DepthInput::first_layer}));
}

/// Trajectories that end at depths of their own, over the field.
report::DepthPanel panel(const std::string& title, NeuralOdeImpl& ode, const Tensor& x,
                         const Tensor& depths) {
  const torch::NoGradGuard no_graph;
  const std::vector<double> fractions = spaced(0, 1, 61);
  const Tensor states = ode.solve_scaled(x, depths, fractions).states.squeeze(2);
  report::DepthPanel panel{.title = title, .trajectories = curves(fractions, states)};
  const std::vector<double> ends = values(depths);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (double& s : panel.trajectories[i].x) s *= ends[i];
  }
  const double highest = 1.1 * number(states.abs().max());
  panel.slopes = slope_grid(ode, {0, number(depths.max())}, {-highest, highest});
  return panel;
}

void show(Run& run, const report::DepthPanel& panel, const std::string& section, const std::string& idea) {
  run.show(section,
           report::depth_trajectories(
               {.title = panel.title,
                .idea = idea,
                .finding = text("Largest |z + x| at the end ",
                                report::readable(run.figure(panel.title, "largest error")), ", mean ",
                                report::readable(run.figure(panel.title, "mean error")), "; depths from ",
                                report::readable(run.figure(panel.title, "smallest depth")), " to ",
                                report::readable(run.figure(panel.title, "largest depth")), ".")},
               {.labels = {"x < 0", "x > 0"}, .panels = {panel}}));
}

void by_hand(Run& run) {
  const Tensor x = torch::tensor({{-1.0f}, {1.0f}}), depths = torch::tensor({1.0f, 3.0f});
  NeuralOde ode(concat_field(), run.ode());
  const auto end = [&] { return ode->solve_scaled(x, depths).states[-1]; };
  run.train("depths by hand", *ode, [&](std::int64_t) { return torch::mse_loss(end(), -x); },
            {.report = [&] { return ode->report(); }});
  const double worst = number(without_graph([&] { return (end() + x).abs().max(); }));
  run.note("depths by hand", "largest error", worst);
  run.note("depths by hand", "mean error", number(without_graph([&] { return (end() + x).abs().mean(); })));
  run.note("depths by hand", "smallest depth", 1);
  run.note("depths by hand", "largest depth", 3);
  run.claim_below("(a) depths 1 and 3 by hand: reflects -1 and 1, largest error below 0.05", worst, 0.05);
  show(run, panel("depths by hand", *ode, x, depths), "(a) Depths by hand",
       "-1 is integrated to depth 1, 1 to depth 3. The paths do not cross, and yet each ends at the other's "
       "start.");
}

void learned(Run& run) {
  const Tensor x = torch::linspace(-1, 1, run.count("points")).unsqueeze(1);
  AdaptiveDepth model(concat_field(), torch::nn::AnyModule(PaperDepth(1)), run.ode());
  run.train(
      "depths learned", *model, [&](std::int64_t) { return torch::mse_loss(model->forward(x), -x); },
      {.report = [&] { return model->ode()->report(); }, .iterations = run.count("learned-iterations")});
  const Tensor error = without_graph([&] { return (model->forward(x) + x).abs(); });
  const Tensor depths = without_graph([&] { return model->depths(x); });
  run.note("depths learned", "largest error", number(error.max()));
  run.note("depths learned", "mean error", number(error.mean()));
  run.note("depths learned", "smallest depth", number(depths.min()));
  run.note("depths learned", "largest depth", number(depths.max()));
  run.claim_below("(b) depths learned: reflects [-1, 1], mean error below 0.05", number(error.mean()), 0.05);
  run.claim_above("(b) the learned depth differs between inputs by at least 0.5",
                  number(depths.max() - depths.min()), 0.5);
  const Tensor few = torch::linspace(-1, 1, 16).unsqueeze(1);
  const Tensor few_depths = without_graph([&] { return model->depths(few); });
  show(run, panel("depths learned", *model->ode().ptr(), few, few_depths), "(b) Depths learned",
       "Each path ends at the depth that the network g chooses for its input.");
  run.show("(b) Depths learned",
           report::learned_depth(
               {.title = "The depth of each input",
                .idea = "g(x) over x: a sum of ReLUs, so piecewise linear, in absolute value.",
                .finding = text("It varies by ", report::readable(number(depths.max() - depths.min())),
                                " over [-1, 1].")},
               {.lines = {{.name = "g(x)", .x = values(x), .y = values(depths)}}}));
}

void run_adaptive_depth(Run& run) {
  by_hand(run);
  learned(run);
}

}  // namespace

Experiment adaptive_depth() {
  return {
      .id = "E8",
      .name = "adaptive-depth",
      .title = "Adaptive depth",
      .summary = "the reflection -x without crossing: every input runs to a depth of its own",
      .claim =
          "When every input is integrated to a depth of its own, set by hand or learned, a Neural ODE "
          "represents "
          "-x although its trajectories never cross.",
      .settings = {{"iterations", 1000, 2000, 2000, "of training with depths by hand; our choice"},
                   {"learned-iterations", 2000, 5000, 5000, "of training with learned depths; our choice"},
                   {"points", 64, 64, 64, "equally spaced in [-1, 1]; our choice"},
                   {"learning-rate", 1e-2, 1e-2, 1e-2, "of Adam; our choice"},
                   {"weight-decay", 0, 0, 0, "of Adam; our choice"},
                   {"tolerance", 1e-4, 1e-5, 1e-5, "of the solver; our choice"}},
      .run = run_adaptive_depth};
}

}  // namespace fathom::experiments
