#include "flags.hpp"

#include <cmath>
#include <limits>
#include <sstream>

#include "fathom/support/error.hpp"

namespace fathom::app {

namespace {

std::string flag_of(const std::string& name) { return name == "data" ? name : "--" + name; }

std::string default_text(const Words& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ",") + word;
  return joined;
}
template <class T> std::string default_text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string type_name(const std::string&) { return "TEXT"; }
std::string type_name(const Words&) { return "COLUMNS"; }
std::string type_name(double) { return "NUMBER"; }
template <class Whole> std::string type_name(Whole) { return "N"; }

struct FlagAdder {
  CLI::App& command;
  std::string title = {};

  void group(const char* name) { title = name; }
  template <class T> void operator()(const std::string& name, const T& value, const std::string& meaning) {
    CLI::Option* option = nullptr;
    if constexpr (std::is_same_v<T, bool>) {
      option = command.add_flag(flag_of(name), meaning);
    } else {
      option = command.add_option(flag_of(name), meaning);
      option->type_name(type_name(value))->default_str(default_text(value));
    }
    if (name != "data") option->group(title);
  }
};

// What a config.toml cannot hold is refused before it is needed for `--resume`: the run would have no way back to its settings.

template <class T> void check_storable(const std::string&, const T&, const std::string&) {}

void check_storable(const std::string& flag, double value, const std::string& meaning) {
  require(std::isfinite(value), "`", flag, "` must be a finite number, got ", value, " (", meaning, ")");
}

void check_storable(const std::string& flag, std::uint64_t value, const std::string&) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();  // that TOML knows
  require(value <= std::uint64_t(largest), "`", flag, "` must be from 0 to ", largest, ", got ", value);
}

struct FlagReader {
  const CLI::App& command;
  Words given = {};

  void group(const char*) {}
  template <class T> void operator()(const std::string& name, T& member, const std::string& meaning) {
    const CLI::Option* option = command.get_option(flag_of(name));
    if (option->count() == 0) return;
    given.push_back(name);
    if constexpr (std::is_same_v<T, Words>)
      member = column_list(option->as<std::string>());
    else
      member = option->as<T>();
    check_storable(flag_of(name), member, meaning);
  }
};

}  // namespace

void add_flags(CLI::App& command) {
  const TrainSettings defaults;
  describe(defaults, FlagAdder{command});
}

Words apply_flags(const CLI::App& command, TrainSettings& settings) {
  FlagReader reader{command};
  describe(settings, reader);
  return reader.given;
}

Words column_list(const std::string& words) {
  Words columns;
  std::istringstream in(words);
  for (std::string column; std::getline(in, column, ',');) columns.push_back(column);
  return columns;
}

}  // namespace fathom::app
