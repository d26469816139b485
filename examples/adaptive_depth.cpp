/// Adaptive depth: every input runs to a depth of its own, and the network g that chooses it is trained as well.
///   y_hat = z(g_omega(x)),  z'(s) = f_theta(s, z),  z(0) = x,  g(x) = |1 + w_o . relu(w_i x + b_i) + b_o|
/// The reflection {-1 -> 1, 1 -> -1} needs no crossing: the two points may stop at different depths.
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

int main() {
  torch::manual_seed(3);
  const Tensor x = torch::tensor({-1.0f, 1.0f}).unsqueeze(1);
  AdaptiveDepth model(depth_varying(mlp({.features = {1, 8, 8, 1}, .depth = DepthInput::first_layer})),
                      torch::nn::AnyModule(PaperDepth(1)));
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(2e-2));
  for (int iteration = 0; iteration <= 120; ++iteration) {
    const Tensor loss = torch::mse_loss(model->forward(x), -x);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (iteration % 40 == 0) std::cout << iteration << ": loss " << loss.item<double>() << "\n";
  }

  const torch::NoGradGuard no_graph;
  const Tensor end = model->forward(x), depth = model->depths(x);
  for (std::int64_t i = 0; i < 2; ++i) {
    std::cout << x[i].item<double>() << " ends at " << end[i].item<double>() << ", at depth "
              << depth[i].item<double>() << "\n";
  }
  return (end + x).abs().max().item<double>() < 0.1 ? 0 : 1;
}
