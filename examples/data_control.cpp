/// Data control: the field sees the input at every depth, so that flows of different inputs may cross.
///   z'(s) = f_theta(z(s), x),  z(0) = x;     here it learns the reflection x -> -x, which no f_theta(z) can
/// The same by hand (G7):  z' = -theta (z + x)  ends at  x (2 exp(-theta) - 1),  off by 2 |x| exp(-theta).
#include <cmath>
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

double trained_error(const Field& field) {
  NeuralOde ode(field);
  const Tensor x = torch::linspace(-1, 1, 32).unsqueeze(1);
  torch::optim::Adam optimizer(ode->parameters(), torch::optim::AdamOptions(2e-2));
  for (int iteration = 0; iteration < 200; ++iteration) {
    const Tensor loss = torch::l1_loss(ode->forward(x), -x);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  const torch::NoGradGuard no_graph;
  return (ode->forward(x) + x).abs().max().item<double>();
}

int main() {
  torch::manual_seed(0);
  const double without = trained_error(autonomous(mlp({.features = {1, 16, 1}})));
  const double with = trained_error(controlled(mlp({.features = {2, 16, 1}})));
  std::cout << "largest error of x -> -x on [-1, 1]\n"
            << "  z' = f(z)      " << without << "   (trajectories cannot cross)\n"
            << "  z' = f(z, x)   " << with << "\n";

  const torch::NoGradGuard no_graph;
  NeuralOde by_hand(linear_reflection(3.0));
  const double end = by_hand->forward(torch::ones({1, 1})).item<double>(), exact = 2 * std::exp(-3.0) - 1;
  std::cout << "  z' = -3 (z + x) takes 1 to " << end << ", exactly " << exact << "\n";
  return without > 0.5 && with < 0.1 && std::abs(end - exact) < 1e-3 ? 0 : 1;
}
