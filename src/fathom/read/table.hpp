/// A table in memory: columns of numbers and of categories.
///
///   const Table iris = read_table("iris.csv", {.categories = {"species"}});      // read/table_reader.hpp
///   iris.column("petal length").values;       // one number a row
///   iris.column("species").levels;            // {"setosa", "versicolor", "virginica"}
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

enum class ColumnType { number, category };

struct Column {
  std::string name = {};
  ColumnType type = ColumnType::number;
  std::vector<double> values = {};       ///< numbers, or places in `levels`; NaN where missing
  std::vector<std::string> levels = {};  ///< the different values of a category
};

struct Table {
  std::string source = {};  ///< how errors call it, usually a path
  std::size_t rows = 0;
  std::vector<Column> columns = {};

  std::vector<std::string> names() const;
  bool has(std::string_view name) const;
  /// Throws InvalidArgument that names the nearest column.
  const Column& column(std::string_view name) const;
};

/// The place of a column among the names of a source; throws InvalidArgument that names the nearest one.
std::size_t column_place(std::string_view name, const std::vector<std::string>& names,
                         std::string_view source);

/// The levels of a column of class labels, after checking that no label is missing and that there are at least two classes.
const std::vector<std::string>& class_levels(const Table& table, std::string_view name);

/// Sorts the levels of a category, as numbers if all of them are, and renumbers its values.
void sort_levels(Column& column);

/// Each category becomes one column of 0 and 1 for each of its levels, called `name=level`; numbers stay.
Table with_indicators(const Table& table);

}  // namespace fathom
