/// E4, crossing trajectories: phi(x) = -x on x in [-1, 1]. Solutions of z' = f(s, z) cannot cross, so depth-invariant,
/// concat and Galerkin models cannot represent it; they settle for the median of the targets, 0. Data-controlled ones can:
///   linear      z' = -theta (z + x),   z(s) = x (2 exp(-theta s) - 1),   error at 1: 2 |x| exp(-theta)          (G7)
///   general     z' = f(x, z), two hidden layers of 32
/// L1 loss, Adam 1e-3, weight decay 1e-5, 1000 epochs, the whole batch; 1-16-32-1 tanh, Galerkin 1-32-1 with Fourier 5.
#include "experiments/run.hpp"
#include "experiments/statistics.hpp"
#include "experiments/views.hpp"
#include "fathom/fathom.hpp"
#include "fathom/field/fields.hpp"

namespace fathom::experiments {

namespace {

struct Model {
  std::string name;
  Field field;
  bool can_cross;
  double learning_rate = 0;  // 0: that of the others
};

std::vector<Model> models(const Run& run) {
  const DepthBasis basis = fourier({.harmonics = std::size_t(run.count("harmonics"))});
  return {
      {"vanilla", autonomous(mlp({.features = {1, 16, 32, 1}})), false},
      {"concat", depth_varying(mlp({.features = {1, 16, 32, 1}, .depth = DepthInput::first_layer})), false},
      {"galerkin", depth_varying(mlp({.features = {1, 32, 1}, .basis = basis})), false},
      {"linear control", linear_reflection(1), true, run.number("linear-learning-rate")},
      {"data-controlled", controlled(mlp({.features = {2, 32, 32, 1}})), true}};
}

/// How far z(1) of the trained linear model is from its closed form.
double closed_form_error(const Field& field, const Tensor& x, const Tensor& end) {
  const auto linear = std::dynamic_pointer_cast<ReflectionField>(field);
  const Tensor exact = x * (2 * torch::exp(-linear->theta) - 1);
  return number((end - exact).abs().max());
}

report::DepthPanel panel(const std::string& name, NeuralOde& ode) {
  const torch::NoGradGuard no_graph;
  const std::vector<double> depths = spaced(0, 1, 61);
  const Tensor x = torch::linspace(-1, 1, 16).unsqueeze(1);
  report::DepthPanel panel{.title = name,
                           .trajectories = curves(depths, ode->trajectory(x, depths).squeeze(2))};
  if (!ode->field()->is_controlled()) panel.slopes = slope_grid(*ode, {0, 1}, {-1.2, 1.2});
  return panel;
}

/// Returns the panel of its trajectories.
report::DepthPanel train_and_judge(Run& run, const Model& model, const Tensor& x) {
  NeuralOde ode(model.field, run.ode());
  run.train(model.name, *ode, [&](std::int64_t) { return torch::l1_loss(ode->forward(x), -x); },
            {.report = [&] { return ode->report(); }, .learning_rate = model.learning_rate});
  const Tensor end = without_graph([&] { return ode->forward(x); });
  const double worst = number((end + x).abs().max());
  run.note(model.name, "largest error", worst);
  run.note(model.name, "mean error", number((end + x).abs().mean()));
  if (model.can_cross) {
    run.claim_below(model.name + ": represents -x, largest |z(1) + x| below 0.05", worst, 0.05);
  } else {
    run.claim_above(model.name + ": cannot represent -x, largest |z(1) + x| above 0.5", worst, 0.5);
  }
  if (model.name == "linear control") {
    const double error = without_graph([&] { return closed_form_error(model.field, x, end); });
    run.claim_below("linear control: z(1) equals its closed form to the solver's tolerance", error,
                    10 * run.number("tolerance"));
  }
  return panel(model.name, ode);
}

void run_crossing(Run& run) {
  const Tensor x = torch::linspace(-1, 1, run.count("points")).unsqueeze(1);
  report::DepthTrajectories flows{.labels = {"x < 0", "x > 0"}}, controlled_flows = flows;
  for (const Model& each : models(run))
    (each.can_cross ? controlled_flows : flows).panels.push_back(train_and_judge(run, each, x));
  const auto finding = [&](bool can_cross) {
    std::string listed;
    for (const Model& each : models(run)) {
      if (each.can_cross != can_cross) continue;
      listed += text(listed.empty() ? "" : ", ", each.name, " ",
                     report::readable(run.figure(each.name, "largest error")));
    }
    return "Largest |z(1) + x|: " + listed + ".";
  };
  run.show(
      "Without data control",
      report::depth_trajectories(
          {.title = "Fields of depth and state",
           .idea = "Trajectories over the learned field. They cannot cross, so the best that the L1 loss "
                   "leaves is to send every input near 0.",
           .finding = finding(false)},
          flows));
  run.show("With data control",
           report::depth_trajectories(
               {.title = "Fields that read the input",
                .idea = "Every input has a field of its own, so trajectories may cross in this picture.",
                .finding = finding(true)},
               controlled_flows));
}

}  // namespace

Experiment crossing() {
  return {
      .id = "E4",
      .name = "crossing",
      .title = "Crossing trajectories",
      .summary = "the reflection -x in one dimension: impossible for a flow, easy with data control",
      .claim =
          "Trajectories of one field cannot cross, so no depth-invariant or depth-varying Neural ODE "
          "represents "
          "-x without augmentation; a data-controlled one does, even a linear one with a single parameter.",
      .settings =
          {{"iterations", 1000, 1000, 1000, "epochs over the whole batch"},
           {"points", 101, 101, 101, "equally spaced in [-1, 1]; our choice"},
           {"learning-rate", 1e-3, 1e-3, 1e-3, "of Adam"},
           {"linear-learning-rate", 1e-2, 1e-2, 1e-3,
            "of the linear model: Adam moves theta by at most this much an epoch, and 2 exp(-theta) < 0.05 "
            "needs theta > 3.7"},
           {"weight-decay", 1e-5, 1e-5, 1e-5, "of Adam"},
           {"harmonics", 5, 5, 5, "of the Fourier basis of theta(s)"},
           {"tolerance", 1e-4, 1e-5, 1e-5, "of the solver; our choice"}},
      .run = run_crossing};
}

}  // namespace fathom::experiments
