/// E5, concentric annuli without augmentation: phi(x) = -1 on the inner ring, 1 on the outer one, a linear output layer on
/// z(S), mean squared error, AdamW 1e-3 with weight decay 1e-6, 1024 iterations of 1024 fresh samples, dopri5 at 1e-5, one
/// hidden layer of 32. The flow of a field f(s, z) is a homeomorphism of the plane, so the region that a linear layer cuts
/// out of its image cannot be a bounded disc: a slit leads out through the outer ring, however thin. A field that is
/// controlled by its input need not obey.
#include "experiments/run.hpp"
#include "experiments/topology.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"

namespace fathom::experiments {

namespace {

struct Model {
  std::string name;
  NeuralOde ode;
  torch::nn::Sequential whole;
};

Model model(const Run& run, const std::string& name, const Field& field) {
  const NeuralOde ode(field, run.ode());
  return {name, ode, torch::nn::Sequential(ode, torch::nn::Linear(2, 1))};
}

std::vector<Model> models(const Run& run) {
  const std::int64_t hidden = run.count("hidden");
  const DepthBasis basis = fourier({.harmonics = std::size_t(run.count("harmonics"))});
  return {model(run, "vanilla", autonomous(mlp({.features = {2, hidden, 2}}))),
          model(run, "concat",
                depth_varying(mlp({.features = {2, hidden, 2}, .depth = DepthInput::first_layer}))),
          model(run, "galerkin", depth_varying(mlp({.features = {2, hidden, 2}, .basis = basis}))),
          model(run, "data-controlled",
                controlled(mlp({.features = {4, hidden, 2}, .activation = Activation::softplus})))};
}

constexpr double half_width = 2.5;  // of the window that decision regions are judged in

Shape inner_region(Model& model) {
  const Plane window{.half_width = half_width, .points = 401};
  const Tensor answer = without_graph([&] { return model.whole->forward(window.grid()); });
  return shape_of(mask(answer.squeeze(1) < 0), {window.points, window.points});
}

std::string losses(const Run& run) {
  std::string listed;
  for (const ModelFigures& model : run.metrics().models) {
    listed += text(listed.empty() ? "" : ", ", model.name, " ", report::readable(run.final_loss(model.name)));
  }
  return listed;
}

/// Returns whether the inner region is a closed disc.
bool train_and_judge(Run& run, Model& model) {
  const auto sample = [&](std::int64_t number) {
    return concentric_annuli({.samples = run.count("batch"), .seed = run.seed_of(number)});
  };
  const auto prediction = [&](const Labelled& rings) {
    return model.whole->forward(rings.inputs).squeeze(1);
  };
  const auto loss = [&](std::int64_t iteration) {
    const Labelled rings = sample(iteration);
    return torch::mse_loss(prediction(rings), rings.labels);
  };
  run.train(model.name, *model.whole, loss,
            {.report = [&] { return model.ode->report(); }, .optimizer = Optimizer::adamw});

  const Labelled fresh = sample(-1);
  const Tensor answer = without_graph([&] { return prediction(fresh); });
  const Shape inner = inner_region(model);
  run.note(model.name, "loss", torch::mse_loss(answer, fresh.labels).item<double>());
  run.note(model.name, "accuracy", share(answer.sign() == fresh.labels));
  run.note(model.name, "inner pieces", double(inner.pieces));
  run.note(model.name, "outer pieces", double(inner.outside_pieces));
  run.note(model.name, "inner reaches edge", inner.touches_edge);
  if (model.name == "data-controlled") {
    run.claim_true("data-controlled: the inner region is one closed disc, the outer one connected",
                   inner.is_closed_disc());
  } else {
    run.claim_true(model.name + ": cannot close the boundary, the inner region is not a closed disc",
                   !inner.is_closed_disc());
  }
  return inner.is_closed_disc();
}

void run_annuli(Run& run) {
  const Labelled shown = some_of(concentric_annuli({.samples = 400, .seed = run.seed_of(-2)}), 200);
  report::PlaneFlow flows{.labels = {"inner", "outer"}};
  report::DecisionMap maps{.labels = {"inner", "outer"}};
  std::string closed, open;
  for (Model& each : models(run)) {
    std::string& list = train_and_judge(run, each) ? closed : open;
    list += (list.empty() ? "" : ", ") + each.name;
    flows.panels.push_back(flow_panel(each.name, *each.ode, shown));
    const auto score = [&](const Tensor& x) { return each.whole->forward(x).squeeze(1); };
    maps.panels.push_back(decision_panel(each.name, score, {.half_width = half_width, .points = 101}, shown));
  }
  run.show("Flows",
           report::plane_flow(
               {.title = "Depth flows of the samples",
                .idea = "Each sample from its input at depth 0 to its state at depth 1, where a line "
                        "must separate the rings. Streamlines show fields that do not read the input.",
                .finding = text("Final losses: ", losses(run), ".")},
               flows));
  run.show("Decision boundaries",
           report::decision_map(
               {.title = "What the models answer all over the plane",
                .idea = "A flow cannot tear the plane: where it cannot enclose the inner ring, a slit of the "
                        "inner class leads out through the outer ring. Data control may close it.",
                .finding =
                    text("By flood fill on 401 x 401 points, the inner region is a closed disc for: ",
                         closed.empty() ? "none" : closed, "; not for: ", open.empty() ? "none" : open, ".")},
               maps));
}

}  // namespace

Experiment annuli() {
  return {.id = "E5",
          .name = "annuli",
          .title = "Concentric annuli without augmentation",
          .summary = "two rings without augmentation: only data control closes the decision boundary",
          .claim =
              "On two concentric rings, fields that see only depth and state fit the samples but leave a "
              "slit of the "
              "wrong class through the outer ring; a data-controlled field closes the boundary.",
          .settings = {{"iterations", 1024, 1024, 1024, "of training"},
                       {"batch", 512, 1024, 1024, "fresh samples an iteration"},
                       {"learning-rate", 1e-3, 1e-3, 1e-3, "of AdamW"},
                       {"weight-decay", 1e-6, 1e-6, 1e-6, "of AdamW"},
                       {"hidden", 32, 32, 32, "units of the one hidden layer"},
                       {"harmonics", 5, 5, 5, "of the Fourier basis of theta(s)"},
                       {"tolerance", 1e-5, 1e-5, 1e-5, "of the solver"}},
          .run = run_annuli};
}

}  // namespace fathom::experiments
