#include "fathom/train/split.hpp"

#include <algorithm>
#include <cmath>

#include "fathom/support/error.hpp"
#include "fathom/train/batches.hpp"

namespace fathom {

void check(const SplitOptions& options) {
  const auto fraction = [](const char* name, double value) {
    require(value >= 0 && value < 1, "`", name, "` is a fraction of the data from 0 to 1, got ", value);
  };
  fraction("validation", options.validation);
  fraction("test", options.test);
  require(options.validation + options.test < 1, "nothing is left to train on: validation ",
          options.validation, " and test ", options.test, " are all of the data");
}

namespace {

constexpr std::size_t courses_to_split = 5;  // fewer are split in time instead

struct Sizes {
  std::int64_t validation = 0, test = 0;
};
Sizes sizes(std::int64_t count, const SplitOptions& options) {
  const auto part = [&](double fraction) {
    return fraction > 0 ? std::max<std::int64_t>(1, std::llround(fraction * double(count))) : 0;
  };
  return {part(options.validation), part(options.test)};
}

/// `order` sorted by how far through its class each row is: any stretch of it has all classes in proportion.
Tensor mixed_by_class(const Tensor& order, const Tensor& labels) {
  const Tensor shuffled = labels.index_select(0, order);
  Tensor place = torch::zeros({order.size(0)}, torch::kFloat64);
  for (std::int64_t label = 0; label <= labels.max().item<std::int64_t>(); ++label) {
    const Tensor members = (shuffled == label).nonzero().squeeze(1);
    const std::int64_t count = members.size(0);
    place.index_put_(
        {members}, (torch::arange(count, torch::kFloat64) + 0.5) / double(std::max<std::int64_t>(1, count)));
  }
  return order.index_select(0, place.argsort());
}

Course stretch(const Course& course, std::int64_t first, std::int64_t count) {
  const auto begin = course.times.begin() + first;
  return {course.name, {begin, begin + count}, course.states.narrow(0, first, count)};
}

}  // namespace

Parts<Tensor> split_rows(std::int64_t rows, const SplitOptions& options, const Tensor& labels) {
  check(options);
  const Sizes wanted = sizes(rows, options);
  const std::int64_t train = rows - wanted.validation - wanted.test;
  require(train >= 2, rows, " row(s) are too few to train on; take less for validation and test");
  Tensor order = shuffled_rows(rows, options.seed);
  if (labels.defined()) order = mixed_by_class(order, labels);
  return {.train = order.narrow(0, wanted.validation + wanted.test, train),
          .validation = order.narrow(0, wanted.test, wanted.validation),
          .test = order.narrow(0, 0, wanted.test)};
}

Parts<std::vector<Course>> split_courses(const std::vector<Course>& courses, const SplitOptions& options) {
  check(options);
  Parts<std::vector<Course>> parts;
  if (courses.size() >= courses_to_split) {
    const Sizes wanted = sizes(std::int64_t(courses.size()), options);
    require(wanted.validation + wanted.test < std::int64_t(courses.size()), courses.size(),
            " series are too few to train on; take less for validation and test");
    const Tensor order = shuffled_rows(std::int64_t(courses.size()), options.seed);
    for (std::int64_t i = 0; i < order.size(0); ++i) {
      auto& part = i < wanted.test                       ? parts.test
                   : i < wanted.test + wanted.validation ? parts.validation
                                                         : parts.train;
      part.push_back(courses[std::size_t(order[i].item<std::int64_t>())]);
    }
    return parts;
  }
  for (const Course& course : courses) {
    const auto count = std::int64_t(course.times.size());
    const Sizes wanted = sizes(count, options);
    const std::int64_t train = count - wanted.validation - wanted.test;
    require(train >= 2, "a series of ", count,
            " observations is too short to train on; take less for validation and test");
    parts.train.push_back(stretch(course, 0, train));
    if (wanted.validation > 0) parts.validation.push_back(stretch(course, train - 1, wanted.validation + 1));
    if (wanted.test > 0) parts.test.push_back(stretch(course, count - wanted.test - 1, wanted.test + 1));
  }
  return parts;
}

Standardisation scale_of(const Tensor& values) {
  require(values.dim() == 2 && values.size(0) > 0, "a scale is learnt on rows and columns, got shape ",
          values.sizes());
  const Tensor mean = values.mean(0), deviation = values.std(0, /*unbiased=*/false);
  Standardisation scale;
  for (std::int64_t i = 0; i < values.size(1); ++i) {
    scale.mean.push_back(mean[i].item<double>());
    const double spread = deviation[i].item<double>();
    scale.deviation.push_back(spread > 1e-12 * std::abs(scale.mean.back()) ? spread : 1);
  }
  return scale;
}

}  // namespace fathom
