/// Models with a loss in one piece, for the tests of such losses.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "support/gradients.hpp"

namespace fathom::testing {

namespace nn = torch::nn;

struct Case {
  std::string description;
  NeuralOde ode = nullptr;
  Answer answer;
  Tensor x, y;
  std::vector<Tensor> variables;
};

/// Random sizes, heads, wrappers and both losses; a Linear in front of the ODE takes a gradient of z0.
inline Case random_case(std::uint64_t seed, torch::ScalarType type) {
  torch::manual_seed(seed);
  std::mt19937_64 engine(seed);
  const auto below = [&](std::int64_t count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(engine);
  };
  const std::vector<std::int64_t> batches = {1, 2, 7, 16, 17, 64, 65, 130};
  const std::int64_t batch = batches[std::size_t(below(8))], inputs = 1 + below(3), features = 1 + below(4),
                     outputs = 1 + below(5);
  const bool is_label = below(2) == 1, is_controlled = below(2) == 1, has_head = is_label || below(4) > 0;
  const std::int64_t answers = has_head ? outputs : features;
  Case made;
  made.answer.loss = is_label ? AnswerLoss::cross_entropy : AnswerLoss::mse;
  std::vector<std::shared_ptr<nn::Module>> modules;
  if (has_head) {
    if (below(2) == 1) {
      nn::Linear head(features, outputs);
      made.answer.head = head;
      modules.push_back(head.ptr());
    } else {
      const DepthSequential head = mlp({.features = {features, 5, outputs}, .activation = Activation::silu});
      made.answer.head = head;
      modules.push_back(head.ptr());
    }
  }
  const auto net = [&](std::int64_t from) {
    MlpOptions options{.features = {from, 1 + below(20), features}};
    if (below(2) == 1) options.basis = fourier({.harmonics = 1});
    return mlp(options);
  };
  const Field field = is_controlled ? controlled(net(features + inputs)) : depth_varying(net(features));
  made.ode = NeuralOde(field, NeuralOdeOptions{.last = 1.3,
                                               .solver = {.steps = FixedSteps{.count = 1 + below(4)}},
                                               .input_layer = nn::Linear(inputs, features)});
  modules.push_back(made.ode.ptr());
  for (const auto& module : modules) {
    module->to(type);
    for (const Tensor& parameter : module->parameters()) made.variables.push_back(parameter);
  }
  made.x = torch::randn({batch, inputs}, torch::TensorOptions(type).requires_grad(true));
  made.variables.push_back(made.x);
  made.y = is_label ? torch::randint(outputs, {batch}) : torch::randn({batch, answers}, type);
  made.description =
      text("seed ", seed, ", batch ", batch, ", ", answers, " answers, ", is_label ? "labels" : "numbers",
           has_head ? ", head" : "", is_controlled ? ", controlled" : "");
  return made;
}

/// Loss and gradients of a model, to the bit.
inline std::vector<Tensor> answers_of(Case& c, const Tensor& x, const Tensor& y) {
  const Tensor loss = c.ode->loss(x, y, c.answer);
  std::vector<Tensor> answers = torch::autograd::grad({loss}, c.variables, {}, /*retain_graph=*/false,
                                                      /*create_graph=*/false, /*allow_unused=*/true);
  answers.push_back(loss.detach());
  return answers;
}

inline void expect_equal(const std::vector<Tensor>& given, const std::vector<Tensor>& expected,
                         const std::string& what) {
  ASSERT_EQ(given.size(), expected.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    ASSERT_EQ(given[i].defined(), expected[i].defined()) << what << ", " << i;
    if (!given[i].defined()) continue;
    EXPECT_TRUE(torch::equal(given[i], expected[i])) << what << ", " << i;
  }
}

}  // namespace fathom::testing
