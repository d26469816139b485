/// Adam in one pass against torch's own.
#include <gtest/gtest.h>

#include "fathom/train/adam.hpp"
#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

/// Parameters after some steps down a crooked valley, by the given optimiser.
template <class Optimizer, class Options>
std::vector<Tensor> descended(torch::ScalarType type, double decay) {
  torch::manual_seed(3);
  const auto wanting = torch::TensorOptions(type).requires_grad(true);
  std::vector<Tensor> parameters = {torch::randn({7, 5}, wanting), torch::randn({3}, wanting),
                                    torch::randn({1}, wanting)};
  const Tensor unused = torch::ones({2}, wanting);
  std::vector<Tensor> all = parameters;
  all.push_back(unused);
  Optimizer optimizer(all, Options(1e-2).weight_decay(decay));
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    const Tensor loss =
        parameters[0].square().sum() * parameters[1].square().sum() + parameters[2].exp().sum();
    loss.backward();
    optimizer.step();
  }
  return all;
}

template <class Ours, class Theirs, class Options> void expect_equal() {
  for (double decay : {0.0, 0.1}) {
    for (auto [type, tolerance] : {std::pair{torch::kFloat64, 1e-13}, {torch::kFloat32, 2e-6}}) {
      const auto given = descended<Ours, Options>(type, decay),
                 expected = descended<Theirs, Options>(type, decay);
      for (std::size_t i = 0; i < given.size(); ++i) {
        EXPECT_LT(distance(given[i].detach(), expected[i].detach()), tolerance) << i << ", decay " << decay;
      }
    }
  }
}

TEST(FusedAdam, TakesTheStepsOfTorchsAdam) {
  expect_equal<FusedAdam, torch::optim::Adam, torch::optim::AdamOptions>();
}

TEST(FusedAdamW, TakesTheStepsOfTorchsAdamW) {
  expect_equal<FusedAdamW, torch::optim::AdamW, torch::optim::AdamWOptions>();
}

TEST(FusedAdam, KeepsItsStateWhereTorchLooksForIt) {
  Tensor weight = torch::ones({2}, torch::requires_grad());
  FusedAdam optimizer({weight}, torch::optim::AdamOptions(1e-2));
  weight.mutable_grad() = torch::ones({2});
  optimizer.step();
  ASSERT_EQ(optimizer.state().size(), 1u);
  EXPECT_EQ(optimizer.state().begin()->first, c10::guts::to_string(weight.unsafeGetTensorImpl()));
}

TEST(FusedAdam, IsSeenByAutogradAsAChangeInPlace) {
  Tensor weight = torch::ones({2}, torch::requires_grad());
  FusedAdam optimizer({weight}, torch::optim::AdamOptions(1e-2));
  const Tensor before = (weight * weight).sum();
  weight.mutable_grad() = torch::ones({2});
  optimizer.step();
  EXPECT_THROW(before.backward(), c10::Error);
}

}  // namespace
}  // namespace fathom::testing
