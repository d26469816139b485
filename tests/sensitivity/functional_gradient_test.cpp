/// delta ell / delta theta(s) (G2): its integrals are the gradients of every parametrisation of theta(s).
///   ell = |z(S)|^2 / 2 [+ int |z|^2 + theta^2 ds],   z' = tanh(theta(s) z) + theta(s) sin(s)
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

const Solver precise = adaptive(dopri5(), 1e-11);
const std::vector<double> span = {0.2, 1.5};
const Tensor z0 = torch::tensor({{0.8, -0.3}, {0.1, 0.5}}, float64);

/// Nodes and weights of five-point Gauss quadrature on `panels` equal panels.
struct Quadrature {
  std::vector<double> nodes, weights;

  Quadrature(double from, double to, int panels = 30) {
    const double near = std::sqrt(5 - 2 * std::sqrt(10.0 / 7)) / 3,
                 far = std::sqrt(5 + 2 * std::sqrt(10.0 / 7)) / 3;
    const double near_weight = (322 + 13 * std::sqrt(70.0)) / 900,
                 far_weight = (322 - 13 * std::sqrt(70.0)) / 900;
    const double half = (to - from) / (2 * panels);
    for (int panel = 0; panel < panels; ++panel) {
      const double middle = from + (2 * panel + 1) * half;
      for (const auto& [node, weight] : {std::pair{-far, far_weight},
                                         {-near, near_weight},
                                         {0.0, 128.0 / 225},
                                         {near, near_weight},
                                         {far, far_weight}}) {
        nodes.push_back(middle + half * node);
        weights.push_back(std::abs(half) * weight);
      }
    }
  }
};

/// The field for a theta(s) that is given as a function; `shift` is added to it at all depths, for delta / delta theta.
using Theta = std::function<Tensor(const Tensor& s)>;

VectorField field_of(Theta theta, std::vector<Tensor> parameters, bool with_running_loss) {
  VectorField field{
      .rate = [theta](const Tensor& s,
                      const Tensor& z) { return torch::tanh(theta(s) * z) + theta(s) * torch::sin(s); },
      .parameters = std::move(parameters)};
  if (with_running_loss) {
    field.running_loss = [theta](const Tensor& s, const Tensor& z, const Tensor&) {
      return z.square().sum(1) + theta(s).square().sum();
    };
  }
  return field;
}

Tensor terminal(const Tensor& z) { return 0.5 * z.square().sum(); }

Tensor loss_of(const VectorField& field, const std::vector<double>& along = span) {
  const Solution solution = solve(field, z0, along, precise);
  const Tensor loss = terminal(solution.states[-1]);
  return field.running_loss ? loss + solution.running_loss[-1].sum() : loss;
}

/// int (delta ell / delta theta(s)) weight(s) ds over [from, to]
Tensor projection(const Theta& theta, bool with_running_loss, const std::function<double(double)>& weight,
                  double from = span[0], double to = span[1], const std::vector<double>& breaks = {}) {
  const Tensor shift = variables({0.0, 0.0});
  VectorField field = field_of([=](const Tensor& s) { return theta(s) + shift; }, {shift}, with_running_loss);
  field.break_points = breaks;
  const Quadrature quadrature(from, to);
  const auto gradient = functional_gradient(field, z0, span, terminal, quadrature.nodes, precise);
  Tensor sum = torch::zeros({2}, float64);
  for (std::size_t i = 0; i < quadrature.nodes.size(); ++i) {
    sum += gradient.values[0][std::int64_t(i)] * quadrature.weights[i] * weight(quadrature.nodes[i]);
  }
  return sum;
}

double one(double) { return 1; }

class FunctionalGradients : public ::testing::TestWithParam<bool> {
 protected:
  bool with_running_loss() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Losses, FunctionalGradients, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "terminal_and_running" : "terminal"; });

TEST_P(FunctionalGradients, IntegrateToTheGradientOfAConstantTheta) {
  const Tensor theta = variables({0.7, -0.4});
  const Theta constant = [theta](const Tensor&) { return theta; };
  const Tensor expected = gradient(loss_of(field_of(constant, {theta}, with_running_loss())), theta);
  EXPECT_LT(distance(projection(constant, with_running_loss(), one), expected), 1e-8);
}

TEST_P(FunctionalGradients, ProjectToTheGradientsOfACoefficientOfABasis) {
  const Tensor alpha = torch::tensor({{0.5, 0.1}, {-0.3, 0.4}, {0.2, 0.6}}, float64).requires_grad_();
  const std::vector<std::function<double(double)>> basis = {one, [](double s) { return std::cos(2 * s); },
                                                            [](double s) { return std::sin(2 * s); }};
  const Theta theta = [alpha](const Tensor& s) {
    return alpha[0] + alpha[1] * torch::cos(2 * s) + alpha[2] * torch::sin(2 * s);
  };
  const Tensor expected = gradient(loss_of(field_of(theta, {alpha}, with_running_loss())), alpha);
  for (std::size_t j = 0; j < basis.size(); ++j) {
    EXPECT_LT(distance(projection(theta, with_running_loss(), basis[j]), expected[std::int64_t(j)]), 1e-8)
        << "psi_" << j;
  }
}

TEST_P(FunctionalGradients, IntegrateOverAPieceToTheGradientOfThatPiece) {
  const std::vector<double> edges = {span[0], 0.6, 1.1, span[1]};
  const std::vector<double> breaks = {edges[1], edges[2]};
  const Tensor pieces = torch::tensor({{0.5, 0.1}, {-0.3, 0.4}, {1.2, -0.6}}, float64).requires_grad_();
  const Theta stacked = [=](const Tensor& s) {
    const double depth = s.item<double>();
    return pieces[depth < breaks[0] ? 0 : depth < breaks[1] ? 1 : 2];
  };
  VectorField field = field_of(stacked, {pieces}, with_running_loss());
  field.break_points = breaks;
  const Tensor expected = gradient(loss_of(field), pieces);
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor given = projection(stacked, with_running_loss(), one, edges[i], edges[i + 1], breaks);
    EXPECT_LT(distance(given, expected[std::int64_t(i)]), 1e-8) << "piece " << i;
  }
}

TEST_P(FunctionalGradients, GiveTheChangeOfTheLossUnderABump) {
  const auto bump = [](double s) { return std::exp(-40 * (s - 0.9) * (s - 0.9)); };
  const Tensor theta = torch::tensor({0.7, -0.4}, float64), direction = torch::tensor({1.0, -2.0}, float64);
  const auto moved = [&](double by) {
    return loss_of(field_of([=](const Tensor& s) { return theta + by * bump(s.item<double>()) * direction; },
                            {}, with_running_loss()))
        .item<double>();
  };
  const double h = 1e-4, expected = (moved(h) - moved(-h)) / (2 * h);
  const Tensor given = projection([theta](const Tensor&) { return theta; }, with_running_loss(), bump);
  EXPECT_NEAR((given * direction).sum().item<double>(), expected, 1e-6);
}

TEST(FunctionalGradientOfADecay, IsItsClosedFormAtEveryDepthInAnyOrder) {
  // z' = -theta z, L = z(S): a(s) = exp(-theta (S - s)), delta L / delta theta = -a z = -z(S) at every depth.
  const Tensor theta = variable(0.7);
  const VectorField field{.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; },
                          .parameters = {theta}};
  const std::vector<double> at = {1.0, 0.0, 0.25, 2.0, 0.25};
  for (const auto& along : {std::vector{0.0, 2.0}, std::vector{2.0, 0.0}}) {
    const auto found = functional_gradient(
        field, torch::full({1}, 3.0, float64), along, [](const Tensor& z) { return z.sum(); }, at, precise);
    const double length = along[1] - along[0], end = 3 * std::exp(-0.7 * length);
    ASSERT_EQ(found.depths, at);
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double adjoint = std::exp(-0.7 * (along[1] - at[i]));
      EXPECT_NEAR(found.adjoint[std::int64_t(i)].item<double>(), adjoint, 1e-8);
      EXPECT_NEAR(found.values[0][std::int64_t(i)].item<double>(), -end, 1e-7);
    }
  }
}

TEST(FunctionalGradientOfNothing, WithoutALossIsZero) {
  const Tensor theta = variable(0.7), unused = variables({1.0, 2.0});
  const VectorField field{.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; },
                          .parameters = {theta, unused}};
  const auto found = functional_gradient(field, z0, span, {}, {0.5, 1.0});
  EXPECT_EQ(found.values[0].abs().max().item<double>(), 0);
  EXPECT_EQ(found.values[1].sizes(), (std::vector<std::int64_t>{2, 2}));
}

TEST(FunctionalGradientRefuses, DepthsOutsideItsSpan) {
  const Tensor theta = variable(0.7);
  const VectorField field{.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; },
                          .parameters = {theta}};
  const auto complaint = [&](const std::vector<double>& along, const std::vector<double>& at) {
    return message_of([&] { functional_gradient(field, z0, along, terminal, at); });
  };
  EXPECT_EQ(complaint({0.0, 1.0}, {0.5, 1.5}), "depth 1.5 is outside the span from 0 to 1");
  EXPECT_EQ(complaint({1.0, 0.0}, {-0.5}), "depth -0.5 is outside the span from 1 to 0");
  EXPECT_EQ(complaint({0.0, 0.5, 1.0}, {0.5}), "`span` needs a start and an end, got 3 value(s)");
}

TEST(FunctionalGradientRefuses, ALossThatIsNoScalar) {
  const Tensor theta = variable(0.7);
  const VectorField field{.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; },
                          .parameters = {theta}};
  EXPECT_EQ(
      message_of([&] { functional_gradient(field, z0, span, [](const Tensor& z) { return z; }, {0.5}); }),
      "the terminal loss must be a scalar, got shape [2, 2]");
}

TEST(FunctionalGradientRefuses, ParametersThatWantNoGradient) {
  const Tensor theta = torch::scalar_tensor(0.7, float64);
  const VectorField field{.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; },
                          .parameters = {theta}};
  EXPECT_EQ(message_of([&] { functional_gradient(field, z0, span, terminal, {0.5}); }),
            "parameter 0 of the field must want a gradient for its functional gradient; call "
            "`requires_grad_()` on it");
}

}  // namespace
}  // namespace fathom::testing
