/// Both engines of tensors say what limits steps besides the tolerance.
#include <gtest/gtest.h>

#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

Field fast_approach(torch::ScalarType type) {
  torch::nn::Linear layer(torch::nn::LinearOptions(2, 2).bias(false));
  layer->to(type);
  const torch::NoGradGuard no_graph;
  layer->weight.copy_(torch::tensor({{-1000.0, 1000.0}, {0.0, -0.1}}, type));
  return autonomous(layer);
}

TEST(Stiffness, IsToldByTheFusedAndByTheTensorEngine) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    for (const bool fused : {true, false}) {
      for (const ode::ButcherTableau& method : {dopri5(), cash_karp54()}) {
        const AdaptiveSteps steps{.relative_tolerance = 1e-3, .absolute_tolerance = 1e-3};
        NeuralOde ode(fast_approach(type), {.solver = {.method = method, .steps = steps, .fused = fused}});
        const torch::NoGradGuard no_graph;
        ode->forward(torch::ones({5, 2}, type));
        const SolveReport report = ode->report();
        EXPECT_EQ(report.engine, fused ? "fused" : "tensor");
        ASSERT_TRUE(report.limits.stability_from) << report.brief();
        EXPECT_LT(*report.limits.stability_from, 0.5);
        EXPECT_NE(report.brief().find(", limited by stability from depth 0."), std::string::npos);
      }
    }
  }
}

TEST(Tolerance, BelowTheResolutionOfFloat32IsToldByBothEngines) {
  for (const bool fused : {true, false}) {
    const AdaptiveSteps steps{.relative_tolerance = 1e-12, .absolute_tolerance = 1e-12, .step_limit = 30};
    NeuralOde ode(fast_approach(torch::kFloat32), {.solver = {.steps = steps, .fused = fused}});
    const std::string message = message_of([&] { ode->forward(torch::ones({5, 2})); });
    EXPECT_NE(message.find("the tolerance is below the resolution of the state's type, 1.2e-07: raise "
                           "`relative_tolerance`, or solve in float64"),
              std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace fathom::testing
