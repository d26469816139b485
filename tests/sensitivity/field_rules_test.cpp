/// What a field must keep to for its gradients to be right, and what is said of one that does not.
#include <gtest/gtest.h>

#include <cmath>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

const Tensor ones = torch::ones({4, 2}, float64);

class FieldRules : public EverySensitivity {
 protected:
  void SetUp() override { torch::manual_seed(5); }
  bool is_unrolled() const { return std::holds_alternative<Unrolled>(sensitivity()); }
  Solution solved(const VectorField& field, const Tensor& z0 = ones) const {
    return solve(field, z0, {0.0, 1.0}, {}, sensitivity());
  }
  /// What a solve and its gradient have to say.
  std::string complaint(const VectorField& field, const Tensor& z0 = ones) const {
    return message_of([&] { solved(field, z0).states[-1].sum().backward(); });
  }
};
INSTANTIATE_TEST_SUITE_P(By, FieldRules, ::testing::ValuesIn(all_sensitivities()), name_of);

// Every tensor that wants a gradient is listed

std::string not_listed(const std::string& shape) {
  return "the field reads a tensor of shape " + shape +
         " that wants a gradient and is not in `parameters`, so it would get none; list it there (a "
         "FieldModule "
         "registers it), `detach()` it, or solve under torch::NoGradGuard";
}

TEST_P(FieldRules, NameATensorThatIsNotListed) {
  const Tensor W = torch::randn({2, 2}, float64).requires_grad_(),
               b = torch::zeros({2}, float64).requires_grad_();
  const VectorField field{.rate = [=](const Tensor&, const Tensor& z) { return z.matmul(W) + b; },
                          .parameters = {W}};
  if (is_unrolled()) {  // torch's own graph knows it
    solved(field).states[-1].sum().backward();
    EXPECT_GT(b.grad().abs().min().item<double>(), 0);
  } else {
    EXPECT_EQ(complaint(field), not_listed("[2]"));
  }
}

TEST_P(FieldRules, NameATensorThatIsNotListedWhereOnlyTheStartWantsAGradient) {
  const Tensor W = torch::randn({2, 2}, float64).requires_grad_();
  const VectorField field{.rate = [=](const Tensor&, const Tensor& z) { return z.matmul(W); }};
  const Tensor z0 = ones.clone().requires_grad_();
  if (is_unrolled()) {
    solved(field, z0).states[-1].sum().backward();
    EXPECT_TRUE(W.grad().defined());
  } else {
    EXPECT_EQ(complaint(field, z0), not_listed("[2, 2]"));
  }
}

TEST_P(FieldRules, NameATensorWhereNothingIsListed) {
  const Tensor W = torch::randn({2, 2}, float64).requires_grad_();
  const VectorField field{.rate = [=](const Tensor&, const Tensor& z) { return z.matmul(W); }};
  EXPECT_EQ(complaint(field), not_listed("[2, 2]"));
  const torch::NoGradGuard no_graph;
  EXPECT_NO_THROW(solved(field));
}

TEST_P(FieldRules, NameATensorOfTheRunningLoss) {
  const Tensor theta = variable(0.5), weight = variable(2.0);
  const VectorField field{.rate = [=](const Tensor&, const Tensor& z) { return -theta * z; },
                          .parameters = {theta},
                          .running_loss = [=](const Tensor&, const Tensor& z,
                                              const Tensor&) { return weight * z.square().sum(1); }};
  EXPECT_EQ(complaint(field), is_unrolled() ? "nothing was thrown" : not_listed("[]"));
}

TEST_P(FieldRules, AllowWhatIsComputedFromAParameter) {
  const Tensor W = torch::randn({2, 2}, float64).requires_grad_(), symmetric = W + W.t();
  const VectorField outside{.rate = [=](const Tensor&, const Tensor& z) { return z.matmul(symmetric); },
                            .parameters = {W}};
  const VectorField part{.rate = [=](const Tensor&, const Tensor& z) { return z * W[0]; }, .parameters = {W}};
  const VectorField computed{.rate = [=](const Tensor&, const Tensor& z) { return z.matmul(symmetric); },
                             .parameters = {symmetric}};
  for (const VectorField& field : {outside, part, computed}) {
    W.mutable_grad().reset();
    solve(field, ones, {0.0, 1.0}, {}, sensitivity()).states[-1].sum().backward({}, /*retain_graph=*/true);
    EXPECT_GT(W.grad().abs().max().item<double>(), 0);
  }
}

TEST_P(FieldRules, AllowATensorWithoutGradient) {
  const Tensor theta = variable(0.5), fixed = torch::ones({2}, float64);
  EXPECT_EQ(complaint({.rate = [=](const Tensor&, const Tensor& z) { return -theta * z * fixed; },
                       .parameters = {theta}}),
            "nothing was thrown");
}

TEST(FieldRulesOfDiscrete, NameATensorThatIsReadLaterOn) {
  const Tensor theta = variable(0.5), late = variable(0.5);
  const VectorField field{
      .rate = [=](const Tensor& s,
                  const Tensor& z) { return s.item<double>() < 0.5 ? -theta * z : -late * z; },
      .parameters = {theta},
      .break_points = {0.5}};
  const Solution solution = solve(field, ones, {0.0, 1.5});
  EXPECT_EQ(message_of([&] { solution.states[-1].sum().backward(); }), not_listed("[]"));
}

TEST(FieldRulesOfModels, NameATensorOfAnOwnField) {
  const Tensor a = torch::ones({2}).requires_grad_(), forgotten = torch::ones({3, 2}).requires_grad_();
  NeuralOde ode(
      own_field({.rate = [=](const Tensor&, const Tensor&, const Tensor& z) { return -a * z * forgotten; },
                 .parameters = {a}}));
  EXPECT_EQ(message_of([&] { ode->forward(torch::ones({3, 2})).sum().backward(); }), not_listed("[3, 2]"));
}

// Nothing is changed in place

const std::string changed_state =
    "the field must not change its depth or state in place; use operations whose names do not end in `_`, or "
    "work "
    "on a copy, `z.clone()`";
const std::string changed_parameter =
    "the field must not change a parameter or its input x in place; compute a new tensor instead";

TEST_P(FieldRules, RefuseAChangeOfTheStateInPlace) {
  const Tensor theta = variable(1.0);
  const auto negated = [=](const Tensor&, const Tensor& z) {
    Tensor y = z;
    return y.mul_(-1) * theta;
  };
  const auto in_a_view = [=](const Tensor&, const Tensor& z) {
    z.select(1, 0).zero_();
    return -theta * z;
  };
  EXPECT_EQ(complaint({.rate = negated, .parameters = {theta}}), changed_state);
  EXPECT_EQ(complaint({.rate = in_a_view, .parameters = {theta}}), changed_state);
  const torch::NoGradGuard no_graph;
  EXPECT_EQ(complaint({.rate = negated, .parameters = {theta}}), changed_state);
}

TEST_P(FieldRules, RefuseAChangeOfAParameterInPlace) {
  const Tensor theta = variable(1.0);
  const auto rate = [=](const Tensor&, const Tensor& z) {
    const torch::NoGradGuard no_graph;
    theta.detach().mul_(0.9);
    return -theta * z;
  };
  EXPECT_EQ(complaint({.rate = rate, .parameters = {theta}}), changed_parameter);
}

TEST_P(FieldRules, RefuseARunningLossThatChangesStateOrRate) {
  const Tensor theta = variable(1.0);
  VectorField field{.rate = [=](const Tensor&, const Tensor& z) { return -theta * z; },
                    .parameters = {theta}};
  field.running_loss = [](const Tensor&, const Tensor& z, const Tensor&) { return Tensor(z).mul_(2).sum(1); };
  EXPECT_EQ(complaint(field), changed_state);
  field.running_loss = [](const Tensor&, const Tensor&, const Tensor& rate) {
    return Tensor(rate).mul_(2).sum(1);
  };
  EXPECT_EQ(complaint(field), "the running loss must not change the rate in place");
}

TEST(FieldRulesOfModels, RefuseAChangeOfTheInputInPlace) {
  NeuralOde ode(own_field({.rate =
                               [](const Tensor&, const Tensor& x, const Tensor& z) {
                                 Tensor(x).mul_(0.5);
                                 return x - z;
                               },
                           .controlled = true}));
  EXPECT_EQ(message_of([&] { ode->forward(torch::ones({3, 2})); }), changed_parameter);
}

TEST(FieldRulesOfModels, AllowWorkInPlaceOnACopy) {
  NeuralOde ode(
      own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) { return z.clone().mul_(-1); }}));
  EXPECT_NEAR(ode->forward(torch::ones({1, 1}))[0].item<double>(), std::exp(-1), 1e-4);
}

TEST(FieldRulesOfModels, HoldWithoutVersionsAsWell) {
  const c10::InferenceMode inference;
  NeuralOde ode(own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) { return -z; }}));
  EXPECT_NEAR(ode->forward(torch::ones({1, 1}))[0].item<double>(), std::exp(-1), 1e-4);
}

// The rate is a pure function

const std::string not_pure =
    "the field must give the same rate for the same depth and state, but gave another one when it was "
    "evaluated "
    "again for the gradient; call `eval()` on layers with dropout, draw random numbers before the solve, and "
    "leave "
    "what the field reads as it is until the gradient is taken";

class PureFields : public FieldRules {
 protected:
  std::string complaint_of_steps(const VectorField& field, const Solver& solver) const {
    return message_of([&] {
      solve(field, torch::ones({16, 2}), {0.0, 1.0}, solver, sensitivity()).states[-1].sum().backward();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(By, PureFields, ::testing::ValuesIn(all_sensitivities()), name_of);

TEST_P(PureFields, MayHaveNoDropoutInTraining) {
  torch::nn::Dropout dropout(0.5);
  const Tensor theta = torch::ones({2}).requires_grad_();
  const VectorField field{
      .rate = [=](const Tensor&, const Tensor& z) mutable { return -theta * dropout->forward(z); },
      .parameters = {theta}};
  for (const std::int64_t steps : {1, 7, 50})
    EXPECT_EQ(complaint_of_steps(field, fixed(rk4(), steps)), not_pure) << steps;
  dropout->eval();
  for (const std::int64_t steps : {1, 7, 50})
    EXPECT_EQ(complaint_of_steps(field, fixed(rk4(), steps)), "nothing was thrown") << steps;
}

TEST_P(PureFields, MayJumpWhereRoundingDecides) {
  const Tensor theta = torch::ones({2}).requires_grad_();
  const VectorField sliding{
      .rate = [=](const Tensor& s,
                  const Tensor& z) { return torch::cos(9 * s).to(z.scalar_type()) - 3 * theta * z.sign(); },
      .parameters = {theta}};
  for (const std::int64_t steps : {10, 100})
    EXPECT_EQ(complaint_of_steps(sliding, fixed(rk4(), steps)), "nothing was thrown") << steps;
}

TEST_P(PureFields, MayBeStiffOrLarge) {
  const Tensor theta = torch::ones({2}).requires_grad_();
  for (const double factor : {1e-6, 40.0, 1e6}) {
    const VectorField field{
        .rate = [=](const Tensor&, const Tensor& z) { return -40 * theta * (z - factor); },
        .parameters = {theta}};
    EXPECT_EQ(complaint_of_steps(field, fixed(rk4(), 16)), "nothing was thrown");
    EXPECT_EQ(complaint_of_steps(field, adaptive(dopri5(), 1e-4)), "nothing was thrown");
  }
}

TEST(PureFieldsOfDiscrete, MayNotChangeBeforeTheGradientIsTaken) {
  Tensor offset = torch::ones({2}, float64);
  const Tensor theta = variable(1.0);
  const VectorField field{.rate = [=](const Tensor&, const Tensor& z) { return -theta * (z - offset); },
                          .parameters = {theta}};
  const Solution solution = solve(field, 2 * ones, {0.0, 1.0});
  offset.add_(1);
  EXPECT_EQ(message_of([&] { solution.states[-1].sum().backward(); }), not_pure);
}

TEST(PureFieldsOfDiscrete, MayHaveCheckpoints) {
  torch::nn::Dropout dropout(0.5);
  const Tensor theta = torch::ones({2}).requires_grad_();
  const VectorField field{
      .rate = [=](const Tensor&, const Tensor& z) mutable { return -theta * dropout->forward(z); },
      .parameters = {theta}};
  const auto complaint = [&] {
    return message_of([&] {
      solve(field, torch::ones({16, 2}), {0.0, 1.0}, fixed(rk4(), 20), Discrete{.checkpoint_every = 6})
          .states[-1]
          .sum()
          .backward();
    });
  };
  EXPECT_EQ(complaint(), not_pure);
  dropout->eval();
  EXPECT_EQ(complaint(), "nothing was thrown");
}

TEST(PureFieldsOfModels, WithDropoutInTrainingAreRefused) {
  NeuralOde ode(
      autonomous(DepthSequential(torch::nn::Linear(2, 8), torch::nn::Dropout(0.5), torch::nn::Linear(8, 2))),
      {.solver = {.steps = FixedSteps{.count = 4}}});
  const auto complaint = [&] {
    return message_of([&] { ode->forward(torch::ones({8, 2})).sum().backward(); });
  };
  EXPECT_EQ(complaint(), not_pure);
  ode->eval();
  EXPECT_EQ(complaint(), "nothing was thrown");
}

// Starts and failures

TEST_P(FieldRules, RefuseAStartThatIsNotFinite) {
  for (const double value : {double(NAN), double(INFINITY)}) {
    Tensor z0 = ones.clone();
    z0[1][0] = value;
    const std::string shown = std::isnan(value) ? "nan" : "inf";
    const VectorField field{.rate = [](const Tensor&, const Tensor& z) { return -z; }};
    EXPECT_EQ(complaint(field, z0), "`z0` must be finite, got z0[1, 0] = " + shown +
                                        "; check the data, or the layers that computed it");
    EXPECT_THROW(solved(field, z0), InvalidArgument);
  }
}

TEST(BadStartsOfModels, AreArgumentErrorsOnBothEngines) {
  Tensor x = torch::ones({40, 2});
  x[17][1] = NAN;
  for (const bool fused : {true, false}) {
    for (const bool steps_per_sample : {true, false}) {
      NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})),
                    {.solver = {.fused = fused}, .steps_per_sample = steps_per_sample});
      EXPECT_THROW(ode->forward(x), InvalidArgument);
      EXPECT_THROW(ode->loss(x, x), InvalidArgument);
    }
  }
}

TEST_P(FieldRules, TellWhereTheFieldThrewOnTheWayBack) {
  auto is_back = std::make_shared<bool>(false);
  const Tensor theta = variable(1.0);
  const VectorField field{.rate =
                              [=](const Tensor& s, const Tensor& z) {
                                if (*is_back && s.item<double>() < 0.6) throw std::domain_error("too low");
                                return -theta * z;
                              },
                          .parameters = {theta}};
  const auto failure = failure_of([&] {
    const Solution solution = solve(field, ones, {0.0, 1.0}, fixed(rk4(), 10), sensitivity());
    *is_back = true;
    solution.states[-1].sum().backward();
  });
  if (is_unrolled()) {  // its way back is torch's own, without the field
    EXPECT_FALSE(failure);
    return;
  }
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->reason, FailureReason::field_threw);
  EXPECT_NEAR(failure->site.depth, 0.55, 0.06);
  EXPECT_NE(std::string(failure->what()).find("the field threw \"too low\""), std::string::npos);
}

}  // namespace
}  // namespace fathom::testing
