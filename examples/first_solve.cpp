/// Solve a differential equation and differentiate its answer.
///   z'(s) = -theta z,  z(0) = 1     ->     z(s) = exp(-theta s),  dz(S)/dtheta = -S exp(-theta S)
#include <cmath>
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

int main() {
  // [solve]
  const Tensor theta = torch::full({}, 0.7, torch::dtype(torch::kFloat64).requires_grad(true));
  const VectorField decay{.rate = [&](const Tensor&, const Tensor& z) { return -theta * z; },
                          .parameters = {theta}};
  const Solver careful{.steps = AdaptiveSteps{.relative_tolerance = 1e-8, .absolute_tolerance = 1e-8}};
  const Solution solution = solve(decay, torch::ones({1}, torch::kFloat64), {0.0, 1.0, 2.0}, careful);
  solution.states[-1].sum().backward();
  // [/solve]

  for (std::size_t i = 0; i < solution.depths.size(); ++i) {
    const double s = solution.depths[i], z = solution.states[std::int64_t(i)].item<double>();
    std::cout << "z(" << s << ") = " << z << ", exactly " << std::exp(-0.7 * s) << "\n";
  }
  const double slope = theta.grad().item<double>(), exact = -2 * std::exp(-1.4);
  std::cout << "dz(2)/dtheta = " << slope << ", exactly " << exact << "\n"
            << solution.report().brief() << "\n";
  return std::abs(slope - exact) < 1e-6 ? 0 : 1;
}
