#include "fathom/read/table.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "fathom/read/numbers.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/nearest.hpp"

namespace fathom {

namespace {

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string listed;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) listed += (i ? ", " : "") + names[i];
  return listed + (names.size() > most ? ", ..." : "");
}

Column indicator(const Column& category, std::size_t level) {
  Column column{.name = category.name + "=" + category.levels[level]};
  for (double value : category.values)
    column.values.push_back(std::isnan(value) ? value : (value == double(level) ? 1 : 0));
  return column;
}

}  // namespace

std::vector<std::string> Table::names() const {
  std::vector<std::string> result;
  for (const Column& each : columns) result.push_back(each.name);
  return result;
}

bool Table::has(std::string_view name) const {
  return std::any_of(columns.begin(), columns.end(), [&](const Column& each) { return each.name == name; });
}

const Column& Table::column(std::string_view name) const {
  return columns[column_place(name, names(), source)];
}

std::size_t column_place(std::string_view name, const std::vector<std::string>& names,
                         std::string_view source) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return std::size_t(found - names.begin());
  std::vector<std::string> candidates;  // a comparison costs the product of the lengths
  std::copy_if(names.begin(), names.end(), std::back_inserter(candidates),
               [](const std::string& each) { return each.size() < 100; });
  throw InvalidArgument(text("no column `", name, "` in `", source, "`", did_you_mean(name, candidates),
                             " (columns: ", list_of(candidates), ")"));
}

const std::vector<std::string>& class_levels(const Table& table, std::string_view name) {
  const Column& column = table.column(name);
  require(column.type == ColumnType::category, "the labels in column `", name, "` of `", table.source,
          "` were read as numbers; name the column in `categories`");
  const auto gap = std::find_if(column.values.begin(), column.values.end(),
                                [](double value) { return std::isnan(value); });
  if (gap != column.values.end()) {
    throw Error(text("the label in row ", gap - column.values.begin() + 1, " of `", table.source,
                     "` is missing; drop that row"));
  }
  if (column.levels.size() < 2) {
    throw Error(text("column `", name, "` of `", table.source, "` has only 1 class (`",
                     column.levels.empty() ? "" : column.levels.front(),
                     "`); classification needs at least 2"));
  }
  return column.levels;
}

void sort_levels(Column& column) {
  // NaN would have no place in an order.
  const auto numeric = [](const std::string& level) {
    return !std::isnan(parsed_number(level).value_or(NAN));
  };
  const bool numbers = std::all_of(column.levels.begin(), column.levels.end(), numeric);
  std::vector<std::size_t> order(column.levels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const std::string &one = column.levels[a], &other = column.levels[b];
    return numbers ? *parsed_number(one) < *parsed_number(other) : one < other;
  });
  std::vector<double> place(order.size());
  std::vector<std::string> levels;
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = double(i);
    levels.push_back(std::move(column.levels[order[i]]));
  }
  column.levels = std::move(levels);
  for (double& value : column.values)
    if (!std::isnan(value)) value = place[std::size_t(value)];
}

Table with_indicators(const Table& table) {
  Table wide{.source = table.source, .rows = table.rows};
  for (const Column& column : table.columns) {
    if (column.type == ColumnType::number) wide.columns.push_back(column);
    for (std::size_t level = 0; level < column.levels.size(); ++level)
      wide.columns.push_back(indicator(column, level));
  }
  std::vector<std::string> sorted = wide.names();
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw InvalidArgument(text("`", table.source,
                               "` has a column and a level, or two levels, that would both be called `",
                               *twice, "`; rename one"));
  return wide;
}

}  // namespace fathom
