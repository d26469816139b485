/// E13, the deep limit: a ResNet of p layers, z_{k+1} = z_k + f_theta(k/p)(z_k) / p, is Euler's method with one step a layer
/// for the depth-varying Neural ODE z' = f_theta(s)(z). With p its answers converge to the ODE's: error ~ p^-1.
#include "experiments/classifier.hpp"
#include "experiments/statistics.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

struct Depths {
  std::vector<double> layers, errors, accuracies;
};

/// Mean distance of z(1) by p steps of a method from the ODE's, for p = 2, 4, ..., 64.
Depths by_layers(Classifier& model, const ode::ButcherTableau& method, const Labelled& fresh,
                 const Tensor& exact) {
  const torch::NoGradGuard no_graph;
  Depths found;
  for (std::int64_t layers = 2; layers <= 64; layers *= 2) {
    model.ode->options().solver = {.method = method, .steps = FixedSteps{.count = layers}};
    const Tensor end = model.ode->forward(fresh.inputs);
    found.layers.push_back(double(layers));
    found.errors.push_back(number((end - exact).norm(2, 1).mean()));
    found.accuracies.push_back(model.accuracy(fresh));
  }
  return found;
}

/// Of the second half, where the limit shows.
double slope_of(const Depths& depths) {
  const std::size_t half = depths.layers.size() / 2;
  const auto tail = [&](const std::vector<double>& all) {
    return std::vector<double>(all.begin() + std::ptrdiff_t(half), all.end());
  };
  return logarithmic_slope(tail(depths.layers), tail(depths.errors));
}

void note(Run& run, const std::string& name, const Depths& depths) {
  for (std::size_t i = 0; i < depths.layers.size(); ++i)
    run.note(name, text("error at ", depths.layers[i]), depths.errors[i]);
  run.note(name, "slope", slope_of(depths));
}

void run_deep_limit(Run& run) {
  const auto moons = [&](std::int64_t draw) {
    Labelled samples = half_moons(
        {.samples = run.count("samples"), .noise = run.number("noise"), .seed = run.seed_of(draw)});
    samples.inputs = samples.inputs.to(torch::kFloat64);
    return samples;
  };
  const Labelled training = moons(0), fresh = moons(1);
  const DepthBasis basis = fourier({.harmonics = std::size_t(run.count("harmonics"))});
  Classifier model("galerkin", depth_varying(mlp({.features = {2, run.count("hidden"), 2}, .basis = basis})),
                   run.ode());
  model.whole->to(torch::kFloat64);
  model.train(run, training, run.count("iterations"));

  model.ode->options().solver = {.steps =
                                     AdaptiveSteps{.relative_tolerance = 1e-10, .absolute_tolerance = 1e-10}};
  const Tensor exact = without_graph([&] { return model.ode->forward(fresh.inputs); });
  run.note(model.name, "accuracy", model.accuracy(fresh));
  run.show("The limit",
           report::plane_flow(
               {.title = "The flow that the layers approach",
                .idea = "Samples of the two moons on their way through the depth-varying field.",
                .finding = text("The ODE classifies ", report::readable(100 * model.accuracy(fresh)),
                                " % of fresh samples.")},
               {.labels = {"upper moon", "lower moon"},
                .panels = {flow_panel("galerkin", *model.ode, some_of(fresh, 200))}}));
  const Depths resnet = by_layers(model, euler(), fresh, exact),
               second = by_layers(model, midpoint(), fresh, exact);
  note(run, "ResNet (Euler)", resnet);
  note(run, "midpoint", second);
  const double slope = slope_of(resnet);
  run.claim_below("the ResNet's error falls like 1/p in the number of layers p: slope within 0.15 of -1",
                  std::abs(slope + 1), 0.15);
  run.claim_above("64 layers classify as the ODE does: accuracy difference at least -0.005",
                  resnet.accuracies.back() - run.figure("galerkin", "accuracy"), -0.005);
  report::Lines figure{.x = {.title = "layers p", .logarithmic = true},
                       .y = {.title = "mean distance to z(1)", .logarithmic = true}};
  figure.panels.push_back(
      {.title = "error",
       .lines = {{.name = "ResNet (Euler)", .x = resnet.layers, .y = resnet.errors, .points = true},
                 {.name = "midpoint", .x = second.layers, .y = second.errors, .points = true}}});
  run.show(
      "The limit",
      report::lines(
          {.title = "Distance between p layers and the ODE",
           .idea = "A ResNet whose layer k uses theta(k/p) is one Euler step a layer; a method of order 2 "
                   "with the "
                   "same theta(s) shows that it is the discretisation that converges.",
           .finding = text("The slopes over the deeper half are ", report::readable(slope), " and ",
                           report::readable(slope_of(second)), "; 64 layers classify ",
                           report::readable(100 * resnet.accuracies.back()), " % of fresh samples, 2 layers ",
                           report::readable(100 * resnet.accuracies.front()), " %.")},
          figure));
}

}  // namespace

Experiment deep_limit() {
  return {
      .id = "E13",
      .name = "deep-limit",
      .title = "The deep limit of residual networks",
      .summary = "ResNets of 2 to 64 layers as Euler steps converge to the depth-varying Neural ODE",
      .claim =
          "A depth-varying Neural ODE is the limit of residual networks: as the number of layers p grows, "
          "their answers converge to the ODE's, with an error proportional to 1/p.",
      .settings = {{"iterations", 300, 1000, 1000, "of training; our choice"},
                   {"samples", 2048, 4096, 4096, "of the training set and of the fresh one; our choice"},
                   {"batch", 256, 512, 512, "our choice"},
                   {"noise", 0.1, 0.1, 0.1, "of the points; our choice"},
                   {"hidden", 16, 16, 16, "units of the hidden layer; our choice"},
                   {"harmonics", 2, 2, 2, "of the Fourier basis of theta(s); our choice"},
                   {"learning-rate", 1e-2, 5e-3, 5e-3, "of Adam; our choice"},
                   {"weight-decay", 0, 0, 0, "of Adam; our choice"},
                   {"tolerance", 1e-5, 1e-5, 1e-5, "of the solver; our choice"}},
      .run = run_deep_limit};
}

}  // namespace fathom::experiments
