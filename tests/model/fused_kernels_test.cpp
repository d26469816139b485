/// FATHOM_KERNELS, which names the instruction set. A program reads it once for each precision, so that each is used by one
/// test here.
#include <gtest/gtest.h>

#include <cstdlib>

#include "fathom/fused/kernels.hpp"
#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

TEST(NamedKernels, ThatNobodyKnowsAreAnErrorWithTheNamesThereAre) {
  setenv("FATHOM_KERNELS", "abacus", 1);
  NeuralOde ode(autonomous(mlp({.features = {2, 3, 2}})));
  std::string names;
  for (const auto* kernels : fused::available_kernels<float>()) {
    names += text(names.empty() ? "" : ", ", kernels->name);
  }
  EXPECT_EQ(message_of([&] {
              ode->forward(torch::ones({4, 2}));
            }),
            text("FATHOM_KERNELS must be one of ", names, " on this processor, got abacus"));
}

TEST(NamedKernels, AreUsedInPlaceOfTheFastest) {
  setenv("FATHOM_KERNELS", "baseline", 1);
  EXPECT_STREQ(fused::best_kernels<double>().name, "baseline");
}

}  // namespace
}  // namespace fathom::testing
