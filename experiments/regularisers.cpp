/// E10, regularisers of the flow: half-moons with no regulariser, R1 = int |f| ds, kinetic energy = int |f|^2 ds, and
/// R2 = |f(S, z(S))|. Straighter, slower flows are cheaper: fewer evaluations, shorter paths. R1 does not mind when along the
/// depth the way is travelled; the kinetic energy is least at an even speed, which saves steps most reliably.
#include <algorithm>
#include <optional>

#include "experiments/classifier.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

struct Regulariser {
  std::string name;
  std::vector<RunningLoss> running;
  bool terminal = false;
};

std::vector<Regulariser> choices() {
  return {{"none", {}},
          {"R1 path length", {path_length()}},
          {"kinetic energy", {kinetic_energy()}},
          {"R2 terminal speed", {}, true}};
}

struct Figures {
  double evaluations, path, speed, accuracy;
};

Figures measure(Run& run, const Regulariser& regulariser, const Labelled& training, const Labelled& fresh,
                report::PlaneFlow& flows) {
  torch::manual_seed(run.seed());
  const std::int64_t hidden = run.count("hidden");
  NeuralOdeOptions options = run.ode();
  options.running_losses = regulariser.running;
  Classifier model(regulariser.name, autonomous(mlp({.features = {2, hidden, hidden, 2}})), options);
  auto head = model.whole->ptr<torch::nn::LinearImpl>(1);
  Batches batches = batches_of(training, run);
  const auto loss = [&](std::int64_t iteration) {
    const Labelled batch = batch_of(training, batches.rows(iteration));
    const Solution solution = model.ode->solve(batch.inputs);
    const Tensor end = solution.states[-1];
    Tensor total = torch::binary_cross_entropy_with_logits(head->forward(end).squeeze(1),
                                                           batch.labels.to(torch::kFloat32));
    if (!regulariser.running.empty()) total = total + run.number("weight") * solution.running_loss[-1].mean();
    if (regulariser.terminal)
      total = total + run.number("terminal-weight") * terminal_speed(*model.ode, batch.inputs, end).mean();
    return total;
  };
  run.train(model.name, *model.whole, loss, {.report = [&] { return model.report(); }});

  // Counted without a running loss: |f| has kinks where the flow rests, which would cost steps of its own.
  const torch::NoGradGuard no_graph;
  model.ode->options().running_losses = {};
  const std::int64_t evaluations = model.ode->solve(fresh.inputs).report().evaluations;
  model.ode->options().running_losses = {path_length()};
  const Solution solution = model.ode->solve(fresh.inputs);
  Figures figures{.evaluations = double(evaluations),
                  .path = number(solution.running_loss[-1].mean()),
                  .speed = number(terminal_speed(*model.ode, fresh.inputs, solution.states[-1]).mean()),
                  .accuracy = model.accuracy(fresh)};
  run.note(model.name, "fresh NFE", figures.evaluations);
  run.note(model.name, "path length", figures.path);
  run.note(model.name, "terminal speed", figures.speed);
  run.note(model.name, "accuracy", figures.accuracy);
  model.ode->options().running_losses = {};
  flows.panels.push_back(flow_panel(model.name, *model.ode, some_of(fresh, 200)));
  return figures;
}

report::Figure comparison(const Run& run) {
  report::Comparison data;
  for (const Regulariser& each : choices()) data.models.push_back(each.name);
  for (const char* figure : {"fresh NFE", "path length", "terminal speed", "accuracy"}) {
    report::Measure measure{.title = figure};
    for (const std::string& model : data.models) measure.values.push_back(run.figure(model, figure));
    data.measures.push_back(std::move(measure));
  }
  return report::comparison(
      {.title = "What the regularisers buy",
       .idea =
           "Evaluations of the field, length of the paths, speed at the end and accuracy, on fresh samples. "
           "Path length does not mind when along the depth the way is travelled; the kinetic energy is least "
           "at "
           "an even speed, which saves steps most reliably.",
       .finding = text("The fewest evaluations are ",
                       report::readable(
                           *std::min_element(data.measures[0].values.begin(), data.measures[0].values.end())),
                       " against ", report::readable(data.measures[0].values[0]),
                       " without a regulariser; the shortest paths ",
                       report::readable(
                           *std::min_element(data.measures[1].values.begin(), data.measures[1].values.end())),
                       " against ", report::readable(data.measures[1].values[0]), ".")},
      data);
}

void run_regularisers(Run& run) {
  const auto moons = [&](std::int64_t draw) {
    return half_moons(
        {.samples = run.count("samples"), .noise = run.number("noise"), .seed = run.seed_of(draw)});
  };
  const Labelled training = moons(0), fresh = moons(1);
  report::PlaneFlow flows{.labels = {"upper moon", "lower moon"}};
  std::optional<Figures> plain;
  for (const Regulariser& each : choices()) {
    const Figures figures = measure(run, each, training, fresh, flows);
    if (!plain) plain = figures;
    if (each.name == "none") continue;
    run.note(each.name, "NFE ratio", figures.evaluations / plain->evaluations);
    if (each.terminal) {
      run.claim_below(
          each.name + ": the flow comes to rest, terminal speed relative to no regulariser below 0.5",
          figures.speed / plain->speed, 0.5);
    } else {
      run.claim_below(each.name + ": NFE falls, relative to no regulariser below 1",
                      figures.evaluations / plain->evaluations, 1);
    }
    run.claim_below(each.name + ": paths get shorter, relative to no regulariser below 1",
                    figures.path / plain->path, 1);
    run.claim_above(each.name + ": accuracy difference to no regulariser at least -0.01",
                    figures.accuracy - plain->accuracy, -0.01);
  }
  run.show("Comparison", comparison(run));
  run.show("Flows",
           report::plane_flow({.title = "The flows",
                               .idea = "Regularised flows move the samples less and straighter.",
                               .finding = text("Mean path length ", report::readable(plain->path),
                                               " without a regulariser, ",
                                               report::readable(run.figure("kinetic energy", "path length")),
                                               " with the kinetic energy.")},
                              flows));
}

}  // namespace

Experiment regularisers() {
  return {
      .id = "E10",
      .name = "regularisers",
      .title = "Regularisers of the flow",
      .summary = "path length, kinetic energy and terminal speed as losses: shorter paths",
      .claim =
          "Regularising the flow by the length or the energy of its paths makes it cheaper to solve: fewer "
          "evaluations and shorter paths at the same accuracy. Regularising its speed at the end makes paths "
          "shorter and lets the flow come to rest.",
      .settings = {{"iterations", 600, 1500, 1500, "of training; our choice"},
                   {"samples", 2048, 4096, 4096, "of the training set and of the fresh one; our choice"},
                   {"batch", 256, 512, 512, "our choice"},
                   {"noise", 0.1, 0.1, 0.1, "of the points; our choice"},
                   {"hidden", 16, 16, 16, "units of both hidden layers; our choice"},
                   {"weight", 0.1, 0.1, 0.1, "of path length and kinetic energy; our choice"},
                   {"terminal-weight", 0.01, 0.01, 0.01, "of the terminal speed; our choice"},
                   {"learning-rate", 1e-2, 5e-3, 5e-3, "of Adam; our choice"},
                   {"weight-decay", 0, 0, 0, "of Adam; our choice"},
                   {"tolerance", 1e-5, 1e-5, 1e-5, "of the solver; our choice"}},
      .run = run_regularisers};
}

}  // namespace fathom::experiments
