/// A conditional flow: one field carries a prior to a target for every condition c.
///   log p(x | c) = log q(z(S) | c) + int_0^S tr df/dz ds,   z' = f_theta(z, c),  z(0) = x
/// Condition 0: prior N(1, 0.3) and target N(-1, 0.3); condition 1 the other way round, so the two flows must cross.
#include <cmath>
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

constexpr double deviation = 0.3;

Tensor target_mean(const Tensor& condition) { return 2 * condition - 1; }  // (count, 1)

int main() {
  torch::manual_seed(0);
  const Density noise = diagonal_normal(torch::zeros({1}), torch::full({1}, deviation));
  const Density prior{
      .log_prob = [=](const Tensor& z, const Tensor& c) { return noise.log_prob(z + target_mean(c), {}); },
      .sample = [=](std::int64_t n, const Tensor& c) { return noise.sample(n, {}) - target_mean(c); }};
  Flow flow(controlled(mlp({.features = {2, 32, 1}, .activation = Activation::softplus})), prior);

  torch::optim::Adam optimizer(flow->parameters(), torch::optim::AdamOptions(2e-2));
  for (int iteration = 0; iteration <= 150; ++iteration) {
    const Tensor condition = torch::randint(2, {128, 1}).to(torch::kFloat32);
    const Tensor x = target_mean(condition) + deviation * torch::randn({128, 1});
    const Tensor loss = -flow->log_prob(x, condition).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (iteration % 50 == 0) std::cout << iteration << ": -log p = " << loss.item<double>() << "\n";
  }
  std::cout << "entropy of the targets: " << 0.5 * std::log(2 * M_PI * M_E) + std::log(deviation) << "\n";

  const torch::NoGradGuard no_graph;
  bool right = true;
  for (double c : {0.0, 1.0}) {
    const Tensor samples = flow->sample(2000, torch::full({2000, 1}, c));
    const double mean = samples.mean().item<double>(), spread = samples.std().item<double>();
    std::cout << "condition " << c << ": samples " << mean << " +- " << spread << "\n";
    right = right && std::abs(mean - (2 * c - 1)) < 0.1 && std::abs(spread - deviation) < 0.1;
  }
  return right ? 0 : 1;
}
