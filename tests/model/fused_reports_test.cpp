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
