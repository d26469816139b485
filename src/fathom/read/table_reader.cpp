#include "fathom/read/table_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fathom/read/numbers.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

constexpr std::size_t sample_rows = 100;
constexpr std::size_t sample_fields =
    1000000;  // enough for 100 rows of 10000 columns; bounds the memory of wider ones
constexpr double missing_value = std::numeric_limits<double>::quiet_NaN();

/// A field as an error shows it.
std::string shortened(std::string_view field) {
  constexpr std::size_t longest = 40;
  return std::string(field.substr(0, longest)) + (field.size() > longest ? "..." : "");
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TableReader::TableReader(std::unique_ptr<ByteSource> source, const TableOptions& options)
    : source_(std::move(source)), options_(options), csv_(*source_, options.csv) {
  take_header();
  choose_columns();
  sample_types();
}

void TableReader::take_header() {
  if (!csv_.next()) throw Error(text("`", source_->name(), "` is empty; a table with rows is needed"));
  const auto fields = csv_.fields();
  const bool has_number = std::any_of(
      fields.begin(), fields.end(), [](std::string_view field) { return parsed_number(field).has_value(); });
  const bool header =
      options_.header == Header::present || (options_.header == Header::automatic && !has_number);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string_view name = header ? trimmed(fields[i]) : std::string_view{};
    names_.push_back(name.empty() ? text("column", i + 1) : std::string(name));
  }
  std::vector<std::string> sorted = names_;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw Error(
        text("two columns of `", source_->name(), "` are called `", shortened(*twice), "`; rename one"));
  if (!header) sampled_.push_back({csv_.line(), {fields.begin(), fields.end()}});
}

void TableReader::choose_columns() {
  for (const auto* wanted : {&options_.columns, &options_.ignore, &options_.categories}) {
    for (const std::string& name : *wanted) column_place(name, names_, source_->name());
  }
  for (std::size_t field = 0; options_.columns.empty() && field < names_.size(); ++field) {
    if (!contains(options_.ignore, names_[field])) chosen_.push_back({.field = field, .name = names_[field]});
  }
  for (const std::string& name : options_.columns) {
    if (!contains(options_.ignore, name))
      chosen_.push_back({.field = column_place(name, names_, source_->name()), .name = name});
  }
  require(!chosen_.empty(), "no column of `", source_->name(), "` is left when all are ignored");
}

/// Reads the first rows ahead and lets the majority decide whether a column has numbers.
void TableReader::sample_types() {
  std::size_t fields = 0;
  while (sampled_.size() < sample_rows && fields < sample_fields && csv_.next()) {
    sampled_.push_back({csv_.line(), {csv_.fields().begin(), csv_.fields().end()}});
    fields += csv_.fields().size();
  }
  for (Chosen& column : chosen_) {
    std::size_t present = 0, numbers = 0;
    for (const Record& record : sampled_) {
      if (column.field >= record.fields.size() || is_missing(record.fields[column.field])) continue;
      ++present;
      if (parsed_number(record.fields[column.field])) ++numbers;
    }
    const bool category = contains(options_.categories, column.name) || 2 * numbers < present;
    column.type = category ? ColumnType::category : ColumnType::number;
  }
  parsed_.resize(chosen_.size());
}

std::optional<Table> TableReader::next(std::size_t rows) {
  Table table{.source = source_->name()};
  for (const Chosen& column : chosen_) table.columns.push_back({.name = column.name, .type = column.type});
  while (table.rows < rows && next_record()) {
    if (!parse_row()) continue;
    for (std::size_t i = 0; i < parsed_.size(); ++i) table.columns[i].values.push_back(parsed_[i]);
    ++table.rows;
  }
  if (table.rows == 0) return {};
  for (std::size_t i = 0; i < chosen_.size(); ++i) table.columns[i].levels = chosen_[i].levels;
  return table;
}

bool TableReader::next_record() {
  if (!sampled_.empty()) {
    held_ = std::move(sampled_.front());
    sampled_.pop_front();
    fields_.assign(held_.fields.begin(), held_.fields.end());
    line_ = held_.line;
  } else {
    if (!csv_.next()) return false;
    fields_.assign(csv_.fields().begin(), csv_.fields().end());
    line_ = csv_.line();
  }
  ++row_;
  if (fields_.size() != names_.size()) {
    throw Error(text("row ", row_, " has ", fields_.size(), " field(s), the first row has ", names_.size(),
                     " (line ", line_, " of `", source_->name(),
                     "`); a separator inside a field needs quotes around it"));
  }
  return true;
}

/// False for a row to be dropped.
bool TableReader::parse_row() {
  // Before any field is looked at, so that a dropped row leaves no level behind.
  const auto is_gap = [&](const Chosen& column) { return is_missing(fields_[column.field]); };
  if (options_.missing == Missing::drop_row && std::any_of(chosen_.begin(), chosen_.end(), is_gap))
    return false;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    Chosen& column = chosen_[i];
    const std::string_view field = fields_[column.field];
    parsed_[i] = column.type == ColumnType::number ? number(field, column) : level(field, column);
    if (std::isnan(parsed_[i]) && options_.missing == Missing::refuse)
      refuse("missing value", column.name, "; fill it in or drop such rows");
  }
  return true;
}

double TableReader::number(std::string_view field, const Chosen& column) const {
  const auto value = parsed_number(field);
  if (value && std::isfinite(*value)) return *value;
  if (is_missing(field)) return missing_value;
  const std::string shown = text("; got `", shortened(field), "`");
  if (value) refuse("not a finite number", column.name, shown);
  refuse("not a number", column.name, shown + "; if the column has categories, say so");
}

double TableReader::level(std::string_view field, Chosen& column) {
  if (is_missing(field)) return missing_value;
  const std::string name(trimmed(field));
  const auto [place, is_new] = column.places.try_emplace(name, column.levels.size());
  if (!is_new) return double(place->second);
  if (column.levels.size() == options_.level_limit) {
    throw Error(text("column `", column.name, "` of `", source_->name(), "` has more than ",
                     options_.level_limit, " different values, too many for categories; ignore the column"));
  }
  column.levels.push_back(name);
  return double(place->second);
}

void TableReader::refuse(std::string_view what, const std::string& column, std::string_view remedy) const {
  throw Error(text(what, " in row ", row_, " column `", column, "` (line ", line_, " of `", source_->name(),
                   "`)", remedy));
}

Table read_table(std::unique_ptr<ByteSource> source, const TableOptions& options) {
  const std::string name = source->name();
  TableReader reader(std::move(source), options);
  std::optional<Table> table = reader.next(std::numeric_limits<std::size_t>::max());
  if (!table) throw Error(text("`", name, "` has a header but no rows to use"));
  for (Column& column : table->columns)
    if (column.type == ColumnType::category) sort_levels(column);
  return std::move(*table);
}

Table read_table(const std::filesystem::path& path, const TableOptions& options) {
  TableOptions chosen = options;
  const bool tabs = path.extension() == ".tsv" || path.extension() == ".tab";
  if (tabs && !chosen.csv.separator) chosen.csv.separator = '\t';
  return read_table(open_source(path), chosen);
}

}  // namespace fathom
