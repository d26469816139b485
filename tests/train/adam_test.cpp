/// Adam in one pass against torch's own.
#include <gtest/gtest.h>

#include <locale>

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

/// Of one weight after steps with gradients that vary.
template <class Optimizer> torch::optim::AdamParamState stepped_state(double beta2) {
  Tensor weight = torch::ones({16}, torch::requires_grad());
  Optimizer optimizer({weight}, torch::optim::AdamOptions(1e-3).betas(std::tuple{0.9, beta2}));
  for (int step = 1; step <= 5; ++step) {
    weight.mutable_grad() = torch::linspace(-1.0 / step, step, 16);
    optimizer.step();
  }
  return static_cast<torch::optim::AdamParamState&>(*optimizer.state().begin()->second);
}

TEST(FusedAdam, KeepsTheMeansOfTorchsAdamToRounding) {
  for (double beta2 : {0.999, 0.9999}) {
    const auto given = stepped_state<FusedAdam>(beta2), expected = stepped_state<torch::optim::Adam>(beta2);
    EXPECT_TRUE(torch::allclose(given.exp_avg(), expected.exp_avg(), 1e-6, 0)) << beta2;
    EXPECT_TRUE(torch::allclose(given.exp_avg_sq(), expected.exp_avg_sq(), 1e-6, 0)) << beta2;
  }
}

TEST(FusedAdam, LeavesGradientsThatAClosureMakesToTorchWhereTheyAreNotPlain) {
  const auto stepped = []<class Optimizer>(Optimizer*, auto make_gradient) {
    Tensor weight = torch::arange(6, torch::kFloat32).reshape({2, 3}).requires_grad_();
    Optimizer optimizer({weight}, torch::optim::AdamOptions(1e-1));
    optimizer.step([&] {
      weight.mutable_grad() = make_gradient();
      return weight.sum();
    });
    return weight.detach();
  };
  const auto transposed = [] { return torch::arange(6, torch::kFloat32).sub(2).pow(3).reshape({3, 2}).t(); };
  FusedAdam* ours = nullptr;
  torch::optim::Adam* theirs = nullptr;
  EXPECT_TRUE(torch::equal(stepped(ours, transposed), stepped(theirs, transposed)));
  const auto sparse = [] { return torch::eye(2, 3).to_sparse(); };
  EXPECT_THROW(stepped(ours, sparse), c10::Error);  // as torch's own does
}

/// Where `Optimizer` keeps the state of `weight`.
template <class Optimizer> auto key_of_state(Tensor& weight) {
  Optimizer optimizer({weight}, torch::optim::AdamOptions(1e-2));
  weight.mutable_grad() = torch::ones_like(weight);
  optimizer.step();
  EXPECT_EQ(optimizer.state().size(), 1u);
  return optimizer.state().begin()->first;
}

TEST(FusedAdam, KeepsItsStateWhereTorchLooksForIt) {
  Tensor weight = torch::ones({2}, torch::requires_grad());
  EXPECT_EQ(key_of_state<FusedAdam>(weight), key_of_state<torch::optim::Adam>(weight));
  // Some versions of torch write the key in the locale of the program.
  struct Grouped : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\1"; }
  };
  const std::locale former = std::locale::global(std::locale(std::locale(), new Grouped));
  EXPECT_EQ(key_of_state<FusedAdam>(weight), key_of_state<torch::optim::Adam>(weight));
  std::locale::global(former);
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
