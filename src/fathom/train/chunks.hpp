/// Many rows a bounded number at a time, so that a table of any length needs the memory of a part of it.
///
///   const Tensor all = in_chunks(rows.size(0), [&](std::int64_t first, std::int64_t count) {
///     return model->predict(rows.narrow(0, first, count));
///   });
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fathom/tensor/vector_field.hpp"

namespace fathom {

constexpr std::int64_t rows_at_once = 4096;  // enough to be fast, few enough for any memory

/// What `work(first, count)` gives for all `rows` in turn, joined along the first axis.
template <class Work> Tensor in_chunks(std::int64_t rows, Work&& work) {
  std::vector<Tensor> parts;
  for (std::int64_t first = 0; first == 0 || first < rows; first += rows_at_once)
    parts.push_back(work(first, std::min(rows_at_once, rows - first)));
  return parts.size() == 1 ? parts.front() : torch::cat(parts);
}

}  // namespace fathom
