/// Running losses and regularisers: their values against closed forms and against a quadrature of the trajectory (R1 to R3).
#include <gtest/gtest.h>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

const Solver tight = adaptive(dop853(), 1e-11);

/// Simpson's rule over the trajectory of l(s, z(s)), (batch).
Tensor quadrature(NeuralOde& ode, const Tensor& x,
                  const std::function<Tensor(double s, const Tensor& z)>& l) {
  constexpr int intervals = 200;
  std::vector<double> depths;
  for (int i = 0; i <= intervals; ++i) depths.push_back(double(i) / intervals);
  const Tensor states = ode->trajectory(x, depths);
  Tensor sum = torch::zeros({x.size(0)}, float64);
  for (int i = 0; i <= intervals; ++i) {
    const double weight = i == 0 || i == intervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum = sum + weight * l(depths[std::size_t(i)], states[i]);
  }
  return sum / (3 * intervals);
}

class Regularizers : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(12);
    net = mlp({.features = {4, 5, 2}, .depth = DepthInput::first_layer});
    net->to(float64);
    randomize(*net);
    field = controlled(net);
    x = torch::randn({3, 2}, float64);
    plain = NeuralOde(field, NeuralOdeOptions{.solver = tight});
  }
  Tensor rate(double s, const Tensor& z) { return plain->rate(s, x, z); }

  DepthSequential net;
  Field field;
  Tensor x;
  NeuralOde plain{nullptr};
};

TEST_F(Regularizers, AreTheIntegralsTheyClaimToBeSeveralAtOnce) {
  const Tensor probe = torch::randn({3, 2}, float64);
  NeuralOde ode(field, {.solver = tight,
                        .running_losses = {path_length(), kinetic_energy(), jacobian_norm(field, probe)}});
  const Solution solution = ode->solve(x);
  ASSERT_EQ(solution.running_loss.sizes(), (std::vector<std::int64_t>{2, 3, 3}));
  EXPECT_EQ(solution.running_loss[0].abs().max().item<double>(), 0);
  const Tensor found = solution.running_loss[-1];
  const auto column = [&](std::int64_t i) { return found.select(1, i); };
  EXPECT_LT(distance(column(0),
                     quadrature(plain, x, [&](double s, const Tensor& z) { return rate(s, z).norm(2, 1); })),
            1e-8);
  EXPECT_LT(
      distance(column(1),
               quadrature(plain, x, [&](double s, const Tensor& z) { return rate(s, z).square().sum(1); })),
      1e-8);
  const auto product = [&](double s, const Tensor& z) {
    const Tensor at = z.detach().requires_grad_();
    return gradient((rate(s, at) * probe).sum(), at).square().sum(1);
  };
  EXPECT_LT(distance(column(2), quadrature(plain, x, product)), 1e-8);
  EXPECT_LT(distance(solution.states[-1], plain->forward(x)), 1e-9)
      << "a running loss must not change the solution";
}

TEST_F(Regularizers, AreOneValueASampleWhenThereIsOne) {
  NeuralOde ode(field, {.solver = tight, .running_losses = {kinetic_energy()}});
  const Tensor values = ode->solve(x, {0.0, 0.5, 1.0}).running_loss;
  EXPECT_EQ(values.sizes(), (std::vector<std::int64_t>{3, 3}));
  const Solution first_half = ode->solve(x, {0.0, 0.5});
  EXPECT_LT(distance(values[1], first_half.running_loss[-1]), 1e-9);
}

TEST_F(Regularizers, OfAStraightPathAreItsLengthAndItsSquare) {
  const Tensor v = torch::tensor({3.0, 4.0}, float64);
  const Field straight =
      own_field({.rate = [=](const Tensor&, const Tensor&, const Tensor& z) { return v.expand_as(z); }});
  NeuralOde ode(straight, {.last = 2, .running_losses = {path_length(), kinetic_energy()}});
  const Tensor values = ode->solve(x).running_loss[-1];
  EXPECT_LT(distance(values.select(1, 0), torch::full({3}, 10.0, float64)), 1e-12);
  EXPECT_LT(distance(values.select(1, 1), torch::full({3}, 50.0, float64)), 1e-12);
}

TEST_F(Regularizers, MeasureTheSpeedAtTheEnd) {
  const Tensor end = plain->forward(x);
  EXPECT_LT(distance(terminal_speed(*plain, x, end), rate(1.0, end).norm(2, 1)), 1e-14);
}

TEST_F(Regularizers, OfImagesSumOverChannelsAndPixels) {
  const Field one =
      own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) { return torch::ones_like(z); }});
  NeuralOde ode(one, NeuralOdeOptions{.running_losses = {path_length()}});
  const Tensor values = ode->solve(torch::zeros({2, 3, 4, 4}, float64)).running_loss[-1];
  EXPECT_LT(distance(values, torch::full({2}, std::sqrt(48.0), float64)), 1e-12);
}

TEST_F(Regularizers, EstimateTheFrobeniusNormOfTheJacobianWithoutBias) {
  constexpr std::int64_t probes = 20000;
  const torch::NoGradGuard no_graph;
  const Tensor s = torch::full({}, 0.4, float64), one = x.narrow(0, 0, 1).expand({probes, 2});
  const Tensor values = jacobian_norm(field, torch::randn({probes, 2}, float64))(s, one, one, {});
  double exact = 0;
  for (std::int64_t i = 0; i < 2; ++i) {
    const Tensor unit = torch::eye(2, float64).narrow(0, i, 1);
    exact += jacobian_norm(field, unit)(s, x.narrow(0, 0, 1), x.narrow(0, 0, 1), {}).item<double>();
  }
  const double error = values.mean().item<double>() - exact;
  EXPECT_LT(std::abs(error), 3 * values.std().item<double>() / std::sqrt(double(probes)));
}

TEST_F(Regularizers, SayWhatShapeTheyNeed) {
  NeuralOde wrong_probe(
      field, NeuralOdeOptions{.running_losses = {jacobian_norm(field, torch::ones({2, 2}, float64))}});
  EXPECT_NE(message_of([&] {
              wrong_probe->solve(x);
            }).find("the probe must have the shape of the state [3, 2], got [2, 2]"),
            std::string::npos);
  NeuralOde reduced(field,
                    NeuralOdeOptions{.running_losses = {[](const Tensor&, const Tensor&, const Tensor& z,
                                                           const Tensor&) { return z.sum(); }}});
  EXPECT_NE(message_of([&] {
              reduced->solve(x);
            }).find("the running loss must return one value a sample, shape [3], got []"),
            std::string::npos);
}

}  // namespace
}  // namespace fathom::testing
