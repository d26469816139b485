/// What the fused engine tells its user: where it stopped, what was not finite, and why it did not run.
#include "model/fused_problems.hpp"

namespace fathom::testing {
namespace {

TEST(FusedEngine, StopsEarlyAsTheTensorEngineDoes) {
  Problem problem = random_problem({"plain", torch::kFloat64, 7, 3, 0});
  std::int64_t seen = 0;
  problem.solver = fixed(rk4(), 10);
  problem.solver.observer = [&](const StepEvent&, const Tensor& state) {
    EXPECT_EQ(state.sizes(), problem.z0.sizes());
    return ++seen == 4 ? Next::stop : Next::proceed;
  };
  const Answers fused = answers_by(Engine::fused, problem);
  seen = 0;
  const Answers tensor = answers_by(Engine::tensor, problem);
  EXPECT_EQ(fused.solution.depths, tensor.solution.depths);
  EXPECT_TRUE(fused.solution.report().stopped);
  EXPECT_LT(distance(fused.solution.states, tensor.solution.states), 1e-13);
  for (std::size_t i = 0; i < fused.gradients.size(); ++i) {
    EXPECT_LT(distance(fused.gradients[i], tensor.gradients[i]), 1e-12) << i;
  }
}

TEST(FusedEngine, SaysWhichValueWasNotFiniteAsTheTensorEngineDoes) {
  const auto net = mlp({.features = {2, 3, 2}});
  NeuralOde ode(autonomous(net));
  const torch::NoGradGuard no_graph;
  net->parameters()[0].fill_(std::numeric_limits<float>::quiet_NaN());
  const Tensor x = torch::ones({5, 2});
  const auto fused = failure_of([&] { ode->forward(x); });
  ode->options().solver.fused = false;
  const auto tensor = failure_of([&] { ode->forward(x); });
  ASSERT_TRUE(fused && tensor);
  EXPECT_EQ(fused->reason, FailureReason::non_finite);
  EXPECT_EQ(fused->site.component, tensor->site.component);
  EXPECT_EQ(std::string(fused->what()), std::string(tensor->what()));
}

/// A field whose second layer has a weight, or a bias, that is computed from a parameter.
struct ComputedWeight {
  std::string name;
  std::function<void(torch::nn::Linear&, torch::nn::Linear&)> tie;
};

TEST(FusedEngine, LeavesWeightsThatAreComputedFromParametersToTheTensorEngine) {
  torch::manual_seed(4);
  const std::vector<ComputedWeight> cases = {
      {"tied", [](auto& first, auto& second) { second->weight = first->weight.t(); }},
      {"scaled", [](auto&, auto& second) { second->weight = 2 * second->weight; }},
      {"bias from a weight", [](auto& first, auto& second) { second->bias = first->weight.select(0, 0); }}};
  const Tensor x = torch::randn({6, 2}, torch::kFloat64), y = torch::randn({6, 2}, torch::kFloat64);
  for (const auto& [name, tie] : cases) {
    torch::nn::Linear first(2, 5), second(5, 2);
    first->to(torch::kFloat64), second->to(torch::kFloat64);
    const std::vector<Tensor> leaves = {first->weight, first->bias, second->weight, second->bias};
    tie(first, second);
    NeuralOde ode(autonomous(DepthSequential(first, torch::nn::Tanh(), second)));
    const auto gradients = [&](const Tensor& loss) {
      return torch::autograd::grad({loss}, leaves, {}, /*retain_graph=*/true, {}, /*allow_unused=*/true);
    };
    const auto given = gradients(torch::mse_loss(ode->forward(x), y)),
               in_one_piece = gradients(ode->loss(x, y));
    EXPECT_EQ(ode->report().not_fused, "a weight is computed from other tensors") << name;
    {
      const torch::NoGradGuard no_graph;
      ode->forward(x);
      EXPECT_EQ(ode->report().engine, "fused") << name << ", without gradients";
    }
    ode->options().sensitivity = Unrolled{};
    const auto expected = gradients(torch::mse_loss(ode->forward(x), y));
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const Tensor wanted = expected[i].defined() ? expected[i] : torch::zeros_like(leaves[i]);
      EXPECT_LT(distance(given[i], wanted), 1e-12) << name << ", " << i;
      EXPECT_LT(distance(in_one_piece[i], wanted), 1e-12) << name << ", " << i;
    }
  }
}

struct Unlowered {
  std::string reason;
  std::function<NeuralOde()> make;
  std::vector<std::int64_t> shape = {4, 2};
};

TEST(FusedEngine, NamesWhatItCannotRunAndTheTensorEngineRuns) {
  struct OddLinearImpl : torch::nn::LinearImpl {
    using LinearImpl::LinearImpl;
    Tensor forward(const Tensor& h) { return 2 * LinearImpl::forward(h); }
  };
  const auto with = [](Field field, NeuralOdeOptions options = {}) {
    return NeuralOde(std::move(field), options);
  };
  const std::vector<Unlowered> cases = {
      {"layer 1 (Dropout) has no kernel",
       [&] { return with(autonomous(DepthSequential(torch::nn::Linear(2, 2), torch::nn::Dropout(0.0)))); }},
      {"OddLinear",
       [&] { return with(autonomous(DepthSequential(torch::nn::ModuleHolder<OddLinearImpl>(2, 2)))); }},
      {"the state is not of shape (batch, features)",
       [&] {
         return with(
             autonomous(DepthSequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 2, 3).padding(1)))));
       },
       {4, 2, 5, 5}},
      {"the field is a function of the user's",
       [&] {
         return with(own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) { return -z; }}));
       }},
      {"a running loss is a function of the user's",
       [&] {
         NeuralOdeOptions options;
         options.running_losses = {
             [](const Tensor&, const Tensor&, const Tensor& z, const Tensor&) { return z.square().sum(1); }};
         return with(autonomous(mlp({.features = {2, 3, 2}})), options);
       }},
      {"it is switched off",
       [&] {
         return with(autonomous(mlp({.features = {2, 3, 2}})), NeuralOdeOptions{.solver = {.fused = false}});
       }},
      {"Unrolled is a graph of tensors",
       [&] {
         return with(autonomous(mlp({.features = {2, 3, 2}})), NeuralOdeOptions{.sensitivity = Unrolled{}});
       }},
  };
  for (const Unlowered& each : cases) {
    NeuralOde ode = each.make();
    ode->forward(torch::ones(each.shape, torch::TensorOptions().requires_grad(true))).sum().backward();
    EXPECT_EQ(ode->report().engine, "tensor") << each.reason;
    EXPECT_NE(ode->report().not_fused.find(each.reason), std::string::npos) << ode->report().not_fused;
  }
}

}  // namespace
}  // namespace fathom::testing
