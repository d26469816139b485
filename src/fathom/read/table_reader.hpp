/// Reads tables from CSV and TSV files (gzip too), whole or in chunks of bounded memory.
///
///   const Table iris = read_table("iris.csv", {.categories = {"species"}});
///
///   TableReader reader(open_source("large.csv"));
///   while (const auto chunk = reader.next(10000)) ...
///
/// A column is of numbers when at least half of its first 100 values are; a value there that is none is an error with its place.
/// Missing are: nothing at all, NA, N/A, NaN, null, None and ?, in upper or lower case.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <unordered_map>

#include "fathom/read/csv.hpp"
#include "fathom/read/table.hpp"

namespace fathom {

enum class Header {
  automatic,  ///< present when no field of the first row is a number
  present,
  absent  ///< columns are called column1, column2, ...
};

enum class Missing {
  refuse,    ///< an error that names row and column
  drop_row,  ///< the row is left out
  keep       ///< NaN in `values`
};

struct TableOptions {
  CsvOptions csv = {};
  Header header = Header::automatic;
  Missing missing = Missing::refuse;
  std::vector<std::string> columns = {};     ///< these alone and in this order; default: all
  std::vector<std::string> ignore = {};      ///< all but these
  std::vector<std::string> categories = {};  ///< never numbers, for example class labels 0 and 1
  std::size_t level_limit = 10000;           ///< more different values than this are no category
};

/// Rows in chunks. Levels are numbered as they appear and stay the same from chunk to chunk.
class TableReader {
 public:
  explicit TableReader(std::unique_ptr<ByteSource> source, const TableOptions& options = {});

  /// At most `rows` further rows; nothing at the end.
  std::optional<Table> next(std::size_t rows);

  /// Of all columns of the file, chosen or not.
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Record {
    std::size_t line = 0;
    std::vector<std::string> fields = {};
  };
  struct Chosen {
    std::size_t field = 0;  // in a record
    std::string name = {};
    ColumnType type = ColumnType::number;
    std::vector<std::string> levels = {};
    std::unordered_map<std::string, std::size_t> places = {};  // of the levels
  };

  void take_header();
  void choose_columns();
  void sample_types();
  bool next_record();
  bool parse_row();
  double number(std::string_view field, const Chosen& column) const;
  double level(std::string_view field, Chosen& column);
  [[noreturn]] void refuse(std::string_view what, const std::string& column, std::string_view remedy) const;

  std::unique_ptr<ByteSource> source_;
  TableOptions options_;
  CsvReader csv_;
  std::vector<std::string> names_;
  std::vector<Chosen> chosen_;
  std::deque<Record> sampled_;  // read ahead to find the types, not yet given out

  Record held_;                           // the record at hand, if it was sampled
  std::vector<std::string_view> fields_;  // of the record at hand
  std::size_t line_ = 0;                  // where it starts
  std::size_t row_ = 0;                   // which one it is, from 1, the header not counted
  std::vector<double> parsed_;            // its values, one a chosen column
};

/// The whole file. Levels are sorted, as numbers if all of them are.
Table read_table(const std::filesystem::path& path, const TableOptions& options = {});
Table read_table(std::unique_ptr<ByteSource> source, const TableOptions& options = {});

}  // namespace fathom
