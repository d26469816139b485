/// Parts of a data set to train, validate and test on, and the scale of its columns, which is learnt on the first part only.
///
///   const Parts<Tensor> parts = split_rows(x.size(0), {.validation = 0.2, .test = 0.2, .seed = 1}, labels);
///   const Standardisation scale = scale_of(x.index_select(0, parts.train));
///   const Tensor inputs = standardised(x.index_select(0, parts.train), scale);
#pragma once

#include <cstdint>
#include <vector>

#include "fathom/train/learn.hpp"

namespace fathom {

/// Parts that are not asked for are empty.
template <class Part> struct Parts {
  Part train = {}, validation = {}, test = {};
};

/// Fractions of the data; each part that is asked for has at least one row.
struct SplitOptions {
  double validation = 0;
  double test = 0;
  std::uint64_t seed = 0;
};

/// Throws InvalidArgument where the fractions cannot be meant.
void check(const SplitOptions& options);

/// Numbers of the rows of each part, int64, in a random order that follows from the seed. With `labels`, int64 (rows), every class is
/// in every part in the same proportion, as far as whole rows allow. Throws InvalidArgument where fewer than two are left to train on.
Parts<Tensor> split_rows(std::int64_t rows, const SplitOptions& options, const Tensor& labels = {});

/// Whole courses where there are at least five, else each course's end: the future is what a forecast is judged by. Parts of one course
/// share the observation between them.
Parts<std::vector<Course>> split_courses(const std::vector<Course>& courses, const SplitOptions& options);

/// Mean and deviation of each column of `values`, (rows, columns) float64; a column that does not vary is only shifted.
Standardisation scale_of(const Tensor& values);

}  // namespace fathom
