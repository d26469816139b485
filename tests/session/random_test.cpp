/// The counter-based generator: the words that its authors publish, and numbers of the distributions that it claims to give.
#include "fathom/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace fathom {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, GivesThePublishedWords) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, IsAFunctionOfSeedStreamAndNumber) {
  EXPECT_EQ(Random(1, 2).bits(3), Random(1, 2).bits(3));
  EXPECT_NE(Random(1, 2).bits(3), Random(1, 2).bits(4));
  EXPECT_NE(Random(1, 2).bits(3), Random(1, 3).bits(3));
  EXPECT_NE(Random(1, 2).bits(3), Random(2, 2).bits(3));
}

struct Moments {
  double mean = 0, variance = 0, correlation = 0;
};

template <class Draw> Moments moments_of(Draw draw) {
  constexpr std::uint64_t count = 100000;
  Moments moments;
  for (std::uint64_t n = 0; n < count; ++n) moments.mean += draw(n) / double(count);
  for (std::uint64_t n = 0; n < count; ++n) {
    const double here = draw(n) - moments.mean, next = draw(n + 1) - moments.mean;
    moments.variance += here * here / double(count);
    moments.correlation += here * next / double(count);
  }
  return moments;
}

// Five standard deviations of the mean of 100,000 numbers.
TEST(Random, HasTheMomentsOfItsDistributions) {
  const Random random(7);
  const Moments uniform = moments_of([&](std::uint64_t n) { return random.uniform(n); });
  EXPECT_NEAR(uniform.mean, 0.5, 5 * 0.289 / 316);
  EXPECT_NEAR(uniform.variance, 1.0 / 12, 0.002);
  EXPECT_NEAR(uniform.correlation, 0, 5 / 12.0 / 316);
  const Moments normal = moments_of([&](std::uint64_t n) { return random.normal(n); });
  EXPECT_NEAR(normal.mean, 0, 5 / 316.0);
  EXPECT_NEAR(normal.variance, 1, 5 * 1.42 / 316);
  EXPECT_NEAR(normal.correlation, 0, 5 / 316.0);
}

TEST(Random, IsUniformInTheHalfOpenInterval) {
  const Random random(3);
  for (std::uint64_t n = 0; n < 10000; ++n) {
    const double u = random.uniform(n);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ASSERT_TRUE(std::isfinite(random.normal(n)));
  }
}

}  // namespace
}  // namespace fathom
