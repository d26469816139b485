/// What a solve refuses, and how it says so: what is required, what was given, what to do.
#include <gtest/gtest.h>

#include <cmath>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

const Tensor ones = torch::ones({4, 2}, float64);

std::string complaint(std::function<Tensor(const Tensor&, const Tensor&)> rate, const Tensor& z0 = ones) {
  return message_of([&] { solve({.rate = std::move(rate)}, z0, {0.0, 1.0}); });
}

Tensor decay(const Tensor&, const Tensor& z) { return -z; }

TEST(BadFields, OfTheWrongShapeAreNamed) {
  EXPECT_EQ(complaint([](const Tensor&, const Tensor& z) { return z.sum(1); }),
            "the field must return the shape of the state [4, 2], got [4]");
}

TEST(BadFields, OfTheRightSizeButTheWrongShapeAreNamed) {
  EXPECT_EQ(complaint([](const Tensor&, const Tensor& z) { return z.t(); }),
            "the field must return the shape of the state [4, 2], got [2, 4]");
}

TEST(BadFields, OfTheWrongTypeAreNamed) {
  EXPECT_EQ(complaint([](const Tensor&, const Tensor& z) { return z.to(torch::kFloat32); }),
            "the field must return the type of the state Double, got Float; convert parameters and state to "
            "one type");
}

TEST(BadFields, WithoutResultAreNamed) {
  EXPECT_EQ(complaint([](const Tensor&, const Tensor&) { return Tensor{}; }),
            "the field must return a tensor like the state, got an undefined one");
}

TEST(BadFields, WithoutRateAreNamed) {
  EXPECT_EQ(complaint({}), "the field needs a `rate` function, got none");
}

TEST(BadFields, WithMatricesOfAnotherTypeSayWhichTypesMet) {
  const Tensor W = torch::ones({2, 2}, torch::kFloat32);
  const std::string message = complaint([W](const Tensor&, const Tensor& z) { return z.matmul(W); });
  EXPECT_NE(message.find("the field threw \"expected"), std::string::npos) << message;
  EXPECT_NE(message.find("ouble"), std::string::npos) << message;
  EXPECT_NE(message.find("loat"), std::string::npos) << message;
}

TEST(BadFields, WhoseRunningLossIsNotOnePerSampleAreNamed) {
  const auto complaint_about = [](auto loss) {
    return message_of([&] { solve({.rate = decay, .running_loss = loss}, ones, {0.0, 1.0}); });
  };
  using Loss = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;
  EXPECT_EQ(
      complaint_about(Loss([](const Tensor&, const Tensor& z, const Tensor&) { return z.square().sum(); })),
      "the running loss must return one value a sample, shape [4], got []; reduce the other axes, not the "
      "first");
  EXPECT_EQ(complaint_about(Loss([](const Tensor&, const Tensor& z, const Tensor&) { return z.square(); })),
            "the running loss must return one value a sample, shape [4], got [4, 2]; reduce the other axes, "
            "not the first");
}

TEST(BadStarts, OfIntegersAreNamed) {
  EXPECT_EQ(complaint(decay, torch::ones({2}, torch::kInt64)),
            "`z0` must be float32 or float64, got Long; convert it with `.to(torch::kFloat32)`");
}

TEST(BadStarts, OfHalfPrecisionAreNamed) {
  EXPECT_EQ(complaint(decay, torch::ones({2}, torch::kFloat16)),
            "`z0` must be float32 or float64, got Half; convert it with `.to(torch::kFloat32)`");
}

TEST(BadStarts, ThatAreUndefinedAreNamed) {
  EXPECT_EQ(complaint(decay, Tensor{}), "`z0` must be a tensor, got an undefined one");
}

std::string complaint_about_depths(const Tensor& depths) {
  return message_of([&] { solve({.rate = decay}, ones, depths); });
}

TEST(BadDepths, OfAnotherTypeOrShapeAreNamed) {
  EXPECT_EQ(complaint_about_depths(torch::linspace(0, 1, 3, torch::kFloat32)),
            "`depths` must be a 1-dimensional float64 tensor, got [3] Float");
  EXPECT_EQ(complaint_about_depths(torch::zeros({3, 1}, float64)),
            "`depths` must be a 1-dimensional float64 tensor, got [3, 1] Double");
  EXPECT_EQ(complaint_about_depths({}),
            "`depths` must be a 1-dimensional float64 tensor, got an undefined one");
}

TEST(BadDepths, ThatAreTooFewAreNamed) {
  EXPECT_EQ(complaint_about_depths(torch::zeros({1}, float64)),
            "`depths` needs a start and an end, got 1 value(s)");
  EXPECT_EQ(complaint_about_depths(torch::zeros({0}, float64)),
            "`depths` needs a start and an end, got 0 value(s)");
}

TEST(BadDepths, ThatTurnRoundAreNamed) {
  EXPECT_EQ(complaint_about_depths(torch::tensor({0.0, 0.7, 0.5, 1.0}, float64)),
            "`depths` must go one way from 0 to 1, got 0.5 after 0.7; sort them");
}

TEST(BadDepths, ThatAreNotFiniteAreNamed) {
  EXPECT_EQ(complaint_about_depths(torch::tensor({0.0, double(NAN)}, float64)),
            "`depths` must be finite, got nan at place 1");
}

class OtherParameterTypes : public EverySensitivity {};
INSTANTIATE_TEST_SUITE_P(By, OtherParameterTypes, ::testing::ValuesIn(all_sensitivities()), name_of);

TEST_P(OtherParameterTypes, OfAFloat32ParameterUnderAFloat64StateGetTheirOwnTypeBack) {
  const Tensor theta = torch::full({2}, 0.5, torch::kFloat32).requires_grad_();
  const VectorField field{.rate = [theta](const Tensor&, const Tensor& z) { return -theta * z; },
                          .parameters = {theta}};
  const Solution solution = solve(field, ones, {0.0, 0.4, 1.0}, adaptive(dopri5(), 1e-8), sensitivity());
  const Tensor given = gradient(solution.states[-1].sum(), theta);
  EXPECT_EQ(given.scalar_type(), torch::kFloat32);
  EXPECT_LT(distance(given.to(float64), torch::full({2}, -4 * std::exp(-0.5), float64)), 1e-5);
}

}  // namespace
}  // namespace fathom::testing
