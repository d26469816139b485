/// Fields as the equations they stand for: what reaches the network, in which order, and what comes back.
#include <gtest/gtest.h>

#include <thread>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

class Fields : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(6); }

  static DepthSequential network(std::int64_t inputs, std::int64_t outputs) {
    auto net = mlp({.features = {inputs, 4, outputs}, .depth = DepthInput::first_layer});
    net->to(float64);
    return net;
  }

  Tensor s = torch::full({}, 0.3, float64), x = torch::randn({3, 2}, float64),
         z = torch::randn({3, 2}, float64);
};

TEST_F(Fields, TakeNetworksOfAnyType) {
  torch::nn::Linear layer(2, 2);
  torch::nn::Sequential chain(layer, torch::nn::Tanh());
  DepthSequential deep(layer, torch::nn::Tanh());
  layer->to(float64);
  const Tensor expected = torch::tanh(layer->forward(z));
  EXPECT_TRUE(torch::equal(autonomous(layer)->rate(s, {}, z), layer->forward(z)));
  EXPECT_TRUE(torch::equal(autonomous(chain)->rate(s, {}, z), expected));
  EXPECT_TRUE(torch::equal(autonomous(deep)->rate(s, {}, z), expected));
  EXPECT_TRUE(torch::equal(
      autonomous(DepthSequential(torch::nn::Sequential(layer), torch::nn::Tanh()))->rate(s, {}, z),
      expected));
  EXPECT_TRUE(torch::equal(depth_varying(DepthConcat())->rate(s, {}, z).narrow(1, 0, 2), z));
}

TEST_F(Fields, JumpWhereTheirNetworkOrTheirSignalDoes) {
  const DepthSequential stacked(DepthLinear(3, 2, piecewise_constant({.pieces = 2})));
  const Field field = driven(
      stacked,
      {.value = [](const Tensor& at) { return (at < 0.3).to(float64).view({1}); }, .break_points = {0.3}});
  EXPECT_EQ(field->break_points(), (std::vector<double>{0.5, 0.3}));
  EXPECT_EQ(higher_order(field, 1)->break_points(), field->break_points());
}

TEST_F(Fields, JoinStateAndControlInThisOrder) {
  auto wide = network(4, 2), narrow = network(2, 2);
  auto embedding = network(2, 2);
  EXPECT_TRUE(torch::equal(controlled(wide)->rate(s, x, z), wide->forward(s, torch::cat({z, x}, 1))));
  EXPECT_TRUE(torch::equal(controlled(narrow, {.entry = ControlEntry::addition})->rate(s, x, z),
                           narrow->forward(s, z + x)));
  EXPECT_TRUE(torch::equal(controlled(wide, {.embedding = embedding.ptr()})->rate(s, x, z),
                           wide->forward(s, torch::cat({z, embedding->forward(s, x)}, 1))));
}

TEST_F(Fields, KnowWhetherTheyReadTheInput) {
  EXPECT_FALSE(depth_varying(network(2, 2))->is_controlled());
  EXPECT_TRUE(controlled(network(4, 2))->is_controlled());
  EXPECT_TRUE(higher_order(controlled(network(4, 1)), 2)->is_controlled());
  EXPECT_FALSE(
      driven(network(3, 2), {.value = [](const Tensor& at) { return at.view({1}); }})->is_controlled());
  EXPECT_TRUE(linear_reflection()->is_controlled());
}

TEST_F(Fields, TakeASignalForTheBatchOrForEachSample) {
  auto net = network(4, 2);
  const Tensor one = torch::randn({2}, float64);
  const auto rate = [&](const Tensor& u) {
    return driven(net, {.value = [u](const Tensor& at) { return at * u; }})->rate(s, {}, z);
  };
  const Tensor expected = net->forward(s, torch::cat({z, (0.3 * one).expand({3, 2})}, 1));
  EXPECT_LT(distance(rate(one), expected), 1e-15);
  EXPECT_LT(distance(rate(one.view({1, 2})), expected), 1e-15);
  EXPECT_LT(distance(rate(one.expand({3, 2})), expected), 1e-15);
  EXPECT_NE(message_of([&] {
              rate(torch::zeros({2, 2}, float64));
            }).find("must have the batch of the state [3, 2]"),
            std::string::npos);
}

TEST_F(Fields, PutTheRatesOfHigherOrdersInPlace) {
  auto net = network(6, 2);
  const Tensor state = torch::randn({3, 6}, float64);
  const Tensor rate = higher_order(autonomous(net), 3)->rate(s, {}, state);  // (z_2, z_3, f)
  EXPECT_TRUE(torch::equal(rate, torch::cat({state.narrow(1, 2, 4), net->forward(s, state)}, 1)));
  auto wide = network(6, 4);
  const Tensor selective =
      higher_order(autonomous(wide), SelectiveOrder{.states = 4, .order = 2})->rate(s, {}, state);
  EXPECT_TRUE(torch::equal(selective, torch::cat({state.narrow(1, 2, 2), wide->forward(s, state)}, 1)));
}

TEST_F(Fields, OnGraphsMixNeighboursByTheNormalisedAdjacency) {
  // A path of three nodes: degrees with self-loops 2, 3, 2.
  const double a = 1 / std::sqrt(6.0);
  const Tensor dense = torch::tensor({{0.5, a, 0.0}, {a, 1.0 / 3, a}, {0.0, a, 0.5}}, float64);
  for (const auto& edges :
       {std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {1, 2}},
        std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 0}, {0, 1}, {2, 1}, {1, 1}}}) {
    EXPECT_LT(distance(normalized_adjacency(3, edges).to_dense(), dense), 1e-15);
  }
  GraphLinear layer(2, 4, normalized_adjacency(3, {{0, 1}, {1, 2}}));
  layer->to(float64);
  const auto parameters = layer->named_parameters();
  const Tensor expected = dense.matmul(z).matmul(parameters["linear.weight"].t()) + parameters["linear.bias"];
  EXPECT_LT(distance(layer->forward(z), expected), 1e-14);
}

TEST_F(Fields, OnGraphsDoNotCareHowNodesAreNumbered) {
  GraphLinear layer(2, 2, normalized_adjacency(3, {{0, 1}, {1, 2}})),
      renumbered(2, 2, normalized_adjacency(3, {{2, 0}, {0, 1}}));
  layer->to(float64);
  renumbered->to(float64);
  renumbered->parameters()[0].detach().copy_(layer->parameters()[0].detach());
  renumbered->parameters()[1].detach().copy_(layer->parameters()[1].detach());
  const Tensor order = torch::tensor({1, 2, 0});  // new node i is old node order[i]
  EXPECT_LT(distance(renumbered->forward(z.index_select(0, order)), layer->forward(z).index_select(0, order)),
            1e-14);
}

/// For ThreadSanitizer, which sees a layer that converts its adjacency when it is first used.
TEST_F(Fields, OnGraphsAreEvaluatedBySeveralThreads) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    GraphLinear layer(2, 2, normalized_adjacency(3, {{0, 1}, {1, 2}}));
    layer->to(type);
    const Tensor state = z.to(type);
    std::vector<Tensor> answers(4);
    std::vector<std::thread> threads;
    for (Tensor& answer : answers)
      threads.emplace_back([&answer, layer, state]() mutable { answer = layer->forward(state).detach(); });
    for (std::thread& thread : threads) thread.join();
    for (const Tensor& answer : answers) EXPECT_TRUE(torch::equal(answer, answers[0]));
  }
}

TEST_F(Fields, OnGraphsKeepTheAdjacencyExactlyThroughAnotherType) {
  const Tensor adjacency = normalized_adjacency(3, {{0, 1}, {1, 2}});
  GraphLinear layer(2, 2, adjacency);
  layer->to(torch::kFloat32);
  layer->forward(z.to(torch::kFloat32));
  layer->to(float64);
  const auto parameters = layer->named_parameters();
  const Tensor expected =
      adjacency.to_dense().matmul(z).matmul(parameters["linear.weight"].t()) + parameters["linear.bias"];
  EXPECT_LT(distance(layer->forward(z), expected), 1e-15);
}

TEST_F(Fields, OfLayersHaveDepthAndActivationsWhereTheyWereAskedFor) {
  const auto kinds = [](const MlpOptions& options) {
    std::string all;
    for (const auto& layer : mlp(options)->layers())
      all += layer->name().substr(layer->name().rfind(':') + 1) + " ";
    return all;
  };
  EXPECT_EQ(kinds({.features = {2, 3, 2}}), "LinearImpl TanhImpl LinearImpl ");
  EXPECT_EQ(
      kinds({.features = {2, 3, 2}, .activation = Activation::relu, .last_activation = Activation::sigmoid}),
      "LinearImpl ReLUImpl LinearImpl SigmoidImpl ");
  EXPECT_EQ(kinds({.features = {2, 3, 2}, .depth = DepthInput::first_layer}),
            "DepthConcatImpl LinearImpl TanhImpl LinearImpl ");
  EXPECT_EQ(kinds({.features = {2, 3, 2}, .depth = DepthInput::every_layer, .basis = fourier()}),
            "DepthConcatImpl DepthLinearImpl TanhImpl DepthConcatImpl DepthLinearImpl ");
}

}  // namespace
}  // namespace fathom::testing
