#include "fathom/support/nearest.hpp"

#include <gtest/gtest.h>

namespace fathom {
namespace {

const std::vector<std::string> names = {"euler", "midpoint", "rk4", "dopri5", "tsit5", "dop853"};

TEST(EditDistance, IsZeroOnlyForEqualWords) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("dopri5", "dopri5"), 0u);
  EXPECT_EQ(edit_distance("dopri5", "dopri4"), 1u);
}

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwapsAsOneEach) {
  EXPECT_EQ(edit_distance("dopri", "dopri5"), 1u);
  EXPECT_EQ(edit_distance("dopri5", "dopr5"), 1u);
  EXPECT_EQ(edit_distance("tsit5", "tsut5"), 1u);
  EXPECT_EQ(edit_distance("eluer", "euler"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "rk4"), 3u);
}

TEST(EditDistance, IsSymmetric) {
  for (const std::string& a : names) {
    for (const std::string& b : names) EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << ' ' << b;
  }
}

TEST(Nearest, FindsTheNameThatWasMeant) {
  EXPECT_EQ(nearest("dopri", names), "dopri5");
  EXPECT_EQ(nearest("tist5", names), "tsit5");
  EXPECT_EQ(nearest("midpiont", names), "midpoint");
  EXPECT_EQ(nearest("rk", names), "rk4");
  EXPECT_EQ(nearest("rkk4", names), "rk4");
}

TEST(Nearest, CompletesABeginningHoweverShort) {
  EXPECT_EQ(nearest("m", names), "midpoint");
  EXPECT_EQ(nearest("dop8", names), "dop853");
}

TEST(Nearest, IsNothingWhenLessThanHalfIsShared) {
  EXPECT_FALSE(nearest("backward", names));
  EXPECT_FALSE(nearest("xy", {"ab"}));
  EXPECT_FALSE(nearest("xyz", names));
  EXPECT_FALSE(nearest("anything", {}));
  EXPECT_FALSE(nearest("", {"rk4"}));
}

TEST(DidYouMean, IsTheTailOfAnErrorMessage) {
  EXPECT_EQ(did_you_mean("dopri", names), "; did you mean `dopri5`?");
  EXPECT_EQ(did_you_mean("backward", names), "");
}

}  // namespace
}  // namespace fathom
