#include <cmath>
#include <iostream>

#include "headers.hpp"

int main() {
  const auto solution =
      fathom::solve({.rate = [](const torch::Tensor&, const torch::Tensor& z) { return -z; }},
                    torch::ones({1}, torch::kFloat64), {0.0, 1.0});
  const auto last = solution.states[-1].item<double>();
  std::cout << "exp(-1) is about " << last << '\n';
  return std::abs(last - std::exp(-1.0)) < 1e-3 ? 0 : 1;
}
