/// A grey box: the physics that is known, and a network for what is not.
///   q' = v,   v' = -q + net(v)          the true, unknown friction is -0.4 v |v|
/// Its weights are trained, saved and loaded like those of any torch module.
#include <cmath>
#include <cstdio>
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

// [field]
Field oscillator(const DepthSequential& friction) {
  return own_field({.rate =
                        [friction](const Tensor& s, const Tensor&, const Tensor& z) {
                          const Tensor q = z.narrow(1, 0, 1), v = z.narrow(1, 1, 1);
                          return torch::cat({v, friction->forward(s, v) - q}, 1);
                        },
                    .modules = {friction}});
}
// [/field]

int main() {
  torch::manual_seed(4);
  const std::vector<double> depths = {0, 0.5, 1, 1.5, 2, 2.5, 3};
  const Tensor starts = torch::tensor({{2.0, 0.0}, {-2.0, 0.0}, {0.0, 2.0}, {0.0, -2.0}}, torch::kFloat32);
  const Field truth = own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) {
    const Tensor q = z.narrow(1, 0, 1), v = z.narrow(1, 1, 1);
    return torch::cat({v, -0.4 * v * v.abs() - q}, 1);
  }});
  const Tensor observed = NeuralOde(truth)->trajectory(starts, depths).detach();

  const auto error = [&](NeuralOde& model) {
    const torch::NoGradGuard no_graph;
    return (model->trajectory(starts, depths) - observed).abs().max().item<double>();
  };

  // [training]
  NeuralOde ode(oscillator(mlp({.features = {1, 16, 1}})));
  fit(*ode, [&](std::int64_t) { return torch::mse_loss(ode->trajectory(starts, depths), observed); },
      {.iterations = 300, .learning_rate = 3e-2, .quiet = true});
  save_module("learned_friction.safetensors", *ode);

  NeuralOde again(oscillator(mlp({.features = {1, 16, 1}})));
  load_into(*again, "learned_friction.safetensors");
  // [/training]
  std::remove("learned_friction.safetensors");

  NeuralOde untrained(oscillator(mlp({.features = {1, 16, 1}})));
  const double before = error(untrained), after = error(again);
  std::cout << "largest error of the trajectories: " << before << " before the training, " << after
            << " after it\n";
  for (const double v : {-1.5, -0.75, 0.75, 1.5}) {
    const Tensor state = torch::tensor({{0.0, v}}, torch::kFloat32);
    const torch::NoGradGuard no_graph;
    std::cout << "friction at v = " << v << ": " << again->rate(0, {}, state)[0][1].item<double>()
              << ", truly " << -0.4 * v * std::abs(v) << "\n";
  }
  return after < 0.25 * before ? 0 : 1;
}
