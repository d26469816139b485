/// A stacked Neural ODE: theta(s) is piecewise constant, theta_i on the i-th of p pieces of [0, 1].
///   z'(s) = f(z, theta_i)  for  s in [i/p, (i+1)/p)
/// One Euler step a piece makes it a residual network,  z_{i+1} = z_i + f(z_i, theta_i) / p;  an adaptive solver goes on
/// to the limit, landing on every joint.
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

int main() {
  torch::manual_seed(0);
  constexpr std::int64_t pieces = 4, features = 3;
  DepthLinear layer(features, features, piecewise_constant({.pieces = pieces}));
  torch::nn::init::normal_(layer->weight);  // a fresh layer has the same weights in all pieces
  const Field field = depth_varying(DepthSequential(layer, torch::nn::Tanh()));
  const Tensor x = torch::randn({2, features});
  const torch::NoGradGuard no_graph;

  NeuralOde by_euler(field,
                     NeuralOdeOptions{.solver = {.method = euler(), .steps = FixedSteps{.count = pieces}}});
  Tensor residual = x;
  for (std::int64_t i = 0; i < pieces; ++i) {
    residual =
        residual + torch::tanh(torch::linear(residual, layer->weight[i], layer->bias[i])) / double(pieces);
  }
  std::cout << "residual network of " << pieces << " layers:\n" << residual << "\n";
  const double gap = (by_euler->forward(x) - residual).abs().max().item<double>();
  std::cout << "largest difference to one Euler step a piece: " << gap << "\n";

  NeuralOde limit(field, NeuralOdeOptions{.solver = {.dense = true}});
  const Solution solution = limit->solve(x);
  std::cout << "its continuous limit:\n" << solution.states[-1] << "\nsteps joined at";
  for (double s : solution.grid) std::cout << " " << s;
  std::cout << "\n" << solution.report().brief() << "\n";
  return gap < 1e-6 ? 0 : 1;
}
