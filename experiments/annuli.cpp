/// E5, concentric annuli without augmentation: phi(x) = -1 on the inner ring, 1 on the outer one, a linear output layer on
/// z(S), mean squared error, AdamW 1e-3 with weight decay 1e-6, 1024 iterations of 1024 fresh samples, dopri5 at 1e-5, one
/// hidden layer of 32. A depth-invariant field cannot tear the plane; a field that is controlled by its input need not.
#include "experiments/experiment.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

constexpr std::int64_t iterations = 1024, batch = 1024, hidden = 32;

struct Model {
  std::string name;
  NeuralOde ode;
  torch::nn::Sequential whole;
};

Model model(const std::string& name, const Field& field) {
  const AdaptiveSteps steps{.relative_tolerance = 1e-5, .absolute_tolerance = 1e-5};
  const NeuralOde ode(field, NeuralOdeOptions{.solver = {.steps = steps}});
  return {name, ode, torch::nn::Sequential(ode, torch::nn::Linear(2, 1))};
}

ModelFigures train(Model model, const RunOptions& options) {
  const auto sample = [&](std::int64_t number) {
    return concentric_annuli({.samples = batch, .seed = options.seed * 1'000'003 + std::uint64_t(number)});
  };
  const auto prediction = [&](const Labelled& rings) {
    return model.whole->forward(rings.inputs).squeeze(1);
  };
  const auto loss = [&](std::int64_t iteration) {
    const Labelled rings = sample(iteration);
    return torch::mse_loss(prediction(rings), rings.labels);
  };
  const FitHistory history = fit(*model.whole, loss,
                                 {.iterations = options.iterations.value_or(iterations),
                                  .learning_rate = 1e-3,
                                  .weight_decay = 1e-6,
                                  .report = [&] { return model.ode->report(); },
                                  .title = model.name,
                                  .quiet = options.quiet});
  const torch::NoGradGuard no_graph;
  const Labelled fresh = sample(-1);
  const Tensor answer = prediction(fresh);
  return {model.name,
          {{"loss", torch::mse_loss(answer, fresh.labels).item<double>()},
           {"accuracy", (answer.sign() == fresh.labels).to(torch::kFloat64).mean().item<double>()},
           {"NFE", double(model.ode->report().evaluations)},
           {"parameters", double(parameter_count(*model.whole))},
           {"seconds", history.seconds}}};
}

RunMetrics run(const RunOptions& options) {
  torch::manual_seed(options.seed);
  RunMetrics metrics{.experiment = "annuli", .size = "default", .seed = options.seed};
  const Field vanilla = autonomous(mlp({.features = {2, hidden, 2}}));
  const Field control = controlled(mlp({.features = {4, hidden, 2}, .activation = Activation::softplus}));
  for (const Model& each : {model("vanilla", vanilla), model("data-controlled", control)}) {
    metrics.models.push_back(train(each, options));
  }
  return metrics;
}

}  // namespace

Experiment annuli() {
  return {.id = "E5",
          .name = "annuli",
          .summary = "two rings: a depth-invariant and a data-controlled flow without augmentation",
          .run = run};
}

}  // namespace fathom::experiments
