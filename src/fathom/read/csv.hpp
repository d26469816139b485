/// Records of a CSV or TSV file, one at a time, in memory that does not grow with the file.
///
///   CsvReader csv(*source);
///   while (csv.next()) csv.fields()[0];
///
/// As RFC 4180 has it: a field may stand in quotes and then contain separators, line ends and doubled quotes. Lines end with LF, CRLF or
/// CR; empty ones are skipped; a byte order mark is skipped. A quote inside an unquoted field is an ordinary character.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/read/byte_source.hpp"

namespace fathom {

struct CsvOptions {
  std::optional<char> separator = {};  ///< default: the most frequent of , ; tab | in the first line
  std::size_t column_limit = 100000;
  std::size_t record_limit = std::size_t{4}
                             << 20;  ///< bytes of a record; more is taken for a quote never closed
};

class CsvReader {
 public:
  explicit CsvReader(ByteSource& source, const CsvOptions& options = {});

  /// Goes to the next record; false when there is none.
  bool next();

  /// Of the record; valid until next().
  std::span<const std::string_view> fields() const { return fields_; }
  /// Where the record starts in the file, from 1.
  std::size_t line() const { return record_line_; }
  char separator() const { return separator_; }

 private:
  enum class Stop { field, record };

  bool refill();
  bool at_end() { return begin_ == buffer_end_ && !refill(); }
  void skip_mark();
  char guess_separator() const;
  void read_record();
  Stop plain_field();
  Stop quoted_field();
  Stop take_stop();
  void append(const char* from, const char* to);

  ByteSource& source_;
  CsvOptions options_;
  std::vector<char> buffer_;
  const char* begin_ = nullptr;  // of what is not yet read in the buffer
  const char* buffer_end_ = nullptr;
  char separator_ = ',';
  std::array<bool, 256> stops_ = {};  // characters that need a look in an unquoted field

  std::string text_;                      // the fields of the record, one after the other
  std::vector<std::size_t> ends_;         // where each field ends in text_
  std::vector<std::string_view> fields_;  // views into text_
  bool quoted_ = false;                   // the record has a quoted field
  std::size_t line_ = 1;
  std::size_t record_line_ = 1;
};

}  // namespace fathom
