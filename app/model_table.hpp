/// The columns of a table that a trained model reads.
///
///   const Table table = read_for_model("new.csv", spec, {.optional = spec.targets});
///   const Tensor answers = model->predict(tensor_of(table, spec.inputs));
#pragma once

#include "task_data.hpp"

namespace fathom::app {

/// Columns to read besides the model's inputs.
struct OtherColumns {
  Words needed = {};
  Words optional = {};    ///< read where the table has them
  Words categories = {};  ///< those of them that are never numbers
};

/// The model's inputs, all of them numbers and called as the model calls them, then the others. An input `name=level` that is no column
/// itself is 1 where the category `name` has that level, and 0 elsewhere; both parts may hold further `=`.
Table read_for_model(const std::string& path, const ModelSpec& spec, const OtherColumns& others = {});

}  // namespace fathom::app
