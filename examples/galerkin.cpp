/// Parameters that vary with depth, found from data: the coefficients of theta(s) on a Fourier basis.
///   z'(s) = W(s) z + b(s),  W(s) = sum_j W_j psi_j(s),  b(s) = sum_j b_j psi_j(s)
/// The data come from W(s) = cos(2 pi s), b = 0, whose solution is z(s) = z(0) exp(sin(2 pi s) / 2 pi).
#include <cmath>
#include <fathom/fathom.hpp>
#include <iostream>
#include <numbers>

using namespace fathom;

int main() {
  torch::manual_seed(0);
  const double turn = 2 * std::numbers::pi;
  const std::vector<double> depths = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
  const Tensor start = torch::linspace(-1, 1, 8).unsqueeze(1);
  const Tensor observed = start * (torch::sin(turn * torch::tensor(depths)) / turn).exp().view({-1, 1, 1});

  DepthLinear layer(1, 1, fourier({.harmonics = 2}));
  NeuralOde ode(depth_varying(layer));
  torch::optim::Adam optimizer(ode->parameters(), torch::optim::AdamOptions(0.05));
  for (int iteration = 0; iteration < 200; ++iteration) {
    const Tensor loss = torch::mse_loss(ode->trajectory(start, depths), observed);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (iteration % 50 == 0) std::cout << "loss " << loss.item<double>() << "\n";
  }

  double worst = 0;
  for (double s : depths) {
    const double found = layer->theta(s).weight.item<double>(), exact = std::cos(turn * s);
    std::cout << "W(" << s << ") = " << found << ", true " << exact << "\n";
    worst = std::max(worst, std::abs(found - exact));
  }
  return worst < 0.05 ? 0 : 1;
}
