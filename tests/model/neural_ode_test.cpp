/// NeuralOde as a torch module: in a Sequential, at depths, cloned, moved, reported, and with every mistake told in a sentence.
#include <gtest/gtest.h>

#include <set>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

const Solver tight = adaptive(dop853(), 1e-12);

DepthSequential network(std::int64_t inputs, std::int64_t outputs) {
  auto net = mlp({.features = {inputs, 5, outputs}, .depth = DepthInput::first_layer});
  net->to(float64);
  randomize(*net);
  return net;
}

std::set<std::string> names(const torch::nn::Module& module) {
  std::set<std::string> all;
  for (const auto& item : module.named_parameters()) all.insert(item.key());
  return all;
}

class NeuralOdes : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(31); }
  Tensor x = torch::randn({4, 2}, float64);
};

TEST_F(NeuralOdes, ComposeInASequentialWithEverything) {
  torch::nn::Sequential model(
      torch::nn::Linear(3, 2), ZeroAugmentation(2), NeuralOde(controlled(network(8, 4))),
      NeuralOde(higher_order(depth_varying(network(4, 2)), 2)),
      AdaptiveDepth(depth_varying(network(4, 4)), torch::nn::AnyModule(PaperDepth(4))),
      torch::nn::Linear(4, 1));
  model->to(float64);
  const Tensor y = model->forward(torch::randn({5, 3}, float64));
  EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{5, 1}));
  y.sum().backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0) << item.key();
  }
}

TEST_F(NeuralOdes, GiveTheSameStatesAsTrajectoryDenseFunctionAndEnd) {
  NeuralOde ode(depth_varying(network(2, 2)), {.solver = tight});
  const Tensor states = ode->trajectory(x, {0.0, 0.25, 0.6, 1.0});
  EXPECT_EQ(states.sizes(), (std::vector<std::int64_t>{4, 4, 2}));
  EXPECT_TRUE(torch::equal(states[0], x));
  EXPECT_LT(distance(states[-1], ode->forward(x)), 1e-11);
  const Interpolant z = ode->dense(x);
  EXPECT_LT(distance(z(0.25), states[1]), 1e-9);
  EXPECT_LT(distance(z(0.6), states[2]), 1e-9);
  EXPECT_FALSE(z(0.6).requires_grad());
  EXPECT_FALSE(ode->options().solver.dense);
}

TEST_F(NeuralOdes, StayAsTheyWereWhenADenseSolveFails) {
  NeuralOde ode(
      own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) { return z.narrow(1, 0, 1); }}));
  EXPECT_NE(message_of([&] { ode->dense(x); }), "nothing was thrown");
  EXPECT_FALSE(ode->options().solver.dense);
}

TEST_F(NeuralOdes, RunOverTheSpanOfTheirOptions) {
  const Field decay =
      own_field({.rate = [](const Tensor& s, const Tensor&, const Tensor& z) { return -2 * s * z; }});
  for (const auto& [first, last] : {std::pair{0.0, 1.0}, std::pair{0.5, 2.0}, std::pair{1.0, -0.5}}) {
    NeuralOde ode(decay, {.first = first, .last = last, .solver = tight});
    EXPECT_LT(distance(ode->forward(x), x * std::exp(first * first - last * last)), 1e-10);
  }
}

TEST_F(NeuralOdes, ReportTheWorkOfTheLastSolve) {
  NeuralOde ode(depth_varying(network(2, 2)), {.solver = fixed(rk4(), 5)});
  const Tensor input = x.clone().requires_grad_();
  const Tensor end = ode->forward(input);
  EXPECT_EQ(ode->report().evaluations, 20);
  EXPECT_EQ(ode->report().accepted, 5);
  EXPECT_EQ(ode->report().backward_evaluations, 0);
  end.sum().backward();
  EXPECT_EQ(ode->report().backward_evaluations, 20);
  ode->forward(input);
  EXPECT_EQ(ode->report().backward_evaluations, 0);
}

TEST_F(NeuralOdes, NameTheirParametersStably) {
  DepthSequential net(DepthLinear(4, 3, fourier({.harmonics = 1})), torch::nn::Tanh(),
                      torch::nn::Linear(3, 2));
  NeuralOde ode(controlled(net, {.embedding = mlp({.features = {2, 2}}).ptr()}),
                NeuralOdeOptions{.input_layer = torch::nn::AnyModule(torch::nn::Linear(2, 2))});
  EXPECT_EQ(names(*ode),
            (std::set<std::string>{"field.net.0.weight", "field.net.0.bias", "field.net.2.weight",
                                   "field.net.2.bias", "field.embedding.0.weight", "field.embedding.0.bias",
                                   "input_layer.weight", "input_layer.bias"}));
  EXPECT_EQ(names(*NeuralOde(higher_order(linear_reflection(), 1))),
            (std::set<std::string>{"field.field.theta"}));
  EXPECT_EQ(names(*AdaptiveDepth(linear_reflection(), torch::nn::AnyModule(PaperDepth(1)))),
            (std::set<std::string>{"ode.field.theta", "depth.hidden.weight", "depth.hidden.bias",
                                   "depth.output.weight", "depth.output.bias"}));
}

/// One of every kind of field and layer that can be cloned.
std::vector<std::pair<Field, Tensor>> clonable() {
  const Tensor vectors = torch::randn({4, 2}, float64);
  const Tensor adjacency = normalized_adjacency(4, {{0, 1}, {1, 2}, {2, 3}});
  std::vector<std::pair<Field, Tensor>> all = {
      {autonomous(mlp({.features = {2, 3, 2}})), vectors},
      {depth_varying(DepthSequential(DepthConcat(), DepthLinear(3, 2, fourier()))), vectors},
      {depth_varying(DepthSequential(HyperLinear(2, 2))), vectors},
      {controlled(mlp({.features = {4, 2}}), {.embedding = mlp({.features = {2, 2}}).ptr()}), vectors},
      {driven(mlp({.features = {3, 2}}), {.value = [](const Tensor& s) { return s.view({1}); }}), vectors},
      {higher_order(autonomous(mlp({.features = {2, 1}})), 2), vectors},
      {linear_reflection(0.7), vectors},
      {approximation(mlp({.features = {1, 1}}), 1), vectors},
      {autonomous(DepthSequential(GraphLinear(2, 2, adjacency))), vectors},
      {depth_varying(DepthSequential(DepthConv2d(2, 2, legendre()))), torch::randn({2, 2, 3, 3}, float64)}};
  for (auto& entry : all) {
    entry.first->to(float64);
    randomize(*entry.first);
  }
  return all;
}

TEST_F(NeuralOdes, CloneDeeply) {
  for (const auto& [field, input] : clonable()) {
    NeuralOde ode(field, {.last = 0.7, .solver = fixed(rk4(), 2)});
    const auto copy = std::dynamic_pointer_cast<NeuralOdeImpl>(ode->clone());
    const Tensor before = ode->forward(input).detach();
    EXPECT_TRUE(torch::equal(copy->forward(input), before));
    EXPECT_EQ(names(*copy), names(*ode));
    EXPECT_EQ(copy->field()->break_points(), field->break_points());
    const torch::NoGradGuard no_graph;
    for (Tensor parameter : copy->parameters()) parameter.add_(1);
    EXPECT_TRUE(torch::equal(ode->forward(input), before));
    EXPECT_FALSE(torch::equal(copy->forward(input), before));
  }
}

TEST_F(NeuralOdes, CloneTheirInputLayerAndDepthNetwork) {
  NeuralOde ode(autonomous(network(3, 3)),
                {.input_layer = torch::nn::AnyModule(PartialAugmentation(torch::nn::Linear(2, 1)))});
  AdaptiveDepth adaptive_depth(depth_varying(network(2, 2)), torch::nn::AnyModule(PaperDepth(2)));
  ode->to(float64);
  adaptive_depth->to(float64);
  const auto ode_copy = std::dynamic_pointer_cast<NeuralOdeImpl>(ode->clone());
  const auto adaptive_copy = std::dynamic_pointer_cast<AdaptiveDepthImpl>(adaptive_depth->clone());
  EXPECT_TRUE(torch::equal(ode_copy->forward(x), ode->forward(x)));
  EXPECT_TRUE(torch::equal(adaptive_copy->forward(x), adaptive_depth->forward(x)));
  const torch::NoGradGuard no_graph;
  for (Tensor parameter : ode->parameters()) parameter.zero_();
  for (Tensor parameter : adaptive_depth->parameters()) parameter.zero_();
  EXPECT_FALSE(torch::equal(ode_copy->forward(x), ode->forward(x)));
  EXPECT_FALSE(torch::equal(adaptive_copy->forward(x), adaptive_depth->forward(x)));
}

TEST_F(NeuralOdes, TakeASequentialAsInputLayer) {
  const auto layers = [] {
    return torch::nn::Sequential(torch::nn::Linear(2, 5), torch::nn::Tanh(), torch::nn::Linear(5, 3));
  };
  torch::nn::Sequential h_x = layers();
  NeuralOde ode(autonomous(network(3, 3)), {.input_layer = h_x});
  ode->to(float64);
  const Tensor end = ode->forward(x);
  EXPECT_TRUE(torch::equal(end, NeuralOde(ode->field())->forward(h_x->forward(x))));
  EXPECT_TRUE(names(*ode).contains("input_layer.0.weight") && names(*ode).contains("input_layer.2.bias"));
  EXPECT_GT(gradient(end.sum(), h_x->ptr(0)->as<torch::nn::Linear>()->weight).abs().max().item<double>(), 0);

  const auto copy = std::dynamic_pointer_cast<NeuralOdeImpl>(ode->clone());
  EXPECT_TRUE(torch::equal(copy->forward(x), end));
  const torch::NoGradGuard no_graph;
  for (Tensor parameter : h_x->parameters()) parameter.zero_();
  EXPECT_TRUE(torch::equal(copy->forward(x), end));

  PartialAugmentation partial(layers());
  partial->to(float64);
  EXPECT_EQ(partial->forward(x).sizes(), (std::vector<std::int64_t>{x.size(0), 5}));
  NeuralOde without(autonomous(network(2, 2)), {.input_layer = torch::nn::Sequential()});
  EXPECT_EQ(message_of([&] { without->forward(x); }), "a chain of layers needs at least one, got none");
}

TEST_F(NeuralOdes, MoveBetweenFloat32AndFloat64) {
  for (const auto& [field, input] : clonable()) {
    NeuralOde ode(field, {.solver = fixed(rk4(), 2)});
    const Tensor exact = ode->forward(input).detach();
    ode->to(torch::kFloat32);
    const Tensor single = ode->forward(input.to(torch::kFloat32));
    EXPECT_EQ(single.scalar_type(), torch::kFloat32);
    EXPECT_LT(distance(single.to(float64), exact), 1e-4);
  }
}

TEST_F(NeuralOdes, WorkOnEmptyBatches) {
  NeuralOde ode(controlled(network(4, 2)));
  AdaptiveDepth adaptive_depth(depth_varying(network(2, 2)), torch::nn::AnyModule(PaperDepth(2)));
  adaptive_depth->to(float64);
  const Tensor empty = torch::zeros({0, 2}, float64);
  EXPECT_EQ(ode->forward(empty).size(0), 0);
  EXPECT_EQ(adaptive_depth->forward(empty).size(0), 0);
}

TEST_F(NeuralOdes, LandOnTheJumpsOfTheFieldAndOfAnEmbedding) {
  DepthSequential embedding(DepthLinear(2, 2, piecewise_constant({.pieces = 2})));
  embedding->to(float64);
  randomize(*embedding);
  auto stacked = mlp({.features = {4, 2}, .basis = piecewise_constant({.pieces = 3})});
  stacked->to(float64);
  NeuralOde ode(controlled(stacked, {.embedding = embedding.ptr()}), {.solver = adaptive(dopri5(), 1e-3)});
  const auto grid = ode->solve(x).grid;
  for (double joint : {1.0 / 3, 0.5, 2.0 / 3}) {
    EXPECT_TRUE(std::any_of(grid.begin(), grid.end(), [&](double s) { return std::abs(s - joint) < 1e-12; }))
        << joint;
  }
}

// Mistakes

TEST_F(NeuralOdes, SayWhatIsWrongInOneSentence) {
  const auto says = [](auto&& work, const std::string& expected) {
    EXPECT_NE(message_of(work).find(expected), std::string::npos) << message_of(work);
  };
  const auto run = [&](const Field& field, const Tensor& input, const Tensor& control = {}) {
    return [=] { NeuralOde(field)->solve(input, {}, control); };
  };
  const auto wide = torch::randn({4, 3}, float64);
  says(run(autonomous(mlp({.features = {2, 2}})), wide),
       "layer 0 (Linear) needs 2 features, got shape [4, 3]");
  says(run(autonomous(network(2, 3)), x), "the field must return the shape of the state [4, 2], got [4, 3]");
  says(run(depth_varying(DepthLinear(2, 2, fourier())), wide),
       "DepthLinear needs 2 features on axis 1 of 2 axes, got shape [4, 3]");
  says(run(higher_order(autonomous(network(3, 1)), 2), wide),
       "a field of order 2 needs a number of features that is a multiple of 2, got 3");
  says(run(higher_order(autonomous(network(2, 2)), 2), x),
       "the field of order 2 must return 1 features for a state of 2, got shape [4, 2]");
  says(run(higher_order(autonomous(network(2, 2)), SelectiveOrder{.states = 4}), x),
       "a field of order 2 needs at least 4 features, got 2");
  says([] { higher_order(linear_reflection(), 0); }, "must be at least 1, got 0");
  says([] { higher_order(linear_reflection(), SelectiveOrder{.states = 3}); },
       "the 3 features of order 2 must divide into 2");
  says([] { higher_order(linear_reflection(), SelectiveOrder{}); },
       "at least one state of that order, got 0");
  says(run(controlled(network(4, 2)), x, torch::randn({3, 2}, float64)),
       "the control must have the batch of the state [4, 2], got shape [3, 2]");
  says(run(controlled(network(2, 2), {.entry = ControlEntry::addition}), x, wide),
       "a control that is added must have the shape of the state [4, 2], got [4, 3]; embed it, or "
       "concatenate");
  says(
      [&] {
        NeuralOde(autonomous(network(2, 2)))->solve_scaled(x, torch::tensor({1.0, -0.5, 1.0, 1.0}, float64));
      },
      "the depth of a sample must not be negative, got -0.5; let its network end in an absolute value");
  says([&] { NeuralOde(autonomous(network(2, 2)))->solve_scaled(x, torch::ones({3}, float64)); },
       "one value a sample, got [3]");
  says(
      [&] {
        AdaptiveDepth(autonomous(network(2, 2)), torch::nn::AnyModule(torch::nn::Identity()))->forward(x);
      },
      "the depth network must give one value a sample, got shape [4, 2] for 4 samples");
  says([] { AdaptiveDepth(linear_reflection(), torch::nn::AnyModule()); },
       "needs a network g(x) for the depth, got none");
  says([] { NeuralOde(Field{}); }, "a NeuralOde needs a field, got none");
  says([] { DepthLinear(2, 2, DepthBasis{}); }, "a basis with at least one function, got 0");
  says([] { own_field({}); }, "an own field needs a `rate` function, got none");
  says([] { driven(mlp({.features = {2, 2}}), {}); }, "a driven field needs a signal u(s), got none");
  says([] { approximation(mlp({.features = {2, 2}}), 0); }, "at least one input feature, got 0");
  says([] { mlp({.features = {2}}); },
       "`features` needs those of the input and of the output, got 1 number(s)");
  says([] { mlp({.features = {2, 0, 2}}); }, "`features` must be positive, got 0");
  says([] { ZeroAugmentation(-1); }, "not negative, got -1");
  says([] { ZeroAugmentation(1)->forward(torch::zeros({3})); }, "a batch and a feature axis, got shape [3]");
  says([] { normalized_adjacency(2, {{0, 2}}); }, "an edge must join nodes 0 to 1, got 0 - 2");
  says([] { GraphLinear(2, 2, torch::zeros({2, 3})); }, "an adjacency must be square, got shape [2, 3]");
  says(
      [] {
        GraphLinear(2, 2, normalized_adjacency(3, {}))->forward(torch::zeros({2, 2}));
      },
      "a graph of 3 nodes");
  says([] { NeuralOde(own_field({.rate = [](auto&, auto&, const Tensor& z) { return z; }}))->clone(); },
       "a field made of a function cannot be cloned");
}

}  // namespace
}  // namespace fathom::testing
