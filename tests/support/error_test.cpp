#include "fathom/support/error.hpp"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(Require, DoesNothingWhenTheConditionHolds) { EXPECT_NO_THROW(require(true, "never read")); }

TEST(Require, ThrowsItsPartsAsOneMessage) {
  try {
    require(false, "`depths` needs a start and an end, got ", 1, " value(s) at ", 0.5);
    FAIL() << "must throw";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "`depths` needs a start and an end, got 1 value(s) at 0.5");
  }
}

TEST(InvalidArgument, IsAnErrorOfTheLibraryAndAStandardOne) {
  EXPECT_THROW(require(false, "x"), Error);
  EXPECT_THROW(require(false, "x"), std::runtime_error);
}

TEST(Text, WritesItsArgumentsOneAfterTheOther) {
  EXPECT_EQ(text("step ", 3, " of ", 0.25, '!'), "step 3 of 0.25!");
}

}  // namespace
}  // namespace fathom
