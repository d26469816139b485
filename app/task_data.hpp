/// A table as a task sees it: which columns are what, standardised tensors of them, and their parts.
#pragma once

#include "fathom/read/table_reader.hpp"
#include "fathom/train/split.hpp"
#include "settings.hpp"

namespace fathom::app {

struct TaskData {
  ModelSpec spec;                      ///< what the data decides: task, columns, labels, scales, time
  Parts<Rows> rows;                    ///< of all tasks but series
  Parts<std::vector<Course>> courses;  ///< of a series
};

/// Reads the table of the settings and checks that it is what they say.
TaskData read_task_data(const TrainSettings& settings);

/// A column that must hold numbers; `role` says in an error what it is for.
const Column& number_column(const Table& table, const std::string& name, const char* role);

/// (rows, columns) float64
Tensor tensor_of(const Table& table, const Words& columns);

/// One observed course a level of `series` (or one in all), sorted by time, in the units of the data.
std::vector<Course> courses_of(const Table& table, const std::vector<std::string>& columns,
                               const std::string& time, const std::string& series);

}  // namespace fathom::app
