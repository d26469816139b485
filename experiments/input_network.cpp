/// E6, mind your input network: concentric annuli, h_x = 2-16 ReLU-2 before a depth-invariant Neural ODE. The rings are
/// separable by a line before the ODE begins, so its flow is superfluous: without the block nothing is lost.
#include "experiments/classifier.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

struct InputNetwork {
  explicit InputNetwork(std::int64_t hidden) : first(2, hidden), second(hidden, 2) {}
  Tensor operator()(const Tensor& x) { return second->forward(first->forward(x).relu()); }

  torch::nn::Linear first, second;
};

/// The share that the best line found separates: a linear layer trained on the features alone, to convergence.
double separability(const Tensor& features, const Tensor& labels) {
  torch::nn::Linear line(2, 1);
  torch::optim::LBFGS optimizer(line->parameters(), torch::optim::LBFGSOptions(0.5).max_iter(200));
  const Tensor targets = (labels > 0).to(torch::kFloat32);
  optimizer.step([&] {
    optimizer.zero_grad();
    const Tensor loss = torch::binary_cross_entropy_with_logits(line->forward(features).squeeze(1), targets) +
                        1e-4 * line->weight.square().sum();
    loss.backward();
    return loss;
  });
  return share((line->forward(features).squeeze(1) > 0) == (labels > 0));
}

void run_input_network(Run& run) {
  const auto rings = [&](std::int64_t draw) {
    return concentric_annuli({.samples = run.count("batch"), .seed = run.seed_of(draw)});
  };
  const Labelled fresh = rings(-1);
  const std::int64_t hidden = run.count("hidden");
  InputNetwork input(hidden), input_alone(hidden);
  NeuralOde ode(autonomous(mlp({.features = {2, run.count("field-hidden"), 2}})), run.ode());
  torch::nn::Sequential with_ode(input.first, torch::nn::ReLU(), input.second, ode, torch::nn::Linear(2, 1));
  torch::nn::Sequential without_ode(input_alone.first, torch::nn::ReLU(), input_alone.second,
                                    torch::nn::Linear(2, 1));
  const auto train = [&](const std::string& name, torch::nn::Sequential& model,
                         const std::function<ode::SolveReport()>& report) {
    const auto loss = [&](std::int64_t iteration) {
      const Labelled batch = rings(iteration);
      return torch::mse_loss(model->forward(batch.inputs).squeeze(1), batch.labels);
    };
    run.train(name, *model, loss, {.report = report, .optimizer = Optimizer::adamw});
    const Tensor answer = without_graph([&] { return model->forward(fresh.inputs).squeeze(1); });
    run.note(name, "loss", number(torch::mse_loss(answer, fresh.labels)));
    run.note(name, "accuracy", share(answer.sign() == fresh.labels));
    return share(answer.sign() == fresh.labels);
  };
  const double with = train("with ODE", with_ode, [&] { return ode->report(); });
  const double without = train("without ODE", without_ode, {});
  const Tensor before = without_graph([&] { return input(fresh.inputs); });
  const double separable = separability(before, fresh.labels);
  run.note("with ODE", "separable before ODE", separable);
  run.claim_above("the rings are separable by a line before the ODE, share at least 0.99", separable, 0.99);
  run.claim_above("ablation: trained without the ODE block, accuracy difference at least -0.01",
                  without - with, -0.01);
  const Labelled shown = some_of(fresh, 240);
  const Labelled latent{without_graph([&] { return input(shown.inputs); }), shown.labels};
  run.show(
      "The flow after the input network",
      report::plane_flow(
          {.title = "What the Neural ODE is given, and what it does",
           .idea =
               "At depth 0 these are the outputs of the input network, not the rings: if a line separates "
               "them there, nothing is left for the flow to do.",
           .finding = text("A line separates ", report::readable(100 * separable),
                           " % of the samples at depth 0; the whole model classifies ",
                           report::readable(100 * with), " %.")},
          {.labels = {"inner", "outer"}, .panels = {flow_panel("with ODE", *ode, latent)}}));
  const Plane window{.half_width = 2.5, .points = 101};
  run.show(
      "Ablation",
      report::decision_map(
          {.title = "With the ODE block and without",
           .idea =
               "The same input network and output layer, trained with a Neural ODE between them and without.",
           .finding = text("Accuracy with the block ", report::readable(100 * with), " %, without ",
                           report::readable(100 * without), " %.")},
          {.labels = {"inner", "outer"},
           .panels = {decision_panel(
                          "with ODE", [&](const Tensor& x) { return with_ode->forward(x); }, window, shown),
                      decision_panel(
                          "without ODE", [&](const Tensor& x) { return without_ode->forward(x); }, window,
                          shown)}}));
}

}  // namespace

Experiment input_network() {
  return {.id = "E6",
          .name = "input-network",
          .title = "Mind your input network",
          .summary = "annuli behind a nonlinear input network: the ODE block is superfluous",
          .claim =
              "Behind a nonlinear input network a Neural ODE solves the annuli, but the rings were separable "
              "before "
              "it: removing the ODE block loses nothing.",
          .settings = {{"iterations", 1024, 1024, 1024, "of training; as for the annuli"},
                       {"batch", 256, 1024, 1024, "fresh samples an iteration; as for the annuli"},
                       {"hidden", 16, 16, 16, "units of the input network"},
                       {"field-hidden", 32, 32, 32, "units of the field; as for the annuli"},
                       {"learning-rate", 5e-3, 1e-3, 1e-3, "of AdamW; as for the annuli"},
                       {"weight-decay", 1e-6, 1e-6, 1e-6, "of AdamW"},
                       {"tolerance", 1e-5, 1e-5, 1e-5, "of the solver"}},
          .run = run_input_network};
}

}  // namespace fathom::experiments
