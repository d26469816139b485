/// A field of one's own in plain functions, integrated and differentiated: the damped pendulum
///   q' = p,   p' = -k sin q - c p        with  dL/dk, dL/dc  of  L = q(4)
#include <cmath>
#include <fathom/callback_field.hpp>
#include <fathom/session.hpp>
#include <iostream>

int main() {
  using namespace fathom;
  // [callback]
  CallbackField<double> pendulum{.features = 2, .parameters = 2};
  pendulum.rate = [](const Evaluation<double>& at, std::span<double> rate) {
    rate[0] = at.state[1];
    rate[1] = -at.parameters[0] * std::sin(at.state[0]) - at.parameters[1] * at.state[1];
  };
  pendulum.product = [](const Evaluation<double>& at, std::span<const double> a,
                        const AdjointProduct<double>& to) {
    to.state[0] = -a[1] * at.parameters[0] * std::cos(at.state[0]);
    to.state[1] = a[0] - a[1] * at.parameters[1];
    if (to.parameters.empty()) return;
    to.parameters[0] = -a[1] * std::sin(at.state[0]);
    to.parameters[1] = -a[1] * at.state[1];
  };
  Session<double> session(pendulum.field());
  const std::vector<double> start = {1, 0}, parameters = {2, 0.1}, depths = {0, 4}, adjoint = {0, 0, 1, 0};
  std::vector<double> states(4), slope(2);
  session.solve({.start = view_of(start, 2), .parameters = parameters}, depths, view_of(states, 2));
  session.backward(view_of(adjoint, 2), {.parameters = slope});
  std::cout << "q(4) = " << states[2] << ", dq/dk = " << slope[0] << ", dq/dc = " << slope[1] << "\n";
  // [/callback]
}
