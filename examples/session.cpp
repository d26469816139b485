/// A neural ODE trained without a framework, on 30 points of a spiral:
///   z' = f(z; theta) with an MLP for f,   L(theta) = mean |z(s_p) - y_p|^2  over all points
#include <cmath>
#include <fathom/adam.hpp>
#include <fathom/session.hpp>
#include <iostream>
#include <vector>

int main() {
  using namespace fathom;
  std::vector<double> depths;
  std::vector<float> points;  // (30, 2)
  for (int p = 0; p < 30; ++p) {
    const double s = 0.1 * p, radius = std::exp(-0.2 * s);
    depths.push_back(s);
    points.insert(points.end(), {float(radius * std::cos(2 * s)), float(radius * std::sin(2 * s))});
  }

  // [session]
  const ProgramField field = network_field({.features = 2, .layers = {{32, Activation::tanh}, {2}}});
  std::vector<float> theta = initial_parameters<float>(field, /*seed=*/1), slope(theta.size());
  Session<float> session(field);
  Adam<float> adam({.rate = 1e-2});

  const Data<float> data{.start = {points.data(), 1, 2}, .parameters = theta};
  const Loss<float> loss{.targets = view_of(points, 2)};
  const Gradient<float> gradient{.parameters = slope};
  for (int iteration = 1; iteration <= 500; ++iteration) {
    const double value = session.loss(data, depths, loss, &gradient);
    adam.step(theta, slope);
    if (iteration % 100 == 0) std::cout << value << ", " << session.report().brief() << "\n";
  }
  // [/session]
  const double last = session.loss(data, depths, loss);
  if (last > 1e-3) return std::cerr << "the spiral was not learned: loss " << last << "\n", 1;
}
