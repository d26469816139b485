/// Models that must be the same model: each identity of the paper as a test of values and, where it says more, of gradients.
#include <gtest/gtest.h>

#include "support/directions.hpp"

namespace fathom {

void PrintTo(const DepthBasis& basis, std::ostream* out) { *out << basis.name; }

namespace testing {
namespace {

constexpr std::int64_t features = 3, samples = 4;

const Solver tight = adaptive(dop853(), 1e-12);

NeuralOdeOptions with(const Solver& solver) { return {.solver = solver}; }

Tensor inputs(std::int64_t count = features) { return torch::randn({samples, count}, float64); }

/// A float64 copy of any module with values that favour no entry.
template <class Module> Module randomized(Module module, double deviation = 0.5) {
  module->to(float64);
  randomize(*module, deviation);
  return module;
}

void copy_values(const Tensor& to, const Tensor& from) { to.detach().copy_(from.detach()); }

class Identities : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

// theta(s)

TEST_F(Identities, StackedWithOnePieceIsVanilla) {
  auto layer = randomized(DepthLinear(features, features, piecewise_constant({.pieces = 1})));
  auto constant = randomized(torch::nn::Linear(features, features));
  copy_values(constant->weight, layer->weight[0]);
  copy_values(constant->bias, layer->bias[0]);
  NeuralOde stacked(depth_varying(DepthSequential(layer, torch::nn::Tanh())));
  NeuralOde vanilla(autonomous(DepthSequential(constant, torch::nn::Tanh())));
  const Tensor x = inputs();
  const Tensor one = stacked->forward(x), other = vanilla->forward(x);
  EXPECT_LT(distance(one, other), 1e-14);
  EXPECT_EQ(stacked->report().evaluations, vanilla->report().evaluations);
  one.sum().backward();
  other.sum().backward();
  EXPECT_LT(distance(layer->weight.grad()[0], constant->weight.grad()), 1e-14);
  EXPECT_LT(distance(layer->bias.grad()[0], constant->bias.grad()), 1e-14);
}

TEST_F(Identities, GalerkinOnConstantsAloneIsVanilla) {
  for (const DepthBasis& basis :
       {fourier({.harmonics = 0}), chebyshev({.degree = 0}), legendre({.degree = 0}), polynomial(0),
        piecewise_constant({.pieces = 1})}) {
    DepthLinear layer(features, features, basis);
    layer->to(float64);
    torch::nn::Linear constant(features, features);
    constant->to(float64);
    copy_values(constant->weight, layer->theta(0.3).weight);
    copy_values(constant->bias, layer->theta(0.3).bias);
    const Tensor x = inputs();
    NeuralOde galerkin(depth_varying(DepthSequential(layer, torch::nn::Tanh())));
    NeuralOde vanilla(autonomous(DepthSequential(constant, torch::nn::Tanh())));
    EXPECT_LT(distance(galerkin->forward(x), vanilla->forward(x)), 1e-14) << basis.name;
  }
}

Tensor residual_network(const DepthLinear& layer, Tensor z) {
  const std::int64_t pieces = layer->weight.size(0);
  for (std::int64_t i = 0; i < pieces; ++i)
    z = z + torch::tanh(torch::linear(z, layer->weight[i], layer->bias[i])) / double(pieces);
  return z;
}

TEST_F(Identities, StackedByOneEulerStepAPieceIsAResidualNetworkToTheLastBit) {
  auto layer = randomized(DepthLinear(features, features, piecewise_constant({.pieces = 4})));
  NeuralOde ode(depth_varying(DepthSequential(layer, torch::nn::Tanh())), with(fixed(euler(), 4)));
  const Tensor x = inputs();
  EXPECT_LT(distance(ode->forward(x), residual_network(layer, x)),
            1e-15);  // the fused engine sums in another order
  ode->options().solver.fused = false;
  EXPECT_TRUE(torch::equal(ode->forward(x), residual_network(layer, x)));
}

TEST_F(Identities, StackedByOneEulerStepAPieceHasTheGradientsOfAResidualNetwork) {
  for (std::int64_t pieces : {1, 3, 7}) {  // sizes of steps that binary numbers cannot hold
    auto layer =
        randomized(DepthLinear(features, features, piecewise_constant({.pieces = std::size_t(pieces)})));
    NeuralOde ode(depth_varying(DepthSequential(layer, torch::nn::Tanh())), with(fixed(euler(), pieces)));
    const Tensor x = inputs().requires_grad_();
    const auto variables = with_parameters(*layer, {{"x", x}});
    const Tensor ours = ode->forward(x), theirs = residual_network(layer, x);
    EXPECT_LT(distance(ours, theirs), 1e-14);
    EXPECT_LT(distance(gradients_of(ours.square().sum(), variables),
                       gradients_of(theirs.square().sum(), variables)),
              1e-13);
  }
}

/// Five Gauss points in each of equal panels: exact for polynomials of degree 9 between the joints.
struct Quadrature {
  std::vector<double> points, weights;

  explicit Quadrature(int panels) {
    const double far = 0.906179845938663993, near = 0.538469310105683091;
    const std::vector<double> t = {-far, -near, 0, near, far};
    const std::vector<double> w = {0.236926885056189088, 0.478628670499366468, 0.568888888888888889,
                                   0.478628670499366468, 0.236926885056189088};
    for (int panel = 0; panel < panels; ++panel) {
      for (std::size_t i = 0; i < t.size(); ++i) {
        points.push_back((panel + (t[i] + 1) / 2) / panels);
        weights.push_back(w[i] / 2 / panels);
      }
    }
  }
};

/// a(s) df/dtheta(s) at the points, from the rates of the coefficients, a df/dtheta psi_j(s).
std::vector<Tensor> functional_gradient_at(const std::vector<double>& points, const DepthBasis& basis,
                                           const Tensor& of_coefficients) {
  std::vector<Tensor> rows;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Tensor psi = torch::tensor(basis.values(points[i]), float64);
    rows.push_back(torch::tensordot(psi, of_coefficients[std::int64_t(i)], {0}, {0}) / psi.square().sum());
  }
  return rows;
}

class EveryBasis : public ::testing::TestWithParam<DepthBasis> {};

TEST_P(EveryBasis, GivesTheFunctionalGradientProjectedOnItsFunctions) {
  torch::manual_seed(5);
  const DepthBasis basis = GetParam();
  auto layer = randomized(DepthLinear(features, features, basis), 0.2);  // smooth enough for the rule below
  DepthSequential net(layer, torch::nn::Tanh());
  const Tensor x = inputs(), target = inputs();
  const auto loss = [&](const Tensor& end) { return (end - target).square().sum(); };

  NeuralOde ode(depth_varying(net), with(tight));
  loss(ode->forward(x)).backward();

  const Quadrature rule(24);  // joints of the piecewise bases lie between panels
  const VectorField field{.rate = [&](const Tensor& s, const Tensor& z) { return net->forward(s, z); },
                          .parameters = layer->parameters(),
                          .break_points = layer->break_points()};
  const auto gradient = functional_gradient(field, x, {0.0, 1.0}, loss, rule.points, tight);
  for (std::size_t parameter = 0; parameter < 2; ++parameter) {
    const auto rows = functional_gradient_at(rule.points, basis, gradient.values[parameter]);
    Tensor projected = torch::zeros_like(gradient.values[parameter][0]);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto psi = basis.values(rule.points[i]);
      for (std::size_t j = 0; j < psi.size(); ++j)
        projected[std::int64_t(j)] += rule.weights[i] * psi[j] * rows[i];
    }
    EXPECT_LT(distance(projected, layer->parameters()[parameter].grad()), 1e-8);
  }
}

INSTANTIATE_TEST_SUITE_P(Identities, EveryBasis,
                         ::testing::Values(fourier({.harmonics = 2}), chebyshev(), legendre(), polynomial(3),
                                           gaussian_radial({.centres = 4}),
                                           multiquadric_radial({.centres = 4}),
                                           piecewise_constant({.pieces = 4}),
                                           piecewise_linear({.pieces = 4})),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST_F(Identities, TheGradientOfAPieceIsTheIntegralOverThatPieceAlone) {
  constexpr std::int64_t pieces = 4;
  auto layer = randomized(DepthLinear(features, features, piecewise_constant({.pieces = pieces})));
  DepthSequential net(layer, torch::nn::Tanh());
  const Tensor x = inputs();
  const auto loss = [](const Tensor& end) { return end.square().sum(); };
  NeuralOde ode(depth_varying(net), with(tight));
  loss(ode->forward(x)).backward();

  // theta as one constant tensor a piece: its functional gradient knows no basis.
  const Quadrature rule(24);
  const VectorField field{.rate = [&](const Tensor& s, const Tensor& z) { return net->forward(s, z); },
                          .parameters = {layer->weight},
                          .break_points = layer->break_points()};
  const auto gradient = functional_gradient(field, x, {0.0, 1.0}, loss, rule.points, tight);
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    Tensor integral = torch::zeros({features, features}, float64);
    for (std::size_t i = 0; i < rule.points.size(); ++i) {
      if (std::int64_t(rule.points[i] * pieces) != piece) continue;
      const Tensor z = ode->trajectory(x, {0.0, rule.points[i]})[-1].detach();
      const Tensor a = gradient.adjoint[std::int64_t(i)];
      const Tensor slope =
          1 - torch::tanh(torch::linear(z, layer->weight[piece], layer->bias[piece])).square();
      integral += rule.weights[i] * torch::matmul((a * slope).t(), z);
    }
    EXPECT_LT(distance(integral, layer->weight.grad()[piece]), 1e-8) << "piece " << piece;
  }
}

// Orders and augmentation

TEST_F(Identities, OrderNIsItsCompanionSystem) {
  for (std::int64_t order : {1, 2, 3, 4}) {
    auto net = randomized(mlp({.features = {2 * order, 5, 2}}));
    NeuralOde ode(higher_order(autonomous(net), order), with(fixed(rk4(), 5)));
    NeuralOde by_hand(own_field({.rate =
                                     [=](const Tensor& s, const Tensor&, const Tensor& z) {
                                       auto blocks = z.chunk(order, 1);
                                       blocks.erase(blocks.begin());
                                       blocks.push_back(net.ptr()->forward(s, z));
                                       return torch::cat(blocks, 1);
                                     },
                                 .parameters = net->parameters()}),
                      with(fixed(rk4(), 5)));
    const Tensor x = inputs(2 * order);
    EXPECT_LT(distance(ode->forward(x), by_hand->forward(x)), 1e-14) << "order " << order;
    ode->options().solver.fused = false;
    EXPECT_TRUE(torch::equal(ode->forward(x), by_hand->forward(x))) << "order " << order;
  }
}

TEST_F(Identities, SelectiveOrderOfAllStatesIsFullSecondOrder) {
  auto net = randomized(mlp({.features = {4, 5, 2}}));
  NeuralOde full(higher_order(autonomous(net), 2));
  NeuralOde selective(higher_order(autonomous(net), SelectiveOrder{.states = 4, .order = 2}));
  const Tensor x = inputs(4);
  EXPECT_TRUE(torch::equal(full->forward(x), selective->forward(x)));
}

TEST_F(Identities, SelectiveOrderLeavesTheOtherStatesAtFirstOrder) {
  // z_q' = z_p, z_p' = -4 z_q, z_bar' = -z_bar
  NeuralOde ode(
      higher_order(own_field({.rate =
                                  [](const Tensor&, const Tensor&, const Tensor& z) {
                                    return torch::cat({-4 * z.narrow(1, 0, 1), -z.narrow(1, 2, 1)}, 1);
                                  }}),
                   SelectiveOrder{.states = 2, .order = 2}),
      with(tight));
  const Tensor x = torch::tensor({{1.0, 0.5, 3.0}}, float64);
  const Tensor expected = torch::tensor(
      {{std::cos(2.0) + 0.25 * std::sin(2.0), -2 * std::sin(2.0) + 0.5 * std::cos(2.0), 3 * std::exp(-1.0)}},
      float64);
  EXPECT_LT(distance(ode->forward(x), expected), 1e-10);
}

TEST_F(Identities, SecondOrderStartsAtRestOrWithLearnedVelocities) {
  const Field oscillator = higher_order(
      own_field(
          {.rate = [](const Tensor&, const Tensor&, const Tensor& z) { return -4 * z.narrow(1, 0, 1); }}),
      2);
  const Tensor x = inputs(1);
  NeuralOde at_rest(oscillator, {.solver = tight, .input_layer = torch::nn::AnyModule(ZeroAugmentation(1))});
  EXPECT_LT(distance(at_rest->forward(x).narrow(1, 0, 1), x * std::cos(2.0)), 1e-10);

  auto velocity = randomized(torch::nn::Linear(1, 1));
  NeuralOde moving(oscillator,
                   {.solver = tight, .input_layer = torch::nn::AnyModule(PartialAugmentation(velocity))});
  const Tensor end = moving->forward(x).narrow(1, 0, 1);
  EXPECT_LT(distance(end, x * std::cos(2.0) + velocity->forward(x) * std::sin(2.0) / 2), 1e-10);
  end.sum().backward();
  EXPECT_NEAR(velocity->bias.grad().item<double>(), samples * std::sin(2.0) / 2, 1e-9);
}

TEST_F(Identities, AnInputLayerOfIdentityAndZerosIsZeroAugmentation) {
  auto net = randomized(mlp({.features = {5, 6, 5}}));
  const auto run = [&](const torch::nn::AnyModule& h_x) {
    return NeuralOde(autonomous(net), NeuralOdeOptions{.input_layer = h_x});
  };
  for (Side side : {Side::front, Side::end}) {
    torch::nn::Linear matrix(torch::nn::LinearOptions(features, 5).bias(false));
    matrix->to(float64);
    copy_values(matrix->weight, torch::eye(5, float64).narrow(1, side == Side::end ? 0 : 2, features));
    const Tensor x = inputs();
    EXPECT_TRUE(torch::equal(run(torch::nn::AnyModule(matrix))->forward(x),
                             run(torch::nn::AnyModule(ZeroAugmentation(2, side)))->forward(x)));
  }
}

TEST_F(Identities, TheApproximationEndsAtItsNetworksAnswer) {
  auto net = randomized(mlp({.features = {features, 8, 2}}));
  NeuralOde ode(approximation(net, features),
                {.solver = tight, .input_layer = torch::nn::AnyModule(ZeroAugmentation(2))});
  const Tensor x = inputs();
  const Tensor end = ode->forward(x);
  EXPECT_LT(distance(end.narrow(1, features, 2), net->forward({}, x)), 1e-12);
  EXPECT_TRUE(torch::equal(end.narrow(1, 0, features), x));
}

}  // namespace
}  // namespace testing
}  // namespace fathom
