/// Half an equation, and a network for the rest: a pendulum whose friction nobody wrote down,
///   q' = p,   p' = -4 sin q + net(q, p; theta)        fitted to 3 measured swings, judged by a fourth
#include <cmath>
#include <fathom/adam.hpp>
#include <fathom/callback_field.hpp>
#include <fathom/session.hpp>
#include <iostream>

namespace {

using namespace fathom;

/// What the measurements come from: the friction is 0.3 p |p|.
std::vector<double> measured(std::span<const double> start, std::span<const double> depths) {
  CallbackField<double> truth{.features = 2};
  truth.rate = [](const Evaluation<double>& at, std::span<double> rate) {
    for (std::size_t i = 0; i < rate.size(); i += 2) {
      const double q = at.state[i], p = at.state[i + 1];
      rate[i] = p;
      rate[i + 1] = -4 * std::sin(q) - 0.3 * p * std::abs(p);
    }
  };
  Session<double> session(truth.field(), {.derivative = Derivative::none});
  std::vector<double> states(depths.size() * start.size());
  session.solve({.start = view_of(start, 2)}, depths, view_of(states, std::int64_t(start.size())));
  return states;
}

}  // namespace

int main() {
  std::vector<double> depths;
  for (int n = 0; n <= 40; ++n) depths.push_back(0.1 * n);
  const std::vector<double> start = {1, 0, 2, 0, -0.5, 2}, states = measured(start, depths);

  // [grey]
  CallbackField<double> gravity{.features = 2};
  gravity.rate = [](const Evaluation<double>& at, std::span<double> rate) {
    for (std::size_t i = 0; i < rate.size(); i += 2) rate[i + 1] = -4 * std::sin(at.state[i]);
  };
  gravity.product = [](const Evaluation<double>& at, std::span<const double> a,
                       const AdjointProduct<double>& to) {
    for (std::size_t i = 0; i < a.size(); i += 2) to.state[i] = -4 * a[i + 1] * std::cos(at.state[i]);
  };
  // A network of order 2 gives q' = p by itself; its answer is the unknown part of p'.
  const ProgramField friction =
      network_field({.features = 2, .layers = {{16, Activation::tanh}, {1}}, .order = 2});
  Session<double> session(gravity.field() + friction);
  // [/grey]

  std::vector<double> theta = initial_parameters<double>(session.field(), /*seed=*/1), slope(theta.size());
  Adam<double> adam({.rate = 1e-2});
  const Data<double> data{.start = view_of(start, 2), .parameters = theta};
  const Loss<double> loss{.targets = view_of(states, 2)};
  const Gradient<double> gradient{.parameters = slope};
  for (int iteration = 1; iteration <= 1000; ++iteration) {
    const double value = session.loss(data, depths, loss, &gradient);
    adam.step(theta, slope);
    if (iteration % 200 == 0) std::cout << iteration << ": loss " << value << "\n";
  }
  const std::vector<double> unseen = {1.5, 0}, swing = measured(unseen, depths);
  const double error = session.loss({.start = view_of(unseen, 2), .parameters = theta}, depths,
                                    {.targets = view_of(swing, 2)});
  std::cout << "mean square error of a swing it has not seen: " << error << "\n";
  if (error > 1e-2) return std::cerr << "the friction was not learned\n", 1;
}
