#include "task_data.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fathom/support/error.hpp"

namespace fathom::app {

namespace {

Task task_of(const TrainSettings& settings) {
  if (settings.task != "auto") return value_named<Task>("task", settings.task);
  if (!settings.label.empty()) return Task::classification;
  if (!settings.target.empty()) return Task::regression;
  require(!settings.time.empty(),
          "say what to learn: --label COLUMN (classification), --target COLUMN (regression), --time COLUMN "
          "(series) or "
          "--task density");
  return Task::series;
}

SplitOptions parts_of(const TrainSettings& settings) {
  return {.validation = settings.validation, .test = settings.test, .seed = settings.seed};
}

/// A flag that the task needs, or cannot use.
void check_flags(const TrainSettings& settings, Task task) {
  const auto flag = [&](const char* name, bool given, Task owner, bool needed) {
    require(!given || task == owner, "`", name, "` is for ", name_of(owner), ", but the task is ",
            name_of(task), "; leave one of them out");
    require(given || task != owner || !needed, "a ", name_of(owner), " needs `", name, "`");
  };
  flag("--label", !settings.label.empty(), Task::classification, true);
  flag("--target", !settings.target.empty(), Task::regression, true);
  flag("--time", !settings.time.empty(), Task::series, true);
  flag("--series", !settings.series.empty(), Task::series, false);
  require(settings.inputs.empty() || settings.ignore.empty(), "give `--inputs` or `--ignore`, not both");
  check(parts_of(settings));
}

/// Columns that are not inputs.
Words reserved(const TrainSettings& settings) {
  Words names = settings.target;
  for (const std::string& name : {settings.label, settings.time, settings.series}) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

Table read(const TrainSettings& settings) {
  TableOptions options{.ignore = settings.ignore};
  require(settings.missing == "refuse" || settings.missing == "drop",
          "`--missing` must be refuse or drop, got `", settings.missing, "`");
  if (settings.missing == "drop") options.missing = Missing::drop_row;
  for (const std::string& name : {settings.label, settings.series}) {
    if (!name.empty()) options.categories.push_back(name);
  }
  if (!settings.inputs.empty()) {
    options.columns = settings.inputs;
    for (const std::string& name : reserved(settings)) options.columns.push_back(name);
  }
  return read_table(settings.data, options);
}

/// The columns besides the reserved ones; categories as indicators.
Table inputs_of(const Table& table, const TrainSettings& settings) {
  const Words others = reserved(settings);
  Table inputs{.source = table.source, .rows = table.rows};
  for (const Column& column : table.columns) {
    if (std::find(others.begin(), others.end(), column.name) == others.end())
      inputs.columns.push_back(column);
  }
  require(!inputs.columns.empty(), "`", table.source, "` has no columns left to learn from");
  return with_indicators(inputs);
}

torch::ScalarType type_of(const TrainSettings& settings) {
  return value_named<Precision>("precision", settings.precision) == Precision::float32 ? torch::kFloat32
                                                                                       : torch::kFloat64;
}

void fill_rows(TaskData& data, const Table& table, const TrainSettings& settings) {
  const Table columns = inputs_of(table, settings);
  data.spec.inputs = columns.names();
  const Tensor inputs = tensor_of(columns, data.spec.inputs);
  Tensor targets;
  if (data.spec.task == Task::classification) {
    data.spec.labels = class_levels(table, settings.label);
    data.spec.targets = {settings.label};
    targets = torch::tensor(table.column(settings.label).values, torch::kFloat64).to(torch::kInt64);
  } else if (data.spec.task == Task::regression) {
    data.spec.targets = settings.target;
    for (const std::string& name : settings.target) number_column(table, name, "target");
    targets = tensor_of(table, settings.target);
  }
  const bool classes = data.spec.task == Task::classification;
  const Parts<Tensor> parts =
      split_rows(std::int64_t(table.rows), parts_of(settings), classes ? targets : Tensor());
  data.spec.input_scale = scale_of(inputs.index_select(0, parts.train));
  if (data.spec.task == Task::regression)
    data.spec.target_scale = scale_of(targets.index_select(0, parts.train));
  const auto part = [&](const Tensor& rows) -> Rows {
    if (rows.numel() == 0) return {};
    Tensor own = targets.defined() ? targets.index_select(0, rows) : Tensor();
    if (data.spec.task == Task::regression)
      own = standardised(own, data.spec.target_scale).to(type_of(settings));
    return {.inputs = standardised(inputs.index_select(0, rows), data.spec.input_scale).to(type_of(settings)),
            .targets = own};
  };
  data.rows = {part(parts.train), part(parts.validation), part(parts.test)};
}

void fill_courses(TaskData& data, const Table& table, const TrainSettings& settings) {
  const Table columns = inputs_of(table, settings);
  data.spec.inputs = columns.names();
  Table all = columns;
  for (const std::string& name : {settings.time, settings.series}) {
    if (!name.empty()) all.columns.push_back(table.column(name));
  }
  data.courses =
      split_courses(courses_of(all, data.spec.inputs, settings.time, settings.series), parts_of(settings));

  std::vector<Tensor> seen;
  double first = INFINITY, last = -INFINITY, gaps = 0, length = 0;
  for (const Course& course : data.courses.train) {
    seen.push_back(course.states);
    first = std::min(first, course.times.front());
    last = std::max(last, course.times.back());
    length += course.times.back() - course.times.front();
    gaps += double(course.times.size() - 1);
  }
  require(gaps > 0 && length > 0, "`", settings.data,
          "` has no series of two or more observations to train on");
  data.spec.input_scale = scale_of(torch::cat(seen));
  // A window is about as long as the depth of any other model.
  const double window =
      settings.window > 0 ? std::min(double(settings.window), gaps) * length / gaps : last - first;
  data.spec.time = {.column = settings.time, .origin = first, .unit = window};
  data.spec.span = {.first = 0, .last = (last - first) / window};
  for (auto* part : {&data.courses.train, &data.courses.validation, &data.courses.test}) {
    for (Course& course : *part) {
      for (double& time : course.times) time = (time - first) / window;
      course.states = standardised(course.states, data.spec.input_scale).to(type_of(settings));
    }
  }
}

}  // namespace

TaskData read_task_data(const TrainSettings& settings) {
  require(!settings.data.empty(),
          "name the table to learn from, for example `fathom train iris.csv --label species`");
  TaskData data;
  data.spec.task = task_of(settings);
  check_flags(settings, data.spec.task);
  const Table table = read(settings);
  for (const std::string& name : reserved(settings)) table.column(name);
  if (data.spec.task == Task::series)
    fill_courses(data, table, settings);
  else
    fill_rows(data, table, settings);
  return data;
}

const Column& number_column(const Table& table, const std::string& name, const char* role) {
  const Column& column = table.column(name);
  require(column.type == ColumnType::number, "the ", role, " column `", name, "` of `", table.source,
          "` must hold numbers, got text such as `", column.levels.empty() ? "" : column.levels.front(), "`");
  return column;
}

Tensor tensor_of(const Table& table, const Words& columns) {
  const Tensor tensor =
      torch::empty({std::int64_t(columns.size()), std::int64_t(table.rows)}, torch::kFloat64);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::vector<double>& values = table.column(columns[i]).values;
    std::copy(values.begin(), values.end(), tensor.data_ptr<double>() + i * table.rows);
  }
  return tensor.t().contiguous();  // (rows, columns)
}

std::vector<Course> courses_of(const Table& table, const std::vector<std::string>& columns,
                               const std::string& time, const std::string& series) {
  const Column& times = number_column(table, time, "time");
  const Column* names = series.empty() ? nullptr : &table.column(series);
  for (const std::string& name : columns) number_column(table, name, "input");
  const Tensor states = tensor_of(table, columns);
  const auto name_of_row = [&](std::size_t row) {
    return names == nullptr ? std::string() : names->levels[std::size_t(names->values[row])];
  };
  std::vector<std::int64_t> order(table.rows);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const std::size_t i = std::size_t(a), j = std::size_t(b);
    const double first = names ? names->values[i] : 0, second = names ? names->values[j] : 0;
    return first != second ? first < second : times.values[i] < times.values[j];
  });
  std::vector<Course> courses;
  std::vector<std::vector<std::int64_t>> rows;
  for (const std::int64_t row : order) {
    const std::string name = name_of_row(std::size_t(row));
    if (courses.empty() || courses.back().name != name) {
      courses.push_back({.name = name});
      rows.emplace_back();
    }
    const double now = times.values[std::size_t(row)];
    auto& earlier = courses.back().times;
    require(earlier.empty() || now > earlier.back(), "`", table.source, "` has two observations at ", time,
            " = ", now,
            names ? text(" of series `", name, "`") : "; tell several series apart with --series COLUMN");
    earlier.push_back(now);
    rows.back().push_back(row);
  }
  for (std::size_t i = 0; i < courses.size(); ++i)
    courses[i].states = states.index_select(0, torch::tensor(rows[i]));
  return courses;
}

}  // namespace fathom::app
