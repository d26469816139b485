/// Series of different lengths, seen at different times, with values missing, learned in one call:
///   z' = f(z; theta),   L(theta) = mean |z_i(t) - y_i(t)|^2  over what was seen of each series i
#include <cmath>
#include <fathom/adam.hpp>
#include <fathom/session.hpp>
#include <iostream>
#include <limits>
#include <vector>

int main() {
  using namespace fathom;
  // Pendulums of small swing, each seen 4 to 9 times over a span of its own; every fifth velocity is missing.
  std::vector<double> times;
  std::vector<std::int64_t> counts;
  std::vector<float> starts, seen, is_known;
  for (int i = 0; i < 20; ++i) {
    const int count = 4 + i % 6;
    const double swing = 0.2 + 0.05 * i, first = 0.1 * (i % 3);
    for (int n = 0; n < count; ++n) {
      times.push_back(first + (0.2 + 0.01 * i) * n);
      const double t = times.back() - first;
      const bool is_missing = seen.size() % 5 == 3;
      seen.insert(seen.end(),
                  {float(swing * std::cos(t)),
                   is_missing ? std::numeric_limits<float>::quiet_NaN() : float(-swing * std::sin(t))});
      is_known.insert(is_known.end(), {1.0f, is_missing ? 0.0f : 1.0f});
    }
    counts.push_back(count);
    starts.insert(starts.end(), {float(swing), 0.0f});
  }

  // [ragged]
  const ProgramField field = network_field({.features = 2, .layers = {{16, Activation::tanh}, {2}}});
  std::vector<float> theta = initial_parameters<float>(field, /*seed=*/1), slope(theta.size());
  Session<float> session(field, {.threads = 2});
  Adam<float> adam({.rate = 1e-2});

  const RaggedDepths at{.depths = times, .counts = counts};  // (points), (series)
  const Data<float> data{.start = view_of(starts, 2), .parameters = theta};
  const Loss<float> loss{.targets = view_of(seen, 2), .mask = view_of(is_known, 2)};  // (points, 2)
  const Gradient<float> gradient{.parameters = slope};
  for (int iteration = 1; iteration <= 300; ++iteration) {
    const double value = session.loss(data, at, loss, &gradient);
    adam.step(theta, slope);
    if (iteration % 100 == 0) std::cout << value << ", " << session.report().brief() << "\n";
  }
  // [/ragged]
  const double last = session.loss(data, at, loss);
  if (!(last < 1e-3)) return std::cerr << "the pendulums were not learned: loss " << last << "\n", 1;
}
