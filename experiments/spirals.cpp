/// E2, parameters that vary with depth: nested spirals, 300 epochs at 5e-3, theta(s) as a polynomial of depth with m = 10
/// coefficients (Galerkin) and as 10 constant pieces (stacked), beside a field that is the same at every depth.
#include "experiments/classifier.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

std::vector<Classifier> models(const Run& run) {
  const std::int64_t hidden = run.count("hidden");
  const std::size_t size = std::size_t(run.count("coefficients"));
  const auto net = [&](const DepthBasis& basis) {
    return depth_varying(mlp({.features = {2, hidden, 2}, .basis = basis}));
  };
  return {Classifier("galerkin", net(polynomial(size - 1)), run.ode()),
          Classifier("stacked", net(piecewise_constant({.pieces = size})), run.ode()),
          Classifier("vanilla", autonomous(mlp({.features = {2, hidden, 2}})), run.ode())};
}

Labelled spirals(const Run& run, std::int64_t draw) {
  return nested_spirals({.samples = run.count("samples"),
                         .turns = run.number("turns"),
                         .noise = run.number("noise"),
                         .seed = run.seed_of(draw)});
}

void run_spirals(Run& run) {
  const Labelled training = spirals(run, 0), fresh = spirals(run, 1), shown = some_of(fresh, 240);
  report::PlaneFlow flows{.labels = {"first arm", "second arm"}};
  report::DecisionMap maps{.labels = flows.labels};
  report::ParametersOverDepth thetas;
  for (Classifier& model : models(run)) {
    model.train(run, training, run.count("epochs") * batches_of(training, run).per_epoch());
    const double accuracy = model.accuracy(fresh);
    run.note(model.name, "loss", run.final_loss(model.name));
    run.note(model.name, "accuracy", accuracy);
    if (model.name != "vanilla")
      run.claim_above(model.name + ": separates the spirals, accuracy at least 0.99", accuracy, 0.99);
    flows.panels.push_back(flow_panel(model.name, *model.ode, shown));
    maps.panels.push_back(decision_panel(
        model.name, [&](const Tensor& x) { return model.score(x); }, {.half_width = 1.2, .points = 101},
        shown));
    if (model.name != "vanilla") thetas.panels.push_back(theta_panel(model.name, model.ode->field()));
  }
  const auto accuracies = [&](const std::string& name) {
    return text(name, " ", report::readable(100 * run.figure(name, "accuracy")), " %");
  };
  run.show("Flows",
           report::plane_flow({.title = "Depth flows",
                               .idea = "The arms unwind until a line separates them.",
                               .finding = text("Accuracy on fresh samples: ", accuracies("galerkin"), ", ",
                                               accuracies("stacked"), ", ", accuracies("vanilla"), ".")},
                              flows));
  run.show(
      "theta(s)",
      report::parameters_over_depth(
          {.title = "Parameters over depth",
           .idea = "Smooth in the span of the polynomials for Galerkin; free but coarse, a step at every "
                   "joint, for stacked.",
           .finding = text("Galerkin has ", report::readable(run.figure("galerkin", "parameters")),
                           " parameters, stacked ", report::readable(run.figure("stacked", "parameters")),
                           ", vanilla ", report::readable(run.figure("vanilla", "parameters")), ".")},
          thetas));
  run.show(
      "Decision boundaries",
      report::decision_map({.title = "What the models answer all over the plane",
                            .idea = "The boundary between the arms.",
                            .finding = text("Evaluations of the field at the end: galerkin ",
                                            report::readable(run.figure("galerkin", "NFE")), ", stacked ",
                                            report::readable(run.figure("stacked", "NFE")), ", vanilla ",
                                            report::readable(run.figure("vanilla", "NFE")), ".")},
                           maps));
}

}  // namespace

Experiment spirals() {
  return {
      .id = "E2",
      .name = "spirals",
      .title = "Parameters that vary with depth",
      .summary = "theta(s) of Galerkin and stacked Neural ODEs on nested spirals",
      .claim =
          "Neural ODEs whose parameters vary with depth, as a sum of basis functions or piece by piece, "
          "separate nested spirals. Spirals as short as these are separated by a depth-invariant one too.",
      .settings = {{"epochs", 300, 300, 300, "over the training set"},
                   {"samples", 512, 2048, 2048, "of the training set and of the fresh one; our choice"},
                   {"batch", 64, 64, 64, "our choice"},
                   {"turns", 0.6, 0.85, 0.85, "of an arm; our choice"},
                   {"noise", 0.02, 0.02, 0.02, "of the points; our choice"},
                   {"hidden", 64, 64, 64, "units of the hidden layer; our choice"},
                   {"coefficients", 10, 10, 10,
                    "of the polynomial; pieces of the stacked model (our choice)"},
                   {"learning-rate", 5e-3, 5e-3, 5e-3, "of Adam"},
                   {"weight-decay", 0, 0, 0, "of Adam"},
                   {"tolerance", 1e-4, 1e-4, 1e-4, "of the solver; our choice"}},
      .run = run_spirals};
}

}  // namespace fathom::experiments
