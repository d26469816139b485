/// A model keeps what is left of its last loss for the next one: nothing of that may be seen.
#include "model/loss_cases.hpp"

namespace fathom::testing {
namespace {

TEST(LossInOnePiece, OfAModelThatWasUsedBeforeIsThatOfAFreshOne) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case used = random_case(seed, torch::kFloat32), fresh = random_case(seed, torch::kFloat32);
    const Tensor other = 3 * torch::randn_like(used.x).detach().requires_grad_();
    const Tensor other_y = used.y.flip(0);
    if (seed % 3 == 0) answers_of(used, used.x, other_y);
    if (seed % 3 == 1) used.ode->loss(other, other_y, used.answer);  // its gradient is never taken
    if (seed % 3 == 2) {
      const torch::NoGradGuard no_graph;
      used.ode->loss(other, other_y, used.answer);
    }
    expect_equal(answers_of(used, used.x, used.y), answers_of(fresh, fresh.x, fresh.y), used.description);
    if (::testing::Test::HasFailure()) return;
  }
}

/// Two models with the same weights, of adaptive steps.
class ModelUsedBefore : public ::testing::Test {
 protected:
  ModelUsedBefore() : used_(model()), fresh_(model()) {}

  static Case model() {
    torch::manual_seed(11);
    Case made;
    nn::Linear head(2, 1);
    made.answer.head = head;
    made.ode = NeuralOde(autonomous(mlp({.features = {2, 24, 2}})));
    made.variables = made.ode->parameters();
    made.variables.insert(made.variables.end(), {head->weight, head->bias});
    for (const Tensor& parameter : made.ode->parameters()) parameter.data().mul_(2);  // several steps
    made.x = torch::randn({300, 2}), made.y = torch::randn({300, 1});
    return made;
  }

  void expect_same(const std::string& what) {
    expect_equal(answers_of(used_, used_.x, used_.y), answers_of(fresh_, fresh_.x, fresh_.y), what);
    EXPECT_EQ(used_.ode->report().evaluations, fresh_.ode->report().evaluations) << what;
    EXPECT_EQ(used_.ode->report().backward_evaluations, fresh_.ode->report().backward_evaluations) << what;
  }

  Case used_, fresh_;
};

TEST_F(ModelUsedBefore, ForgetsTheStepsOfALongerSolve) {
  NeuralOdeOptions& options = used_.ode->options();
  const NeuralOdeOptions before = options;
  options.last = 20;
  auto& steps = std::get<AdaptiveSteps>(options.solver.steps);
  steps.relative_tolerance = steps.absolute_tolerance = 1e-6;
  answers_of(used_, used_.x, used_.y);
  EXPECT_GT(used_.ode->report().accepted, 20);
  options = before;
  expect_same("after more steps");
}

TEST_F(ModelUsedBefore, ForgetsItsStepsWhereTheNextSolveHasNone) {
  answers_of(used_, used_.x, used_.y);
  used_.ode->options().last = fresh_.ode->options().last = 0;
  expect_same("without a step");
}

TEST_F(ModelUsedBefore, ForgetsARejectedStepAndAFailedSolve) {
  auto& steps = std::get<AdaptiveSteps>(used_.ode->options().solver.steps);
  const AdaptiveSteps before = steps;
  steps.first_step = 1, steps.relative_tolerance = steps.absolute_tolerance = 1e-7;
  answers_of(used_, used_.x, used_.y);
  EXPECT_GT(used_.ode->report().rejected, 0);
  steps.step_limit = 1;
  EXPECT_THROW(used_.ode->loss(used_.x, used_.y, used_.answer), ode::SolveFailure);
  steps = before;
  expect_same("after a failure");
}

TEST_F(ModelUsedBefore, SeesOtherWeightsBatchesAndLayers) {
  answers_of(used_, used_.x, used_.y);
  for (Case* each : {&used_, &fresh_}) {
    const torch::NoGradGuard no_graph;
    for (const Tensor& parameter : each->variables) parameter.mul_(0.9);
  }
  expect_same("other weights");
  answers_of(used_, used_.x.narrow(0, 0, 77), used_.y.narrow(0, 0, 77));
  expect_same("another batch before");
  used_.variables[0].set_requires_grad(false);
  const Tensor frozen = used_.ode->loss(used_.x, used_.y, used_.answer);
  backward(frozen);
  used_.variables[0].set_requires_grad(true);
  expect_same("a frozen layer before");
  const int threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 2 : 1);
  answers_of(used_, used_.x, used_.y);
  at::set_num_threads(threads);
  expect_same("another number of threads before");
  const Tensor wide = torch::randn({300, 2});
  used_.ode->loss(used_.x, wide);  // without a head
  expect_same("another head before");
  used_.ode->options().solver = adaptive(tsit5(), 1e-4);
  answers_of(used_, used_.x, used_.y);
  used_.ode->options().solver = fresh_.ode->options().solver;
  expect_same("another method before");
  // What a layer does is not the module's alone: the same layers with another function between them.
  const auto with = [](Case& c, const auto& function) {
    const auto layers = c.ode->parameters();
    nn::Linear first(2, 24), last(24, 2);
    first->weight.set_data(layers[0]), first->bias.set_data(layers[1]);
    last->weight.set_data(layers[2]), last->bias.set_data(layers[3]);
    return NeuralOde(autonomous(DepthSequential(first, function, last)), c.ode->options());
  };
  used_.ode = with(used_, nn::Softplus(nn::SoftplusOptions().beta(2))),
  used_.variables = used_.ode->parameters();
  answers_of(used_, used_.x, used_.y);
  auto softplus = std::dynamic_pointer_cast<nn::SoftplusImpl>(used_.ode->modules()[4]);
  ASSERT_TRUE(softplus);
  softplus->options.beta(3);
  fresh_.ode = with(fresh_, nn::Softplus(nn::SoftplusOptions().beta(3))),
  fresh_.variables = fresh_.ode->parameters();
  expect_same("another function");
}

TEST_F(ModelUsedBefore, KeepsLossesApartThatAreAliveAtOnce) {
  const Tensor first = used_.ode->loss(used_.x, used_.y, used_.answer);
  const Tensor second = used_.ode->loss(2 * used_.x, used_.y, used_.answer);
  const Tensor third = used_.ode->loss(3 * used_.x, used_.y, used_.answer);
  std::vector<std::vector<Tensor>> given;
  for (const Tensor& loss : {second, first, third}) {
    given.push_back(torch::autograd::grad({loss}, used_.variables, {}, /*retain_graph=*/true));
    used_.ode->loss(5 * used_.x, used_.y, used_.answer);
  }
  int place = 0;
  for (const double factor : {2.0, 1.0, 3.0}) {
    const Tensor loss = fresh_.ode->loss(factor * fresh_.x, fresh_.y, fresh_.answer);
    expect_equal(given[std::size_t(place++)], torch::autograd::grad({loss}, fresh_.variables),
                 "alive at once");
  }
}

/// But for gradients, which are not the caller's before he has them, and for weights, by the nodes that add to their gradients.
TEST_F(ModelUsedBefore, HoldsNoTensorOfTheCallers) {
  const auto uses = [&] { return std::vector{used_.x.use_count(), used_.y.use_count()}; };
  const auto before = uses();
  backward(used_.ode->loss(used_.x, used_.y, used_.answer));
  EXPECT_EQ(uses(), before);
  used_.ode->loss(used_.x, used_.y, used_.answer);
  EXPECT_EQ(uses(), before);
}

TEST(LossInOnePiece, HoldsNoInputThatWantsAGradient) {
  NeuralOde ode(controlled(mlp({.features = {4, 8, 2}})));
  const Tensor x = torch::randn({20, 2}).requires_grad_(), y = torch::randn({20, 2});
  const auto before = x.use_count();
  backward(ode->loss(x, y));
  EXPECT_TRUE(x.grad().defined());
  EXPECT_EQ(x.use_count(), before);
}

/// torch makes such a node when it is first asked for it, and lets it go when nobody holds it.
std::vector<const void*> nodes_of(const Case& model) {
  std::vector<const void*> nodes;
  for (const Tensor& weight : model.variables)
    nodes.push_back(torch::autograd::impl::try_get_grad_accumulator(weight).get());
  return nodes;
}

TEST_F(ModelUsedBefore, HoldsTheNodesOfItsWeightsUntilTheNextLoss) {
  backward(used_.ode->loss(used_.x, used_.y, used_.answer));
  const auto first = nodes_of(used_);
  EXPECT_EQ(std::count(first.begin(), first.end(), nullptr), 0);
  backward(used_.ode->loss(used_.x, used_.y, used_.answer));
  EXPECT_EQ(nodes_of(used_), first);
  used_.variables[0].set_requires_grad(false);
  const auto head = used_.variables.back().use_count();
  used_.ode->loss(used_.x, torch::randn({300, 2}));  // without a head
  EXPECT_EQ(used_.variables.back().use_count(), head - 1) << "a head that the loss has not must not be held";
  used_.variables[0].set_requires_grad(true);
  EXPECT_EQ(nodes_of(used_)[0], nullptr) << "a frozen weight must not be held";
}

TEST_F(ModelUsedBefore, HoldsNoGraphBehindAWeight) {
  const Tensor factor = torch::ones({}).requires_grad_();
  nn::Linear head(2, 1);
  const Tensor plain = head->weight;
  head->weight = plain * factor;
  const auto before = factor.use_count();
  backward(used_.ode->loss(used_.x, used_.y, {.head = head}));
  EXPECT_TRUE(factor.grad().defined());
  head->weight = plain;
  EXPECT_LT(factor.use_count(), before) << "the product that read it is gone";
}

}  // namespace
}  // namespace fathom::testing
