/// A lowering that is remembered, against one that is made anew: whatever has happened to the field meanwhile.
#include "fathom/field/lowering_memo.hpp"

#include <gtest/gtest.h>

#include "fathom/fused/program.hpp"
#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

namespace nn = torch::nn;

void expect_same(const Lowered& given, const Lowered& expected, const std::string& what) {
  ASSERT_EQ(bool(given.program), bool(expected.program)) << what;
  EXPECT_EQ(given.reason, expected.reason) << what;
  if (!given.program) return;
  EXPECT_TRUE(fused::are_alike(*given.program, *expected.program)) << what;
  ASSERT_EQ(given.tensors.size(), expected.tensors.size()) << what;
  for (std::size_t i = 0; i < given.tensors.size(); ++i)
    EXPECT_TRUE(given.tensors[i].is_same(expected.tensors[i])) << what << ", tensor " << i;
}

struct Named {
  std::string name;
  Field field;
};

/// Each differs from the one before in one thing; every second one goes to the memo twice.
std::vector<Named> fields() {
  const nn::Linear shared(3, 3);
  const auto softplus = [](double beta) { return nn::Softplus(nn::SoftplusOptions().beta(beta)); };
  const auto net = [](auto activation) {
    return DepthSequential(nn::Linear(3, 5), activation, nn::Linear(5, 3));
  };
  const nn::Linear no_bias(nn::LinearOptions(5, 3).bias(false));
  const DepthSequential embedding(nn::Linear(3, 3), nn::Tanh());
  return {
      {"tanh", autonomous(net(nn::Tanh()))},
      {"sigmoid", autonomous(net(nn::Sigmoid()))},
      {"softplus", autonomous(net(softplus(1)))},
      {"softplus of another beta", autonomous(net(softplus(2)))},
      {"no bias", autonomous(DepthSequential(nn::Linear(3, 5), nn::Tanh(), no_bias))},
      {"two weights", autonomous(DepthSequential(nn::Linear(3, 3), nn::Tanh(), nn::Linear(3, 3)))},
      {"one weight twice", autonomous(DepthSequential(shared, nn::Tanh(), shared))},
      {"an activation more", autonomous(DepthSequential(shared, nn::Tanh(), nn::Tanh(), shared))},
      {"added control", controlled(net(nn::Tanh()), {.entry = ControlEntry::addition})},
      {"embedded control",
       controlled(net(nn::Tanh()), {.entry = ControlEntry::addition, .embedding = embedding.ptr()})},
      {"concatenated control", controlled(DepthSequential(nn::Linear(6, 5), nn::Tanh(), nn::Linear(5, 3)))},
      {"varying", depth_varying(mlp({.features = {3, 5, 3}, .depth = DepthInput::first_layer}))},
      {"not lowered", autonomous(net(nn::GELU()))},
      {"second order", higher_order(autonomous(DepthSequential(nn::Linear(4, 2))), 2)},
      {"tanh again", autonomous(net(nn::Tanh()))}};
}

TEST(LoweringMemo, GivesWhatALoweringWouldForEveryFieldAfterEveryOther) {
  LoweringMemo memo;
  const auto all = fields();
  for (const auto& [first_name, first] : all) {
    for (const auto& [name, field] : all) {
      for (const Field& each : {first, field, field}) {
        const Tensor z0 = torch::randn({7, name == "second order" ? 4 : 3}), x = torch::randn({7, 3});
        expect_same(memo.lower(each, z0, {.control = x}), lower(each, z0, {.control = x}),
                    text(name, " after ", first_name));
      }
    }
  }
}

TEST(LoweringMemo, GivesTheSameProgramAgainForAnotherBatch) {
  LoweringMemo memo;
  const Field field = controlled(mlp({.features = {5, 4, 3}}));
  const auto lowered = [&](std::int64_t batch) {
    return memo.lower(field, torch::randn({batch, 3}), {.control = torch::randn({batch, 2})});
  };
  EXPECT_EQ(lowered(7).program, lowered(9).program);
}

TEST(LoweringMemo, SeesAWeightThatBecameAnotherOne) {
  LoweringMemo memo;
  nn::Linear linear(3, 3);
  const Field field = autonomous(DepthSequential(linear, nn::Tanh()));
  const Tensor z0 = torch::randn({7, 3});
  memo.lower(field, z0, {});
  linear->weight = linear->register_parameter("other", torch::randn({3, 3}));
  expect_same(memo.lower(field, z0, {}), lower(field, z0), "another weight");
  linear->bias = Tensor();
  expect_same(memo.lower(field, z0, {}), lower(field, z0), "no bias");
  linear->weight = torch::randn({4, 3});
  expect_same(memo.lower(field, z0, {}), lower(field, z0), "another shape");
}

TEST(LoweringMemo, LetsNothingStandInForOtherOptions) {
  LoweringMemo memo;
  const Field field = autonomous(mlp({.features = {3, 5, 3}}));
  const Tensor z0 = torch::randn({7, 3});
  const std::vector<LowerOptions> all = {
      {}, {.scale = torch::rand({7})}, {.losses = {kinetic_energy()}}, {.divergence = true}, {}};
  for (const LowerOptions& options : all)
    expect_same(memo.lower(field, z0, options), lower(field, z0, options), "options");
}

TEST(LoweringMemo, GivesWhatALoweringWouldForEveryAnswer) {
  LoweringMemo memo;
  const DepthSequential one(nn::Linear(3, 2)), two(nn::Linear(3, 2), nn::Tanh());
  const Tensor z0 = torch::randn({7, 3}), labels = torch::zeros({7}, torch::kInt64);
  for (int round = 0; round < 2; ++round) {
    for (DepthModule* head :
         std::vector<DepthModule*>{one.ptr().get(), one.ptr().get(), two.ptr().get(), nullptr}) {
      for (const std::int64_t outputs : {2, 3}) {
        const Tensor y = torch::randn({7, outputs});
        expect_same(memo.lower_answer(head, z0, y, AnswerLoss::mse),
                    lower_answer(head, z0, y, AnswerLoss::mse), "mean squares");
      }
      const Lowered of_labels = memo.lower_answer(head, z0, labels, AnswerLoss::cross_entropy);
      EXPECT_TRUE(fused::are_alike(*of_labels.program,
                                   *lower_answer(head, z0, labels, AnswerLoss::cross_entropy).program));
    }
  }
}

}  // namespace
}  // namespace fathom::testing
