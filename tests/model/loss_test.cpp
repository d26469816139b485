/// A loss in one piece with its solve, against the same loss by torch on the answer of the same model.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/forward_grad.h>

#include "model/loss_cases.hpp"

namespace fathom::testing {
namespace {

Tensor by_torch(Case& c) {
  Tensor answer = c.ode->forward(c.x);
  if (c.answer.head)
    answer = c.answer.head->module()->forward(torch::scalar_tensor(0.0, torch::kFloat64), answer);
  if (c.answer.loss == AnswerLoss::cross_entropy) return nn::functional::cross_entropy(answer, c.y);
  return torch::mse_loss(answer, c.y);
}

void expect_same_as_torch(torch::ScalarType type, double tolerance) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case c = random_case(seed, type);
    // An upstream factor other than one must reach every gradient.
    const auto gradients = [&](const Tensor& loss) { return torch::autograd::grad({3 * loss}, c.variables); };
    const Tensor ours = c.ode->loss(c.x, c.y, c.answer);
    ASSERT_EQ(std::string(ours.grad_fn()->name()).find("MseLoss"), std::string::npos) << "not in one piece";
    ASSERT_EQ(std::string(ours.grad_fn()->name()).find("NllLoss"), std::string::npos) << "not in one piece";
    const auto given = gradients(ours);
    const std::int64_t evaluations = c.ode->report().evaluations;
    EXPECT_GT(c.ode->report().backward_evaluations, 0);
    const Tensor theirs = by_torch(c);
    EXPECT_EQ(c.ode->report().evaluations, evaluations);
    const auto expected = gradients(theirs);
    EXPECT_NEAR(ours.item<double>(), theirs.item<double>(), tolerance * std::max(1.0, theirs.item<double>()))
        << c.description;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const double scale = std::max(1.0, expected[i].abs().max().item<double>());
      EXPECT_LT((given[i] - expected[i]).abs().max().item<double>() / scale, tolerance)
          << c.description << ", gradient " << i;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(LossInOnePiece, IsTorchsInDoublePrecision) { expect_same_as_torch(torch::kFloat64, 1e-12); }
TEST(LossInOnePiece, IsTorchsInSinglePrecision) { expect_same_as_torch(torch::kFloat32, 1e-5); }

TEST(LossInOnePiece, TakesTheSameAdaptiveSteps) {
  torch::manual_seed(1);
  NeuralOde ode(autonomous(mlp({.features = {2, 16, 2}})));
  nn::Linear head(2, 1);
  const Tensor x = torch::randn({100, 2}), y = torch::randn({100, 1});
  const double loss = ode->loss(x, y, {.head = head}).item<double>();
  const SolveReport report = ode->report();
  const double expected = torch::mse_loss(head->forward(ode->forward(x)), y).item<double>();
  EXPECT_EQ(report.evaluations, ode->report().evaluations);
  EXPECT_EQ(report.accepted, ode->report().accepted);
  EXPECT_NEAR(loss, expected, 1e-6);
}

TEST(LossInOnePiece, NeedsNoGraph) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  const torch::NoGradGuard no_graph;
  const Tensor loss = ode->loss(torch::randn({3, 2}), torch::zeros({3, 2}));
  EXPECT_FALSE(loss.requires_grad());
  EXPECT_EQ(ode->report().engine, "fused");
}

TEST(LossInOnePiece, ScoresFarApartDoNotOverflow) {
  NeuralOde ode(autonomous(mlp({.features = {3, 4, 3}})), NeuralOdeOptions{.last = 0});
  const Tensor scores = torch::tensor({{1000.0f, -1000.0f, 0.0f}, {-80.0f, 5.0f, 5.0f}}).requires_grad_();
  const Tensor labels = torch::tensor({1, 2});
  const Tensor ours = ode->loss(scores, labels, {.loss = AnswerLoss::cross_entropy});
  const Tensor theirs = nn::functional::cross_entropy(scores, labels);
  EXPECT_NEAR(ours.item<double>(), theirs.item<double>(), 1e-4);
  EXPECT_LT((torch::autograd::grad({ours}, {scores})[0] - torch::autograd::grad({theirs}, {scores})[0])
                .abs()
                .max()
                .item<double>(),
            1e-6);
}

TEST(LossInOnePiece, IsTorchsWithAdaptiveStepsAndBreakPoints) {
  torch::manual_seed(8);
  MlpOptions jumps{.features = {2, 8, 2}, .basis = piecewise_constant({.pieces = 3})};
  NeuralOde ode(
      depth_varying(mlp(jumps)),
      NeuralOdeOptions{.last = 4, .solver = adaptive(dopri5(), 1e-6), .input_layer = nn::Linear(2, 2)});
  nn::Linear head(2, 3);
  ode->to(torch::kFloat64), head->to(torch::kFloat64);
  const Tensor x = 2 * torch::randn({70, 2}, torch::kFloat64), labels = torch::randint(3, {70});
  std::vector<Tensor> variables = ode->parameters();
  for (const Tensor& parameter : head->parameters()) variables.push_back(parameter);
  const auto given = torch::autograd::grad(
      {ode->loss(x, labels, {.head = head, .loss = AnswerLoss::cross_entropy})}, variables);
  EXPECT_GT(ode->report().accepted, 3);
  const auto expected = torch::autograd::grad(
      {nn::functional::cross_entropy(head->forward(ode->forward(x)), labels)}, variables);
  for (std::size_t i = 0; i < given.size(); ++i) EXPECT_LT(distance(given[i], expected[i]), 1e-10) << i;
}

/// The way back begins with a tile's last step, before the step is accepted: what a rejected one has left must not count.
TEST(LossInOnePiece, IsTorchsWhereTheLastStepWasRejectedFirst) {
  const auto expect_same = [](bool is_controlled, bool varies, const Discrete& how) {
    torch::manual_seed(5);
    const std::int64_t inputs = is_controlled ? 4 : 2;
    MlpOptions options{.features = {inputs, 8, 9, 2}};
    if (varies) options.basis = fourier({.harmonics = 1});
    Solver solver = adaptive(dopri5(), 1e-7);
    std::get<AdaptiveSteps>(solver.steps).first_step = 3;
    NeuralOde ode(
        is_controlled ? controlled(mlp(options)) : depth_varying(mlp(options)),
        NeuralOdeOptions{.last = 3, .solver = solver, .sensitivity = how, .input_layer = nn::Linear(2, 2)});
    ode->to(torch::kFloat64);
    for (const Tensor& parameter : ode->parameters()) parameter.data().mul_(2);  // steep enough
    const Tensor x = 2 * torch::randn({70, 2}, torch::kFloat64), y = torch::randn({70, 2}, torch::kFloat64);
    x.requires_grad_();
    std::vector<Tensor> variables = ode->parameters();
    variables.push_back(x);
    std::vector<std::vector<Tensor>> given;  // twice: the second one in the memory of the first
    for (int turn = 0; turn < 2; ++turn) given.push_back(torch::autograd::grad({ode->loss(x, y)}, variables));
    EXPECT_GT(ode->report().rejected, 0);
    EXPECT_GT(ode->report().accepted, 5);
    ode->options().sensitivity = Discrete{};
    const auto expected = torch::autograd::grad({torch::mse_loss(ode->forward(x), y)}, variables);
    for (const auto& each : given) {
      for (std::size_t i = 0; i < each.size(); ++i)
        EXPECT_LT(distance(each[i], expected[i]), 1e-12) << i << (varies ? ", varies" : "");
    }
  };
  for (const bool is_controlled : {false, true}) {
    for (const bool varies : {false, true}) {
      expect_same(is_controlled, varies, Discrete{});
      expect_same(is_controlled, varies, Discrete{.checkpoint_every = 3});
      expect_same(is_controlled, varies, Discrete{.memory_budget = 1});  // starts are thinned out on the way
    }
  }
}

TEST(LossInOnePiece, ReadsLabelsThatAreNotContiguous) {
  NeuralOde ode(autonomous(mlp({.features = {3, 4, 3}})));
  const Tensor x = torch::randn({6, 3}), wide = torch::tensor({0, 9, 1, 9, 2, 9, 0, 9, 1, 9, 2, 9});
  const Tensor strided = wide.slice(0, 0, 12, 2), copy = strided.contiguous();
  const auto loss = [&](const Tensor& y) {
    return ode->loss(x, y, {.loss = AnswerLoss::cross_entropy}).item<double>();
  };
  EXPECT_EQ(loss(strided), loss(copy));
  EXPECT_EQ(loss(torch::tensor({1}).expand({6})), loss(torch::ones({6}, torch::kInt64)));
}

TEST(LossInOnePiece, IsNaNWhereAScoreIs) {
  NeuralOde ode(autonomous(mlp({.features = {3, 4, 3}})), NeuralOdeOptions{.last = 0});
  for (std::int64_t place = 0; place < 3; ++place) {
    for (std::int64_t label = 0; label < 3; ++label) {
      for (const float sign : {1.0f, -1.0f}) {
        Tensor scores = torch::zeros({2, 3});
        scores[1][place] = std::copysign(std::nanf(""), sign);
        EXPECT_TRUE(std::isnan(
            ode->loss(scores, torch::full({2}, label, torch::kInt64), {.loss = AnswerLoss::cross_entropy})
                .item<double>()));
      }
    }
  }
}

/// Weights that vary with depth are read again on the way back.
TEST(LossInOnePiece, RefusesAGradientAfterTheWeightsHaveChanged) {
  NeuralOde ode(depth_varying(mlp({.features = {2, 4, 2}, .basis = fourier({.harmonics = 1})})));
  const Tensor loss = ode->loss(torch::randn({3, 2}), torch::zeros({3, 2}));
  {
    const torch::NoGradGuard no_graph;
    ode->parameters().front().add_(1);
  }
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(LossInOnePiece, GivesTheSameGradientTwiceWhereItsGraphIsKept) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  nn::Linear head(2, 1);
  const Tensor loss = ode->loss(torch::randn({40, 2}), torch::zeros({40, 1}), {.head = head});
  loss.backward({}, /*retain_graph=*/true);
  const Tensor once = head->weight.grad().clone(), once_of_ode = ode->parameters()[0].grad().clone();
  loss.backward();
  EXPECT_TRUE(torch::equal(head->weight.grad(), 2 * once));
  EXPECT_TRUE(torch::equal(ode->parameters()[0].grad(), 2 * once_of_ode));
  EXPECT_THROW(loss.backward(), c10::Error);
}

/// The caller's tensors are his own again once the loss is there.
TEST(LossInOnePiece, DoesNotFollowChangesOfItsStart) {
  NeuralOde ode(autonomous(mlp({.features = {4, 8, 4}})),
                NeuralOdeOptions{.sensitivity = Discrete{.checkpoint_every = 2}});
  const Tensor w = torch::randn({4, 4}).requires_grad_(), y = torch::zeros({4, 4});
  const Tensor expected = torch::autograd::grad({ode->loss(w * 1, y)}, {w})[0];
  Tensor turned = w * 1;
  const Tensor loss = ode->loss(turned, y);
  turned.t_();
  EXPECT_TRUE(torch::equal(torch::autograd::grad({loss}, {w})[0], expected));
  Tensor x = torch::randn({3000, 4}).requires_grad_();
  const Tensor of_x = ode->loss(x, torch::zeros({3000, 4}));
  const Tensor gradient = torch::autograd::grad({of_x}, {x}, {}, /*retain_graph=*/true)[0];
  x.set_data(torch::randn({2, 4}));
  EXPECT_ANY_THROW(fathom::backward(of_x));  // its gradient has another shape than x has now
  EXPECT_EQ(gradient.size(0), 3000);
}

TEST(LossInOnePiece, SaysThatItHasNoForwardModeDerivative) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  const Tensor x = torch::randn({5, 2}), y = torch::zeros({5, 2});
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  const Tensor dual = x.clone(), weight = ode->parameters().front();
  dual._set_fw_grad(torch::ones_like(x), level, /*is_inplace_op=*/false);
  EXPECT_THROW(ode->loss(dual, y), c10::Error);
  weight._set_fw_grad(torch::ones_like(weight), level, /*is_inplace_op=*/false);
  EXPECT_THROW(ode->loss(x, y), c10::Error);
  torch::autograd::ForwardADLevel::release_idx(level);
  EXPECT_NO_THROW(ode->loss(x, y));
}

TEST(LossInOnePiece, RefusesAGradientAfterWeightsWereExchanged) {
  NeuralOde ode(depth_varying(mlp({.features = {2, 4, 2}, .basis = fourier({.harmonics = 1})})));
  const Tensor loss = ode->loss(torch::randn({3, 2}), torch::zeros({3, 2}));
  Tensor weight = ode->parameters().front();
  weight.set_data(torch::randn_like(weight));
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(LossInOnePiece, OfAFrozenOdeTrainsTheHeadWithoutAWayBack) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  for (const Tensor& parameter : ode->parameters()) parameter.set_requires_grad(false);
  nn::Linear head(2, 1);
  const Tensor x = torch::randn({40, 2}), y = torch::zeros({40, 1});
  ode->loss(x, y, {.head = head}).backward();
  EXPECT_EQ(ode->report().backward_evaluations, 0);
  const Tensor expected =
      torch::autograd::grad({torch::mse_loss(head->forward(ode->forward(x)), y)}, {head->weight})[0];
  EXPECT_LT((head->weight.grad() - expected).abs().max().item<double>(), 1e-6);
  EXPECT_FALSE(ode->parameters().front().grad().defined());
}

TEST(LossInOnePiece, ReachesWeightsThatTheHeadBorrows) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  nn::Linear head(2, 2);
  const Tensor lent = torch::randn({2, 2}).requires_grad_();
  head->weight = lent * 2;  // neither a leaf nor registered
  ode->loss(torch::randn({5, 2}), torch::zeros({5, 2}), {.head = head}).backward();
  EXPECT_GT(lent.grad().abs().max().item<double>(), 0);
}

/// What has no kernels runs by torch, and the answer is the same.
TEST(LossInOnePiece, FallsBackWhereAKernelIsMissing) {
  torch::manual_seed(3);
  const Tensor x = torch::randn({9, 2}, torch::kFloat64), y = torch::randn({9, 2}, torch::kFloat64);
  const auto ode_with = [](const NeuralOdeOptions& options) {
    torch::manual_seed(4);
    NeuralOde ode(autonomous(mlp({.features = {2, 8, 2}})), options);
    ode->to(torch::kFloat64);
    return ode;
  };
  const Solver tight{.steps = AdaptiveSteps{.relative_tolerance = 1e-11, .absolute_tolerance = 1e-11}};
  const double expected = ode_with({.solver = tight})->loss(x, y).item<double>();
  Solver by_tensors = tight;
  by_tensors.fused = false;
  for (const NeuralOdeOptions& options :
       {NeuralOdeOptions{.solver = by_tensors}, NeuralOdeOptions{.solver = tight, .sensitivity = Adjoint{}},
        NeuralOdeOptions{.solver = tight, .steps_per_sample = true},
        NeuralOdeOptions{.solver = tight, .running_losses = {kinetic_energy()}}}) {
    EXPECT_NEAR(ode_with(options)->loss(x, y).item<double>(), expected, 1e-9);
  }
  NeuralOde ode = ode_with({.solver = tight});
  nn::Sequential head(nn::LeakyReLU(), nn::Linear(2, 2));
  head->to(torch::kFloat64);
  const Tensor ours = ode->loss(x, y, {.head = head});
  EXPECT_NEAR(ours.item<double>(), torch::mse_loss(head->forward(ode->forward(x)), y).item<double>(), 1e-14);
  DepthSequential varying = mlp({.features = {2, 2}, .basis = fourier({.harmonics = 1})});
  varying->to(torch::kFloat64);
  const Tensor end = torch::scalar_tensor(1.0, torch::kFloat64);
  EXPECT_NEAR(ode->loss(x, y, {.head = varying}).item<double>(),
              torch::mse_loss(varying->forward(end, ode->forward(x)), y).item<double>(), 1e-14);
}

/// With gradients of the weights, of the input layer in front and of x, which is the control as well.
void expect_running_loss_of_solve(torch::ScalarType type, double tolerance) {
  const DepthBasis circle = fourier({.harmonics = 1});
  const std::vector<std::vector<RunningLoss>> terms = {{tracking(circle)},
                                                       {kinetic_energy(), tracking(circle)}};
  for (const std::int64_t batch : {1, 5, 64, 130, 300}) {
    for (const auto& losses : terms) {
      torch::manual_seed(batch);
      const std::int64_t features = std::int64_t(circle.size);
      NeuralOde ode(controlled(mlp({.features = {features + 2, 12, features}, .basis = circle})),
                    NeuralOdeOptions{.last = 1.2,
                                     .solver = {.steps = FixedSteps{.count = 4}},
                                     .input_layer = nn::Linear(2, features),
                                     .running_losses = losses});
      ode->to(type);
      const Tensor x = torch::randn({batch, 2}, torch::TensorOptions(type).requires_grad(true));
      std::vector<Tensor> variables = ode->parameters();
      variables.push_back(x);
      const Tensor ours = ode->running_loss(x);
      EXPECT_EQ(ode->report().engine, "fused");
      const auto given = torch::autograd::grad({3 * ours}, variables);
      const Tensor theirs = ode->solve(x).running_loss[-1].sum() / batch;
      const auto expected = torch::autograd::grad({3 * theirs}, variables);
      EXPECT_NE(std::string(ours.grad_fn()->name()), std::string(theirs.grad_fn()->name()))
          << "not in one piece";
      EXPECT_NEAR(ours.item<double>(), theirs.item<double>(), tolerance * theirs.item<double>());
      for (std::size_t i = 0; i < given.size(); ++i) {
        const double scale = std::max(1.0, expected[i].abs().max().item<double>());
        EXPECT_LT((given[i] - expected[i]).abs().max().item<double>() / scale, tolerance)
            << "batch " << batch << ", " << losses.size() << " losses, gradient " << i;
      }
    }
  }
}

TEST(RunningLossInOnePiece, IsThatOfTheSolveInDoublePrecision) {
  expect_running_loss_of_solve(torch::kFloat64, 1e-12);
}
TEST(RunningLossInOnePiece, IsThatOfTheSolveInSinglePrecision) {
  expect_running_loss_of_solve(torch::kFloat32, 1e-5);
}

TEST(RunningLossInOnePiece, TakesTheSameAdaptiveStepsAndFallsBackWhereAKernelIsMissing) {
  torch::manual_seed(3);
  const Tensor x = torch::randn({70, 2});
  DepthSequential net = mlp({.features = {2, 16, 2}});
  const auto ode_with = [&](const RunningLoss& loss, const Sensitivity& sensitivity) {
    return NeuralOde(autonomous(net), NeuralOdeOptions{.sensitivity = sensitivity, .running_losses = {loss}});
  };
  NeuralOde ode = ode_with(kinetic_energy(), Discrete{});
  const double value = ode->running_loss(x).item<double>();
  const SolveReport report = ode->report();
  const double expected = ode->solve(x).running_loss[-1].mean().item<double>();
  EXPECT_EQ(report.evaluations, ode->report().evaluations);
  EXPECT_EQ(report.accepted, ode->report().accepted);
  EXPECT_NEAR(value, expected, 1e-6);
  const RunningLoss own = [](const Tensor&, const Tensor&, const Tensor&, const Tensor& rate) {
    return rate.square().sum(1);
  };
  NeuralOde by_tensors = ode_with(own, Discrete{});
  EXPECT_NEAR(by_tensors->running_loss(x).item<double>(), expected, 1e-6);
  EXPECT_NE(by_tensors->report().engine, "fused");
  EXPECT_NEAR(ode_with(kinetic_energy(), Adjoint{})->running_loss(x).item<double>(), expected, 1e-6);
}

TEST(RunningLossInOnePiece, SaysWhatDoesNotFit) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  const auto message = [&](const Tensor& x) -> std::string {
    try {
      ode->running_loss(x);
    } catch (const InvalidArgument& error) { return error.what(); }
    return "nothing thrown";
  };
  EXPECT_EQ(message(torch::zeros({3, 2})), "the model has no running loss; give it one in `running_losses`");
  ode->options().running_losses = {path_length()};
  EXPECT_EQ(message(torch::zeros({0, 2})), "the running loss is a mean over samples, got inputs [0, 2]");
}

TEST(LossInOnePiece, SaysWhatDoesNotFit) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  const Tensor x = torch::randn({5, 2});
  const auto message = [&](const Tensor& y, const Answer& answer) -> std::string {
    try {
      ode->loss(x, y, answer);
    } catch (const InvalidArgument& error) { return error.what(); }
    return "nothing thrown";
  };
  EXPECT_EQ(message({}, {}), "the loss needs a target a sample, got none");
  // torch would broadcast this to (5, 5) and train towards nonsense.
  EXPECT_EQ(message(torch::zeros({5}), {.head = nn::Linear(2, 1)}),
            "the answer has shape [5, 1] and its target [5]; give both the same");
  EXPECT_EQ(message(torch::zeros({5, 3}), {}),
            "the answer has shape [5, 2] and its target [5, 3]; give both the same");
  EXPECT_EQ(message(torch::zeros({5}), {.loss = AnswerLoss::cross_entropy}),
            "the loss needs int64 labels, one a sample, got shape [5] Float");
  EXPECT_EQ(message(torch::full({5}, 2, torch::kInt64), {.loss = AnswerLoss::cross_entropy}),
            "labels must be 0 to 1 for 2 scores, got 2");
  ode->options().sensitivity = Adjoint{};
  EXPECT_EQ(message(torch::full({5}, -100, torch::kInt64), {.loss = AnswerLoss::cross_entropy}),
            "labels must be 0 to 1 for 2 scores, got -100");
  EXPECT_EQ(message(torch::zeros({4, 2}), {}),
            "the loss needs one target a sample, got shape [4, 2] for inputs [5, 2]");
}

}  // namespace
}  // namespace fathom::testing
