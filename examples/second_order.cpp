/// A field of second order: positions and velocities, of which only the acceleration is learned.
///   z_q' = z_p,  z_p' = f_theta(z_q, z_p),  z(0) = [x, 0]     (velocities start at rest)
/// The data are an oscillator, z_q(s) = x cos(2 s), so f should become  -4 z_q + 0 z_p.
#include <cmath>
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

int main() {
  torch::manual_seed(0);
  const std::vector<double> depths = {0, 0.5, 1, 1.5, 2, 2.5, 3};
  const Tensor x = torch::linspace(-1, 1, 6).unsqueeze(1);
  const Tensor observed = x * torch::cos(2 * torch::tensor(depths)).view({-1, 1, 1});

  torch::nn::Linear acceleration(torch::nn::LinearOptions(2, 1).bias(false));
  NeuralOde ode(higher_order(autonomous(acceleration), 2),
                NeuralOdeOptions{.input_layer = torch::nn::AnyModule(ZeroAugmentation(1))});
  torch::optim::Adam optimizer(ode->parameters(), torch::optim::AdamOptions(0.2));
  for (int iteration = 0; iteration < 200; ++iteration) {
    const Tensor positions = ode->trajectory(x, depths).narrow(2, 0, 1);
    const Tensor loss = torch::mse_loss(positions, observed);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (iteration % 50 == 0) std::cout << "loss " << loss.item<double>() << "\n";
  }

  const double spring = acceleration->weight[0][0].item<double>();
  const double friction = acceleration->weight[0][1].item<double>();
  std::cout << "z_p' = " << spring << " z_q + " << friction << " z_p,  true: -4 z_q + 0 z_p\n";
  return std::abs(spring + 4) < 0.05 && std::abs(friction) < 0.05 ? 0 : 1;
}
