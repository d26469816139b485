/// Parts of a data set: nothing twice, nothing lost, classes in proportion, the future last.
#include "fathom/train/split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "fathom/support/error.hpp"

namespace fathom {
namespace {

std::vector<std::int64_t> values(const Tensor& tensor) {
  const Tensor local = tensor.contiguous();
  return {local.data_ptr<std::int64_t>(), local.data_ptr<std::int64_t>() + local.numel()};
}

TEST(RowsInParts, AreEachInOnePart) {
  const auto parts = split_rows(103, {.validation = 0.2, .test = 0.1, .seed = 7});
  EXPECT_EQ(parts.validation.size(0), 21);
  EXPECT_EQ(parts.test.size(0), 10);
  std::vector<std::int64_t> all = values(torch::cat({parts.train, parts.validation, parts.test}));
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> expected(103);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(RowsInParts, FollowFromTheSeed) {
  const auto train = [](std::uint64_t seed) {
    return values(split_rows(50, {.validation = 0.2, .seed = seed}).train);
  };
  EXPECT_EQ(train(3), train(3));
  EXPECT_NE(train(3), train(4));
}

TEST(RowsInParts, HaveEveryClassInProportion) {
  // 10 of class 0, 30 of class 1, 60 of class 2, in that order.
  const Tensor labels =
      torch::cat({torch::zeros({10}), torch::ones({30}), torch::full({60}, 2)}).to(torch::kInt64);
  const auto parts = split_rows(100, {.validation = 0.2, .test = 0.3, .seed = 1}, labels);
  const auto count = [&](const Tensor& part, std::int64_t label) {
    return (labels.index_select(0, part) == label).sum().item<std::int64_t>();
  };
  for (std::int64_t label = 0; label < 3; ++label) {
    const double members = (labels == label).sum().item<double>();
    EXPECT_NEAR(double(count(parts.validation, label)), 0.2 * members, 1) << label;
    EXPECT_NEAR(double(count(parts.test, label)), 0.3 * members, 1) << label;
  }
}

TEST(RowsInParts, SayWhenNothingIsLeft) {
  const auto message = [](std::int64_t rows, const SplitOptions& options) -> std::string {
    try {
      split_rows(rows, options);
    } catch (const InvalidArgument& error) { return error.what(); }
    return "nothing thrown";
  };
  EXPECT_EQ(message(3, {.validation = 0.4, .test = 0.3}),
            "3 row(s) are too few to train on; take less for validation and test");
  EXPECT_EQ(message(9, {.validation = 0.6, .test = 0.5}),
            "nothing is left to train on: validation 0.6 and test 0.5 are all of the data");
  EXPECT_EQ(message(9, {.validation = -0.1}), "`validation` is a fraction of the data from 0 to 1, got -0.1");
}

Course course(const std::string& name, std::int64_t count) {
  Course made{.name = name, .times = {}, .states = torch::arange(count, torch::kFloat64).unsqueeze(1)};
  for (std::int64_t n = 0; n < count; ++n) made.times.push_back(double(n));
  return made;
}

TEST(CoursesInParts, AreCutInTimeWhereThereAreFew) {
  const auto parts = split_courses({course("a", 20)}, {.validation = 0.2, .test = 0.1});
  // The end of one part is the start of the next.
  EXPECT_EQ(parts.train.front().times.back(), 13);
  EXPECT_EQ(parts.validation.front().times.front(), 13);
  EXPECT_EQ(parts.validation.front().times.back(), 17);
  EXPECT_EQ(parts.test.front().times.front(), 17);
  EXPECT_EQ(parts.test.front().times.back(), 19);
  EXPECT_EQ(parts.test.front().states[-1].item<double>(), 19);
}

TEST(CoursesInParts, StayWholeWhereThereAreMany) {
  std::vector<Course> many;
  for (int n = 0; n < 10; ++n) many.push_back(course(std::to_string(n), 4));
  const auto parts = split_courses(many, {.validation = 0.2, .test = 0.1, .seed = 2});
  EXPECT_EQ(parts.train.size(), 7u);
  EXPECT_EQ(parts.validation.size(), 2u);
  EXPECT_EQ(parts.test.size(), 1u);
  EXPECT_EQ(parts.test.front().times.size(), 4u);
  many.resize(5);
  EXPECT_THROW(split_courses(many, {.validation = 0.5, .test = 0.4}), InvalidArgument);
}

TEST(Scale, IsMeanAndDeviationAndLeavesConstantColumnsTheirSize) {
  const Tensor columns = torch::tensor({{1.0, 5.0}, {3.0, 5.0}}, torch::kFloat64);
  const Standardisation scale = scale_of(columns);
  EXPECT_EQ(scale.mean, (std::vector<double>{2, 5}));
  EXPECT_EQ(scale.deviation, (std::vector<double>{1, 1}));
  EXPECT_EQ(standardised(columns, scale)[1][0].item<double>(), 1);
  EXPECT_THROW(scale_of(torch::zeros({0, 2}, torch::kFloat64)), InvalidArgument);
}

}  // namespace
}  // namespace fathom
