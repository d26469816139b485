/// An integral loss: trajectories learn to follow a curve, at every depth and not only at the end.
///   ell = int_0^1 |beta(s) - z(s)|^2 ds,   beta(s) = (cos 2 pi s, sin 2 pi s),   z' = f_theta(s)(z)
/// It is integrated along with z, and its gradient is exact; the path's length is measured beside it.
#include <fathom/fathom.hpp>
#include <iostream>
#include <numbers>

using namespace fathom;

Tensor distance_to_curve(const Tensor& s, const Tensor&, const Tensor& z, const Tensor&) {
  const Tensor angle = 2 * std::numbers::pi * s;
  const Tensor beta = torch::stack({angle.cos(), angle.sin()}).to(z.scalar_type());
  return (z - beta).square().sum(1);  // one value a sample
}

int main() {
  torch::manual_seed(0);
  const DepthSequential net(DepthLinear(2, 32, fourier({.harmonics = 2})), torch::nn::Tanh(),
                            torch::nn::Linear(32, 2));
  NeuralOde ode(depth_varying(net), NeuralOdeOptions{.running_losses = {distance_to_curve, path_length()}});
  torch::optim::Adam optimizer(ode->parameters(), torch::optim::AdamOptions(1e-2));
  double tracking = 0;
  for (int iteration = 0; iteration <= 100; ++iteration) {
    const Tensor starts = torch::tensor({1.0f, 0.0f}) + 0.2 * torch::randn({64, 2});
    const Tensor losses = ode->solve(starts).running_loss[-1].mean(0);  // (2): tracking, length
    optimizer.zero_grad();
    losses[0].backward();
    optimizer.step();
    tracking = losses[0].item<double>();
    if (iteration % 25 == 0)
      std::cout << iteration << ": int |beta - z|^2 = " << tracking << ", length " << losses[1].item<double>()
                << "\n";
  }
  std::cout << "the curve itself is " << 2 * std::numbers::pi << " long\n" << ode->report().brief() << "\n";
  return tracking < 0.1 ? 0 : 1;
}
