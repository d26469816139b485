#include "fathom/read/csv.hpp"

#include <algorithm>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 16;

}  // namespace

CsvReader::CsvReader(ByteSource& source, const CsvOptions& options)
    : source_(source), options_(options), buffer_(buffer_size) {
  refill();
  skip_mark();
  separator_ = options.separator.value_or(guess_separator());
  require(separator_ != '"' && separator_ != '\n' && separator_ != '\r' && separator_ != '\0',
          "a separator cannot be a quote or the end of a line; give a comma, semicolon or tab");
  for (char stop : {separator_, '\n', '\r', '\0'}) stops_[static_cast<unsigned char>(stop)] = true;
}

bool CsvReader::next() {
  do {
    if (at_end()) return false;
    read_record();
  } while (ends_.size() == 1 && text_.empty() && !quoted_);  // an empty line
  fields_.clear();
  std::size_t start = 0;
  for (std::size_t end : ends_) {
    fields_.push_back(std::string_view(text_).substr(start, end - start));
    start = end;
  }
  return true;
}

bool CsvReader::refill() {
  // Full, so that the first line is there in one piece to find the separator in.
  std::size_t count = 0, more = 1;
  while (count < buffer_.size() && more > 0) {
    more = source_.read(std::span(buffer_).subspan(count));
    count += more;
  }
  begin_ = buffer_.data();
  buffer_end_ = begin_ + count;
  return count > 0;
}

void CsvReader::skip_mark() {
  const std::string_view head(begin_, std::size_t(buffer_end_ - begin_));
  if (head.starts_with("\xEF\xBB\xBF")) begin_ += 3;
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF"))
    throw Error(text("`", source_.name(), "` is UTF-16, UTF-8 is needed; save it again as UTF-8"));
}

char CsvReader::guess_separator() const {
  constexpr std::string_view candidates = ",;\t|";
  std::array<std::size_t, candidates.size()> counts = {};
  bool quoted = false;
  for (const char* at = begin_; at != buffer_end_; ++at) {
    if (*at == '"') quoted = !quoted;
    if (quoted) continue;
    if (*at == '\n' || *at == '\r') break;
    if (const std::size_t which = candidates.find(*at); which != std::string_view::npos) ++counts[which];
  }
  return candidates[std::size_t(std::max_element(counts.begin(), counts.end()) - counts.begin())];
}

void CsvReader::read_record() {
  text_.clear();
  ends_.clear();
  quoted_ = false;
  record_line_ = line_;
  Stop stop = Stop::field;
  while (stop == Stop::field) {
    const bool quoted = !at_end() && *begin_ == '"';
    stop = quoted ? quoted_field() : plain_field();
    ends_.push_back(text_.size());
    if (ends_.size() > options_.column_limit) {
      throw Error(text("line ", record_line_, " of `", source_.name(), "` has more than ",
                       options_.column_limit, " fields; is the separator right?"));
    }
  }
}

CsvReader::Stop CsvReader::plain_field() {
  while (!at_end()) {
    const char* stop = begin_;
    while (stop != buffer_end_ && !stops_[static_cast<unsigned char>(*stop)]) ++stop;
    append(begin_, stop);
    begin_ = stop;
    if (stop != buffer_end_) return take_stop();
  }
  return Stop::record;
}

CsvReader::Stop CsvReader::quoted_field() {
  quoted_ = true;
  ++begin_;
  while (!at_end()) {
    const char* stop = std::find(begin_, buffer_end_, '"');
    line_ += std::size_t(std::count(begin_, stop, '\n'));
    append(begin_, stop);
    begin_ = stop;
    if (stop == buffer_end_) continue;
    ++begin_;
    if (at_end()) return Stop::record;
    if (stops_[static_cast<unsigned char>(*begin_)]) return take_stop();
    if (*begin_ != '"') {
      throw Error(text("text after a closing quote in line ", line_, " of `", source_.name(),
                       "`; a quote inside a quoted field is written twice"));
    }
    append(begin_, begin_ + 1);
    ++begin_;
  }
  throw Error(text("a quote opened in the record of line ", record_line_, " of `", source_.name(),
                   "` is never closed"));
}

/// Past the separator or the end of the line at hand.
CsvReader::Stop CsvReader::take_stop() {
  const char stop = *begin_++;
  if (stop == separator_) return Stop::field;
  if (stop == '\0') {
    throw Error(text("`", source_.name(), "` is not a text table: line ", line_, " contains a zero byte"));
  }
  if (stop == '\r' && !at_end() && *begin_ == '\n') ++begin_;
  ++line_;
  return Stop::record;
}

void CsvReader::append(const char* from, const char* to) {
  text_.append(from, to);
  if (text_.size() > options_.record_limit) {
    throw Error(text("the record that starts in line ", record_line_, " of `", source_.name(),
                     "` is longer than ", options_.record_limit >> 20,
                     " MiB; is a quote there never closed?"));
  }
}

}  // namespace fathom
