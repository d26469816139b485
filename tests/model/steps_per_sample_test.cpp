/// Steps of each sample's own, where joint ones would be the smallest of all.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

/// Van der Pol with a stiffness for each sample: z_1' = z_2, z_2' = mu (1 - z_1^2) z_2 - z_1.
Field van_der_pol() {
  return own_field({.rate =
                        [](const Tensor&, const Tensor& mu, const Tensor& z) {
                          const Tensor a = z.narrow(1, 0, 1), b = z.narrow(1, 1, 1);
                          return torch::cat({b, mu * (1 - a * a) * b - a}, 1);
                        },
                    .controlled = true});
}

NeuralOde ode_with(const Field& field, bool per_sample, double last) {
  const AdaptiveSteps steps{.relative_tolerance = 1e-6, .absolute_tolerance = 1e-6};
  return NeuralOde(
      field, NeuralOdeOptions{.last = last, .solver = {.steps = steps}, .steps_per_sample = per_sample});
}

TEST(StepsPerSample, CostNoMoreThanTheMeanOfTheIndividualsWhereJointOnesCostTwiceAndAHalf) {
  constexpr std::int64_t samples = 16;
  const Tensor mu = torch::linspace(1, 10, samples, float64).unsqueeze(1);
  const Tensor z0 = torch::tensor({{2.0, 0.0}}, float64).expand({samples, 2}).contiguous();
  const auto evaluations = [&](bool per_sample, const Tensor& start, const Tensor& control) {
    NeuralOde ode = ode_with(van_der_pol(), per_sample, 10);
    const torch::NoGradGuard no_graph;
    ode->forward_with(start, control);
    return ode->report().evaluations;
  };
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < samples; ++i)
    total += evaluations(false, z0.narrow(0, i, 1), mu.narrow(0, i, 1));
  const double mean = double(total) / double(samples);
  const std::int64_t apart = evaluations(true, z0, mu), joint = evaluations(false, z0, mu);
  RecordProperty("mean", std::to_string(mean));
  RecordProperty("apart", std::to_string(apart));
  RecordProperty("joint", std::to_string(joint));
  EXPECT_LE(double(apart), mean + 1);  // rounded up
  EXPECT_GE(double(joint), 2.5 * mean);
}

TEST(StepsPerSample, AreTheSolvesOfTheSamplesOnTheirOwnWithTheirGradients) {
  for (bool fused : {true, false}) {
    torch::manual_seed(5);
    auto net = mlp({.features = {3, 8, 2}});
    net->to(float64);
    NeuralOde ode = ode_with(controlled(net), true, 2);
    ode->options().solver.fused = fused;
    ode->options().running_losses = {kinetic_energy()};
    const Tensor x = torch::randn({5, 2}, float64).requires_grad_();
    const Tensor control = torch::randn({5, 1}, float64).requires_grad_();
    const auto loss_of = [](const Solution& solution) {
      return solution.states.square().sum() + solution.running_loss[-1].sum();
    };
    const std::vector<Tensor> variables = {x, control, net->parameters()[0]};
    const Solution whole = ode->solve(x, {0.0, 0.5, 2.0}, control);
    const auto given = torch::autograd::grad({loss_of(whole)}, variables);
    EXPECT_GT(ode->report().backward_evaluations, 0);

    ode->options().steps_per_sample = false;
    Tensor sum;
    for (std::int64_t i = 0; i < 5; ++i) {
      const Solution one = ode->solve(x.narrow(0, i, 1), {0.0, 0.5, 2.0}, control.narrow(0, i, 1));
      EXPECT_TRUE(torch::equal(whole.states.select(1, i), one.states.select(1, 0)));
      sum = sum.defined() ? sum + loss_of(one) : loss_of(one);
    }
    const auto expected = torch::autograd::grad({sum}, variables);
    for (std::size_t i = 0; i < given.size(); ++i) EXPECT_LT(distance(given[i], expected[i]), 1e-13);
  }
}

/// A field whose samples run at speeds of their own, from 0.2 on: z' = g f(g tau, x, z).
struct Speeds {
  explicit Speeds(std::int64_t samples, double fastest = 10, bool fused = true) {
    torch::manual_seed(8);
    net = mlp({.features = {3, 9, 2}});
    net->to(float64);
    const torch::NoGradGuard no_graph;
    for (Tensor& parameter : net->parameters()) parameter.mul_(2);
    ode = ode_with(controlled(net), true, 1);
    ode->options().solver.fused = fused;
    ode->options().running_losses = {kinetic_energy(), path_length()};
    x = torch::randn({samples, 2}, float64).requires_grad_();
    control = torch::randn({samples, 1}, float64).requires_grad_();
    scale = torch::linspace(0.2, fastest, samples, float64).requires_grad_();
  }
  Solution solve() { return ode->solve_scaled(x, scale, {0.0, 0.3, 1.0}, control); }
  std::vector<Tensor> gradients(const Solution& solution) {
    std::vector<Tensor> variables = net->parameters();
    variables.insert(variables.end(), {x, control, scale});
    const Tensor loss = solution.states.square().sum() + solution.running_loss[-1].sum();
    return torch::autograd::grad({loss}, variables);
  }

  DepthSequential net = nullptr;
  NeuralOde ode = nullptr;
  Tensor x, control, scale;
};

TEST(StepsPerSample, AreThoseSolvesForEveryKindOfFieldSensitivityAndSpan) {
  const auto stacked = [] {
    return mlp({.features = {2, 5, 2}, .basis = piecewise_constant({.pieces = 3})});
  };
  const auto plain = [] { return mlp({.features = {2, 5, 2}}); };
  const std::vector<Sensitivity> sensitivities = {Discrete{}, Discrete{.checkpoint_every = 2},
                                                  Discrete{.memory_budget = 1}, Adjoint{}, Unrolled{}};
  for (const auto& [type, tolerance] : {std::pair{torch::kFloat64, 1e-12}, {torch::kFloat32, 1e-5}}) {
    for (const std::vector<double>& depths : {std::vector{0.0, 0.5, 2.0}, std::vector{1.0, 0.2, 0.0}}) {
      for (const Sensitivity& sensitivity : sensitivities) {
        for (bool varies : {false, true}) {
          torch::manual_seed(6);
          auto net = varies ? stacked() : plain();
          net->to(type);
          NeuralOde ode = ode_with(depth_varying(net), true, 2);
          ode->options().sensitivity = sensitivity;
          const Tensor x = torch::randn({9, 2}, type).requires_grad_();
          const std::vector<Tensor> variables = {x, net->parameters()[0], net->parameters()[3]};
          const Tensor whole = ode->trajectory(x, depths);
          const auto loss_of = [](const Tensor& states) { return states.square().sum(); };
          // Twice from one solve.
          torch::autograd::grad({loss_of(whole)}, variables, {}, /*retain_graph=*/true);
          const auto given = torch::autograd::grad({loss_of(whole)}, variables);
          ode->options().steps_per_sample = false;
          Tensor sum = torch::zeros({}, type);
          for (std::int64_t i = 0; i < 9; ++i) {
            const Tensor one = ode->trajectory(x.narrow(0, i, 1), depths);
            EXPECT_TRUE(torch::equal(whole.select(1, i), one.select(1, 0)));
            sum = sum + loss_of(one);
          }
          const auto expected = torch::autograd::grad({sum}, variables);
          for (std::size_t i = 0; i < given.size(); ++i)
            EXPECT_LT(distance(given[i], expected[i]), tolerance) << "variable " << i;
        }
      }
    }
  }
}

TEST(StepsPerSample, DoNotReadAControlAgainThatHasChanged) {
  Speeds speeds(20);
  const Tensor control = torch::randn({20, 1}, float64), scale = torch::ones({20}, float64);
  const auto gradient = [&](bool changes) {
    const Tensor given = control.clone(), speed = scale.clone();
    const Solution solution = speeds.ode->solve_scaled(speeds.x, speed, {0.0, 1.0}, given);
    if (changes) given.fill_(100), speed.fill_(7);
    return torch::autograd::grad({solution.states.sum()}, {speeds.net->parameters()[0]})[0];
  };
  EXPECT_TRUE(torch::equal(gradient(true), gradient(false)));
}

TEST(StepsPerSample, OfTheFusedEngineCostTheMeanOfTheIndividualsAsWell) {
  constexpr std::int64_t samples = 16;
  Speeds speeds(samples);
  speeds.solve();
  EXPECT_EQ(speeds.ode->report().engine, "fused") << speeds.ode->report().not_fused;
  const std::int64_t apart = speeds.ode->report().evaluations;
  speeds.ode->options().steps_per_sample = false;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    speeds.ode->solve_scaled(speeds.x.narrow(0, i, 1), speeds.scale.narrow(0, i, 1), {0.0, 0.3, 1.0},
                             speeds.control.narrow(0, i, 1));
    total += speeds.ode->report().evaluations;
  }
  EXPECT_EQ(apart, (total + samples - 1) / samples);
  speeds.solve();
  EXPECT_GT(speeds.ode->report().evaluations, apart);
}

TEST(StepsPerSample, AreTheSameByBothEngines) {
  // The first step follows from a small difference of rates: found by error control, steps agree to eight digits or so.
  const std::vector<std::pair<ode::Steps, double>> cases = {{AdaptiveSteps{}, 1e-7},
                                                            {FixedSteps{.count = 25}, 1e-12}};
  for (const auto& [steps, tolerance] : cases) {
    for (const std::int64_t samples : {2, 7, 40}) {
      Speeds fused(samples, 3), tensors(samples, 3, false);
      fused.ode->options().solver.steps = tensors.ode->options().solver.steps = steps;
      const Solution given = fused.solve(), expected = tensors.solve();
      EXPECT_EQ(fused.ode->report().engine, "fused");
      EXPECT_EQ(tensors.ode->report().engine, "tensor");
      EXPECT_EQ(fused.ode->report().accepted, tensors.ode->report().accepted);
      EXPECT_EQ(fused.ode->report().rejected, tensors.ode->report().rejected);
      EXPECT_LT(distance(given.states, expected.states), tolerance);
      EXPECT_LT(distance(given.running_loss, expected.running_loss), tolerance);
      const auto of_fused = fused.gradients(given), of_tensors = tensors.gradients(expected);
      for (std::size_t i = 0; i < of_fused.size(); ++i)
        EXPECT_LT(distance(of_fused[i], of_tensors[i]), tolerance) << samples << " samples, variable " << i;
    }
  }
}

TEST(StepsPerSample, GiveTheSameBitsForAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  std::vector<Tensor> states, gradients;
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    Speeds speeds(90);
    const Solution solution = speeds.solve();
    states.push_back(solution.states);
    gradients.push_back(speeds.gradients(solution).front());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(torch::equal(states[0], states[1]));
  EXPECT_TRUE(torch::equal(gradients[0], gradients[1]));
}

TEST(StepsPerSample, NameTheSampleThatFails) {
  NeuralOde ode = ode_with(autonomous(mlp({.features = {2, 3, 2}})), true, 1);
  Tensor x = torch::ones({40, 2});
  x.index_put_({23, 1}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_NE(message_of([&] { ode->forward(x); }).find("z0[23, 1] = nan"), std::string::npos)
      << message_of([&] { ode->forward(x); });
}

TEST(StepsPerSample, RefuseWhatNeedsOneSolveForAll) {
  NeuralOde ode = ode_with(autonomous(mlp({.features = {2, 3, 2}})), true, 1);
  EXPECT_NE(message_of([&] { ode->dense(torch::ones({3, 2})); }).find("steps_per_sample"), std::string::npos);
}

}  // namespace
}  // namespace fathom::testing
