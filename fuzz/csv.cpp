/// Tables: every policy for missing values, whole and in chunks, must agree on what the file says.
#include <cmath>
#include <memory>

#include "fathom/read/table_reader.hpp"
#include "support/harness.hpp"

namespace fathom::fuzz {

namespace {

std::unique_ptr<ByteSource> source(std::string_view input) {
  return std::make_unique<MemorySource>("input", input);
}

void check_table(const Table& table, Missing missing) {
  check(table.rows > 0 && !table.columns.empty(), "a table has rows and columns");
  for (const Column& column : table.columns) {
    check(column.values.size() == table.rows, "a column has a value a row");
    for (const double value : column.values) {
      if (std::isnan(value)) {
        check(missing == Missing::keep, "missing values are kept only when asked for");
      } else if (column.type == ColumnType::number) {
        check(std::isfinite(value), "numbers are finite");
      } else {
        check(value >= 0 && value < double(column.levels.size()), "a value is the place of a level");
      }
    }
  }
}

void compare_chunks(std::string_view input, const Table& whole, const TableOptions& options) {
  TableReader reader(source(input), options);
  std::size_t row = 0;
  while (const auto chunk = reader.next(3)) {
    check_table(*chunk, options.missing);
    for (std::size_t c = 0; c < whole.columns.size(); ++c) {
      const Column &part = chunk->columns[c], &all = whole.columns[c];
      for (std::size_t i = 0; i < chunk->rows; ++i) {
        const double one = part.values[i], other = all.values[row + i];
        const bool category = part.type == ColumnType::category && !std::isnan(one);
        check(category ? part.levels[std::size_t(one)] == all.levels[std::size_t(other)]
                       : one == other || (std::isnan(one) && std::isnan(other)),
              "chunks say the same as the whole");
      }
    }
    row += chunk->rows;
  }
  check(row == whole.rows, "chunks have all rows");
}

}  // namespace

void read_input(std::string_view input) {
  for (const Missing missing : {Missing::keep, Missing::drop_row, Missing::refuse}) {
    const TableOptions options{
        .csv = {.column_limit = 1000, .record_limit = 10000}, .missing = missing, .level_limit = 100};
    const Table table = read_table(source(input), options);
    check_table(table, missing);
    if (missing == Missing::keep) {
      compare_chunks(input, table, options);
      with_indicators(table);
    }
  }
}

}  // namespace fathom::fuzz
