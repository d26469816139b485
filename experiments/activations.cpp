/// E9, mind your activation: half-moons, 2^13 points, f = MLP with two hidden layers of 16 and an activation appended to its
/// last layer: tanh, sigmoid, ReLU, softplus, ELU. Adam 1e-3, weight decay 1e-4. A field without negative values can only
/// push the state one way.
#include "experiments/classifier.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

struct Last {
  std::string name;
  Activation activation;
  bool has_negative_values;
};

const std::vector<Last> last_activations = {{"tanh", Activation::tanh, true},
                                            {"elu", Activation::elu, true},
                                            {"sigmoid", Activation::sigmoid, false},
                                            {"relu", Activation::relu, false},
                                            {"softplus", Activation::softplus, false}};

void run_activations(Run& run) {
  const Labelled moons =
      half_moons({.samples = run.count("samples"), .noise = run.number("noise"), .seed = run.seed_of(0)});
  const Labelled shown = some_of(moons, 200);
  report::PlaneFlow flows{.labels = {"upper moon", "lower moon"}};
  report::DecisionMap maps{.labels = flows.labels};
  std::string accuracies;
  double worst_signed = 1, best_unsigned = 0;
  for (const Last& last : last_activations) {
    torch::manual_seed(run.seed());
    const Field field = autonomous(mlp(
        {.features = {2, 16, 16, 2}, .activation = Activation::tanh, .last_activation = last.activation}));
    Classifier model(last.name, field, run.ode());
    model.train(run, moons, run.count("iterations"));
    const double accuracy = model.accuracy(moons);
    run.note(model.name, "loss", number(without_graph([&] { return model.loss(moons); })));
    run.note(model.name, "accuracy", accuracy);
    if (last.has_negative_values)
      worst_signed = std::min(worst_signed, accuracy);
    else
      best_unsigned = std::max(best_unsigned, accuracy);
    accuracies +=
        text(accuracies.empty() ? "" : ", ", last.name, " ", report::readable(100 * accuracy), " %");
    flows.panels.push_back(flow_panel(model.name, *model.ode, shown));
    maps.panels.push_back(decision_panel(
        model.name, [&](const Tensor& x) { return model.score(x); }, {.half_width = 2.5, .points = 101},
        shown));
  }
  run.claim_above("tanh and ELU are on top: the worse of them beats the best of sigmoid, ReLU, softplus",
                  worst_signed - best_unsigned, 0);
  run.show("Flows", report::plane_flow({.title = "Trajectories and fields",
                                        .idea = "tanh and ELU may push the state anywhere; sigmoid, ReLU and "
                                                "softplus only to the right and up.",
                                        .finding = text("Accuracy: ", accuracies, ".")},
                                       flows));
  run.show("Decision boundaries",
           report::decision_map(
               {.title = "The boundaries that follow",
                .idea = "The last activation of the field shapes the boundary.",
                .finding = text("The worse of tanh and ELU is ahead of the best other by ",
                                report::readable(100 * (worst_signed - best_unsigned)), " points.")},
               maps));
}

}  // namespace

Experiment activations() {
  return {
      .id = "E9",
      .name = "activations",
      .title = "Mind your activation",
      .summary = "half-moons with five activations on the last layer of the field",
      .claim =
          "An activation on the last layer of the field shapes the flow: tanh and ELU can steer the state in "
          "negative directions and do best; sigmoid, ReLU and softplus cannot and do worse.",
      .settings = {{"iterations", 300, 1000, 2000, "of training; our choice"},
                   {"samples", 8192, 8192, 8192, "points, for training and evaluation"},
                   {"batch", 512, 1024, 8192, "our choice"},
                   {"noise", 0.1, 0.1, 0.1, "of the points; our choice"},
                   {"learning-rate", 1e-3, 1e-3, 1e-3, "of Adam"},
                   {"weight-decay", 1e-4, 1e-4, 1e-4, "of Adam"},
                   {"tolerance", 1e-4, 1e-4, 1e-4, "of the solver; our choice"}},
      .run = run_activations};
}

}  // namespace fathom::experiments
