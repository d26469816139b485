/// Gradients of the models beside the product: convolutions, graphs, adaptive depth, flows, regularisers, the hand-made ones.
#include <gtest/gtest.h>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

const Solver coarse = fixed(rk4(), 2);
const Solver tight = adaptive(dop853(), 1e-12);

template <class Module> Module ready(Module module) {
  module->to(float64);
  randomize(*module, 0.4);
  return module;
}

Tensor weighted(const Tensor& end) {
  const Tensor weights = torch::linspace(-1, 1.5, end.numel(), float64).view(end.sizes());
  return (end * weights).sum() + 0.3 * end.square().sum();
}

/// Discrete along coarse steps and Adjoint along fine ones; `make` builds the model anew for each.
template <class Make> void expect_right_gradients(Make&& make) {
  for (const auto& [solver, sensitivity] : {std::pair<Solver, Sensitivity>{coarse, Discrete{}},
                                            std::pair<Solver, Sensitivity>{tight, Adjoint{}}}) {
    torch::manual_seed(17);
    const auto [loss, variables] = make(solver, sensitivity);
    EXPECT_EQ(wrong_gradients(loss, variables), "")
        << (std::holds_alternative<Adjoint>(sensitivity) ? "Adjoint" : "Discrete");
  }
}

struct Checked {
  std::function<Tensor()> loss;
  std::vector<NamedTensor> variables;
};

/// A field as a NeuralOde on the given input.
Checked solved(const Field& field, const Tensor& x, const NeuralOdeOptions& options) {
  NeuralOde ode(field, options);
  ready(ode);
  auto variables = with_parameters(*ode, {{"x", x}});
  for (const Tensor& extra : field->extra_parameters()) variables.push_back({"extra", extra});
  return {[=]() mutable { return weighted(ode->forward(x)); }, variables};
}

// Images

const std::vector<std::pair<std::string, DepthBasis>> image_bases = {
    {"fourier", fourier({.harmonics = 1})},
    {"stacked", piecewise_constant({.pieces = 3})},
    {"legendre", legendre({.degree = 1})}};

TEST(ImageGradients, OfDepthVaryingConvolutionsAreRight) {
  for (const auto& [name, basis] : image_bases) {
    SCOPED_TRACE(name);
    expect_right_gradients([&](const Solver& solver, const Sensitivity& sensitivity) {
      return solved(depth_varying(DepthSequential(
                        DepthConv2d(2, 3, basis), torch::nn::Tanh(),
                        DepthConv2d(3, 2, basis, DepthConv2dOptions{.kernel = 1, .padding = 0}))),
                    random_variable({2, 2, 3, 3}), {.solver = solver, .sensitivity = sensitivity});
    });
  }
}

TEST(ImageGradients, OfAControlledAugmentedSecondOrderConvolutionWithDepthChannelsAreRight) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    torch::nn::Conv2d h_x(torch::nn::Conv2dOptions(1, 4, 3).padding(1).bias(false));  // positions, velocities
    torch::nn::Conv2d first(torch::nn::Conv2dOptions(4 + 1 + 1, 3, 3).padding(1)), last(3, 2, 1);
    const Field field = controlled(
        DepthSequential(DepthConcat(), first, torch::nn::Softplus(), torch::nn::GroupNorm(3, 3), last));
    // The control is the raw image.
    return solved(higher_order(field, 2), random_variable({2, 1, 3, 3}),
                  {.solver = solver, .sensitivity = sensitivity, .input_layer = torch::nn::AnyModule(h_x)});
  });
}

// Graphs

TEST(GraphGradients, OfAnAugmentedControlledFieldAreRight) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    const Tensor adjacency = normalized_adjacency(4, {{0, 1}, {1, 2}, {2, 3}});
    return solved(controlled(DepthSequential(GraphLinear(5, 3, adjacency), torch::nn::Tanh(),
                                             GraphLinear(3, 3, adjacency))),
                  random_variable({4, 2}),
                  {.solver = solver,
                   .sensitivity = sensitivity,
                   .input_layer = torch::nn::AnyModule(ZeroAugmentation(1))});
  });
}

// Adaptive depth: into g, into the field, into x (G6)

TEST(AdaptiveDepthGradients, ReachTheDepthNetworkTheFieldAndTheInput) {
  const auto net = [](const std::string& kind, std::int64_t inputs) {
    if (kind == "fourier") return mlp({.features = {inputs, 3, 2}, .basis = fourier({.harmonics = 1})});
    if (kind == "hypernetwork")
      return DepthSequential(HyperLinear(inputs, 3, 2), torch::nn::Tanh(), HyperLinear(3, 2, 2));
    return mlp({.features = {inputs, 3, 2}, .depth = DepthInput::every_layer});
  };
  for (const std::string kind : {"concat", "fourier", "hypernetwork"}) {
    for (const bool with_control : {false, true}) {
      SCOPED_TRACE(kind + (with_control ? " with control" : ""));
      expect_right_gradients([&](const Solver& solver, const Sensitivity& sensitivity) {
        const Field field = with_control ? controlled(net(kind, 4)) : depth_varying(net(kind, 2));
        AdaptiveDepth model(field, torch::nn::AnyModule(PaperDepth(2, 4)),
                            NeuralOdeOptions{.solver = solver, .sensitivity = sensitivity});
        ready(model);
        const Tensor x = random_variable({3, 2});
        return Checked{[=]() mutable { return weighted(model->forward(x)); },
                       with_parameters(*model, {{"x", x}})};
      });
    }
  }
}

TEST(AdaptiveDepthGradients, IncludeTheRunningLossUpToEachDepth) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    AdaptiveDepth model(depth_varying(mlp({.features = {2, 3, 2}, .depth = DepthInput::first_layer})),
                        torch::nn::AnyModule(PaperDepth(2, 4)),
                        NeuralOdeOptions{.solver = solver,
                                         .sensitivity = sensitivity,
                                         .running_losses = {kinetic_energy(), path_length()}});
    ready(model);
    const Tensor x = random_variable({3, 2});
    return Checked{[=]() mutable {
                     return weighted(model->solve(x, {0.0, 0.4, 1.0}).running_loss);
                   },
                   with_parameters(*model, {{"x", x}})};
  });
}

// Flows

/// The same network, but not one that tangents can follow.
DepthSequential chain_in_a_chain(const DepthSequential& inner) {
  DepthSequential outer;
  outer->push_back(inner);
  return outer;
}

struct FlowKind {
  std::string name;
  Trace trace = Trace::exact;
  bool conditional = false, own_control = false, plain_mlp = true;
};

TEST(FlowGradients, OfTheLogDensityAreRightForEveryTraceAndControl) {
  const std::vector<FlowKind> kinds = {
      {.name = "tangents"},
      {.name = "products", .plain_mlp = false},
      {.name = "gaussian probe", .trace = Trace::hutchinson_gaussian},
      {.name = "rademacher probe", .trace = Trace::hutchinson_rademacher},
      {.name = "conditional tangents", .conditional = true},
      {.name = "conditional products", .conditional = true, .plain_mlp = false},
      {.name = "conditional probe", .trace = Trace::hutchinson_gaussian, .conditional = true},
      {.name = "controlled by its sample", .own_control = true}};
  for (const FlowKind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    expect_right_gradients([&](const Solver& solver, const Sensitivity& sensitivity) {
      const bool has_control = kind.conditional || kind.own_control;
      DepthSequential net = mlp({.features = {has_control ? 4 : 2, 4, 2}, .depth = DepthInput::first_layer});
      if (!kind.plain_mlp) net = chain_in_a_chain(net);
      const Tensor mean = random_variable({2}), deviation = torch::full({2}, 0.8, float64);
      Flow flow(has_control ? controlled(net) : depth_varying(net), diagonal_normal(mean, deviation),
                FlowOptions{.solver = solver,
                            .sensitivity = sensitivity,
                            .trace = kind.trace,
                            .controlled_by_sample = kind.own_control});
      ready(flow);
      const Tensor x = random_variable({3, 2}),
                   condition = kind.conditional ? random_variable({3, 2}) : Tensor{};
      auto variables = with_parameters(*flow, {{"x", x}, {"mean", mean}});
      if (condition.defined()) variables.push_back({"condition", condition});
      return Checked{[=]() mutable {
                       torch::manual_seed(1);  // the same probe in every solve
                       return weighted(flow->log_prob(x, condition));
                     },
                     variables};
    });
  }
}

TEST(FlowGradients, OfSamplesAreRight) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    Flow flow(controlled(mlp({.features = {4, 4, 2}})), standard_normal(2, float64),
              FlowOptions{.solver = solver, .sensitivity = sensitivity});
    ready(flow);
    const Tensor condition = random_variable({3, 2});
    return Checked{[=]() mutable {
                     torch::manual_seed(1);
                     return weighted(flow->sample(3, condition));
                   },
                   with_parameters(*flow, {{"condition", condition}})};
  });
}

// Regularisers

TEST(RegularizerGradients, OfEveryOneAreRight) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    const Field field = controlled(mlp({.features = {4, 4, 2}, .depth = DepthInput::first_layer}));
    const Tensor probe = torch::randn({3, 2}, float64), x = random_variable({3, 2});
    NeuralOde ode(field, {.solver = solver,
                          .sensitivity = sensitivity,
                          .running_losses = {path_length(), kinetic_energy(), jacobian_norm(field, probe)}});
    ready(ode);
    const auto loss = [=]() mutable {
      const Solution solution = ode->solve(x);
      return weighted(solution.states[-1]) + weighted(solution.running_loss[-1]) +
             weighted(terminal_speed(*ode, x, solution.states[-1]));
    };
    return Checked{loss, with_parameters(*ode, {{"x", x}})};
  });
}

TEST(RegularizerGradients, OfARunningLossThatReadsTheInputAreRight) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    const RunningLoss away = [](const Tensor& s, const Tensor& x, const Tensor& z, const Tensor&) {
      return (z - s * x).square().sum(1);
    };
    NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})),
                  {.solver = solver, .sensitivity = sensitivity, .running_losses = {away}});
    ready(ode);
    const Tensor x = random_variable({3, 2});
    return Checked{[=]() mutable { return weighted(ode->solve(x).running_loss[-1]); },
                   with_parameters(*ode, {{"x", x}})};
  });
}

TEST(RegularizerGradients, AreFiniteAtRest) {
  const Tensor x = random_variable({3, 2}), theta = torch::zeros({1}, float64).requires_grad_();
  const Field rest =
      own_field({.rate = [=](const Tensor&, const Tensor&, const Tensor& z) { return theta * z; },
                 .parameters = {theta}});
  NeuralOde ode(rest, NeuralOdeOptions{.running_losses = {path_length()}});
  const Solution solution = ode->solve(x);
  const Tensor loss = solution.running_loss[-1].sum() + terminal_speed(*ode, x, solution.states[-1]).sum();
  EXPECT_EQ(loss.item<double>(), 0);
  EXPECT_TRUE(gradient(loss, theta).isfinite().all().item<bool>());
  EXPECT_TRUE(gradient(loss, x).isfinite().all().item<bool>());
}

// Hand-made fields

TEST(HandMadeGradients, OfTheApproximationAreRight) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    return solved(approximation(mlp({.features = {2, 4, 1}}), 2), random_variable({3, 2}),
                  {.solver = solver,
                   .sensitivity = sensitivity,
                   .input_layer = torch::nn::AnyModule(ZeroAugmentation(1))});
  });
}

TEST(HandMadeGradients, OfTheLinearReflectionAreRight) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    return solved(linear_reflection(), random_variable({3, 1}),
                  {.solver = solver, .sensitivity = sensitivity});
  });
}

TEST(HandMadeGradients, OfAFunctionOfTheUsersAreRight) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    const Tensor theta = random_variable({2});
    const OwnField own{
        .rate = [=](const Tensor& s, const Tensor& x, const Tensor& z) { return (theta * z).sin() + s * x; },
        .parameters = {theta},
        .controlled = true};
    return solved(own_field(own), random_variable({3, 2}), {.solver = solver, .sensitivity = sensitivity});
  });
}

TEST(HandMadeGradients, OfASignalWithAJumpAreRight) {
  expect_right_gradients([](const Solver& solver, const Sensitivity& sensitivity) {
    const Tensor heights = random_variable({2});
    const Signal steps{
        .value = [=](const Tensor& s) { return heights[s.item<double>() < 0.3 ? 0 : 1].view({1}); },
        .parameters = {heights},
        .break_points = {0.3}};
    return solved(driven(mlp({.features = {3, 4, 2}}), steps), random_variable({3, 2}),
                  {.solver = solver, .sensitivity = sensitivity});
  });
}

}  // namespace
}  // namespace fathom::testing
