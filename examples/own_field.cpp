/// A field of your own: any function of depth, input and state; the tensors it reads are trained with the rest.
///   z_1' = a z_1 - b z_1 z_2,   z_2' = b z_1 z_2 - c z_2          (predators and prey, Lotka and Volterra)
/// The rates a, b, c are found again from a trajectory.
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

Field predators_and_prey(const Tensor& rates) {
  return own_field({.rate =
                        [=](const Tensor&, const Tensor&, const Tensor& z) {
                          const Tensor prey = z.select(1, 0), predators = z.select(1, 1);
                          const Tensor eaten = rates[1] * prey * predators;
                          return torch::stack({rates[0] * prey - eaten, eaten - rates[2] * predators}, 1);
                        },
                    .parameters = {rates}});
}

int main() {
  const std::vector<double> depths = {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4};
  const Tensor start = torch::tensor({{1.0, 0.5}}, torch::kFloat64);
  const Tensor true_rates = torch::tensor({1.1, 0.7, 0.9}, torch::kFloat64);
  const Tensor observed = NeuralOde(predators_and_prey(true_rates))->trajectory(start, depths);

  const Tensor rates = torch::ones({3}, torch::dtype(torch::kFloat64).requires_grad(true));
  NeuralOde ode(predators_and_prey(rates));
  torch::optim::Adam optimizer(std::vector<Tensor>{rates}, torch::optim::AdamOptions(0.02));
  for (int iteration = 0; iteration <= 200; ++iteration) {
    const Tensor loss = torch::mse_loss(ode->trajectory(start, depths), observed);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (iteration % 50 == 0) std::cout << iteration << ": loss " << loss.item<double>() << "\n";
  }
  std::cout << "rates found: " << rates.detach().view({1, -1}) << "\ntrue rates: " << true_rates.view({1, -1})
            << "\n";
  return (rates - true_rates).abs().max().item<double>() < 0.02 ? 0 : 1;
}
