/// A complete training program: which of two rings is a point on? No field of the plane can part them without tearing;
/// one that is controlled by the data can.
///   z'(s) = f_theta(z(s), x),  z(0) = x,  y_hat = w . z(1) + b
#include <fathom/fathom.hpp>
#include <iostream>
#include <numbers>

using namespace fathom;

struct Rings {
  Tensor x;  // (count, 2)
  Tensor y;  // (count, 1): 0 on the ring of radius 1, 1 on the ring of radius 2
};

Rings rings(std::int64_t count) {
  const Tensor y = torch::randint(2, {count, 1}).to(torch::kFloat32);
  const Tensor angle = 2 * std::numbers::pi * torch::rand({count, 1});
  const Tensor radius = 1 + y + 0.1 * torch::randn({count, 1});
  return {radius * torch::cat({angle.cos(), angle.sin()}, 1), y};
}

int main() {
  torch::manual_seed(1);
  // [training]
  NeuralOde ode(controlled(mlp({.features = {4, 32, 2}, .activation = Activation::softplus})));
  torch::nn::Sequential model(ode, torch::nn::Linear(2, 1));
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));

  for (int iteration = 1; iteration <= 300; ++iteration) {
    const auto [x, y] = rings(256);
    const Tensor loss = torch::mse_loss(model->forward(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (iteration % 50 == 0)
      std::cout << iteration << ": loss " << loss.item<double>() << ", " << ode->report().brief() << "\n";
  }
  // [/training]

  const torch::NoGradGuard no_graph;
  const auto [x, y] = rings(2000);
  const Tensor right = (model->forward(x) > 0.5) == (y > 0.5);
  const double accuracy = right.to(torch::kFloat64).mean().item<double>();
  std::cout << "accuracy on fresh points: " << 100 * accuracy << " %\n";
  return accuracy > 0.98 ? 0 : 1;
}
