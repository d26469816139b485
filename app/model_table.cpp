#include "model_table.hpp"

#include <algorithm>
#include <optional>

#include "fathom/support/error.hpp"

namespace fathom::app {

namespace {

bool holds(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void add(Words& words, const std::string& word) {
  if (!holds(words, word)) words.push_back(word);
}

/// A column of numbers, or one level of a category.
struct Source {
  std::string column;
  std::optional<std::string> level = {};
};

/// The columns of the table of which `input` may be a level. A column that is an input itself holds numbers, and one that the model was to
/// find out was no input.
Words owners_of(const std::string& input, const ModelSpec& spec, const Words& present) {
  Words owners;
  for (auto at = input.find('='); at != std::string::npos; at = input.find('=', at + 1)) {
    const std::string name = input.substr(0, at);
    const bool is_other = holds(spec.inputs, name) || holds(spec.targets, name) || name == spec.time.column;
    if (holds(present, name) && !is_other) owners.push_back(name);
  }
  return owners;
}

Source source_of(const std::string& input, const ModelSpec& spec, const Words& present,
                 const std::string& path) {
  if (holds(present, input)) return {input};
  const Words owners = owners_of(input, spec, present);
  if (owners.empty()) return {input.substr(0, input.find('='))};  // the reader says that it is missing
  if (owners.size() > 1) {
    throw InvalidArgument(text("the model's input `", input, "` may be a level of column `", owners[0],
                               "` or of column `", owners[1], "` of `", path,
                               "`; leave out the one that it was not trained on"));
  }
  return {owners[0], input.substr(owners[0].size() + 1)};
}

Column indicator(const std::string& name, const Column& category, const std::string& level) {
  Column column{.name = name};
  for (const double value : category.values)
    column.values.push_back(category.levels[std::size_t(value)] == level ? 1 : 0);
  return column;
}

}  // namespace

Table read_for_model(const std::string& path, const ModelSpec& spec, const OtherColumns& others) {
  const Words present = TableReader(open_source(path)).names();
  std::vector<Source> sources;
  TableOptions options;
  for (const std::string& input : spec.inputs) {
    sources.push_back(source_of(input, spec, present, path));
    add(options.columns, sources.back().column);
    if (sources.back().level) add(options.categories, sources.back().column);
  }
  Words extra = others.needed;
  for (const std::string& name : others.optional) {
    if (holds(present, name)) add(extra, name);
  }
  for (const std::string& name : extra) {
    add(options.columns, name);
    if (holds(others.categories, name)) add(options.categories, name);
  }

  const Table read = read_table(path, options);
  Table table{.source = read.source, .rows = read.rows};
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto& [column, level] = sources[i];
    table.columns.push_back(level ? indicator(spec.inputs[i], read.column(column), *level)
                                  : number_column(read, column, "input"));
  }
  for (const std::string& name : extra) table.columns.push_back(read.column(name));
  return table;
}

}  // namespace fathom::app
