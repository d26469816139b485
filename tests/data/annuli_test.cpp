#include "fathom/data/annuli.hpp"

#include <gtest/gtest.h>

#include "fathom/support/error.hpp"

namespace fathom {
namespace {

TEST(ConcentricAnnuli, HasHalfOfTheSamplesOnEachRingAtItsRadius) {
  const Labelled rings = concentric_annuli({.samples = 4001, .seed = 3});
  ASSERT_EQ(rings.inputs.sizes(), (std::vector<std::int64_t>{4001, 2}));
  EXPECT_EQ((rings.labels < 0).sum().item<std::int64_t>(), 2001);
  const auto radius = rings.inputs.norm(2, 1);
  EXPECT_NEAR(radius.masked_select(rings.labels < 0).mean().item<double>(), 1.0, 0.02);
  EXPECT_NEAR(radius.masked_select(rings.labels > 0).mean().item<double>(), 2.0, 0.02);
  EXPECT_NEAR(radius.masked_select(rings.labels > 0).std().item<double>(), 0.1, 0.01);
}

TEST(ConcentricAnnuli, IsTheSameForTheSameSeedOnly) {
  const auto inputs = [](std::uint64_t seed) {
    return concentric_annuli({.samples = 16, .seed = seed}).inputs;
  };
  EXPECT_TRUE(torch::equal(inputs(1), inputs(1)));
  EXPECT_FALSE(torch::equal(inputs(1), inputs(2)));
}

TEST(ConcentricAnnuli, RefusesRingsThatAreNone) {
  EXPECT_THROW(concentric_annuli({.inner_radius = 2, .outer_radius = 1}), InvalidArgument);
  EXPECT_THROW(concentric_annuli({.samples = -1}), InvalidArgument);
  EXPECT_THROW(concentric_annuli({.noise = -1}), InvalidArgument);
}

}  // namespace
}  // namespace fathom
