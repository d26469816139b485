#include "settings.hpp"

#include <toml++/toml.h>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

#include "fathom/support/error.hpp"
#include "fathom/support/nearest.hpp"
#include "fathom/support/whole_file.hpp"

namespace fathom::app {

namespace {

constexpr std::uintmax_t config_limit = 1 << 20;  // bytes; a real one has two thousand

struct KeyCollector {
  Words keys = {};
  void group(const char*) {}
  template <class T> void operator()(const char* name, const T&, const char*) { keys.push_back(name); }
};

/// Puts what the file says into the settings.
struct Reader {
  const toml::table& table;
  const std::filesystem::path& file;

  void group(const char*) {}
  template <class T> void operator()(const char* name, T& member, const char*) {
    if (const toml::node* node = table.get(name)) read(name, *node, member);
  }

  [[noreturn]] void complain(const char* name, const toml::node& node, const char* wanted) const {
    throw InvalidArgument(
        text("`", name, "` in `", file.string(), "`, line ", node.source().begin.line, ", must be ", wanted));
  }
  void read(const char* name, const toml::node& node, std::string& member) const {
    const auto value = node.value_exact<std::string>();
    if (!value) complain(name, node, "text in quotes");
    member = *value;
  }
  void read(const char* name, const toml::node& node, double& member) const {
    const auto value = node.value<double>();
    if (!value || node.is_boolean() || !std::isfinite(*value)) complain(name, node, "a number");
    member = *value;
  }
  void read(const char* name, const toml::node& node, bool& member) const {
    const auto value = node.value_exact<bool>();
    if (!value) complain(name, node, "true or false");
    member = *value;
  }
  void read(const char* name, const toml::node& node, std::int64_t& member) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value) complain(name, node, "a whole number");
    member = *value;
  }
  void read(const char* name, const toml::node& node, std::uint64_t& member) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 0) complain(name, node, "a whole number that is not negative");
    member = std::uint64_t(*value);
  }
  void read(const char* name, const toml::node& node, Words& member) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) complain(name, node, "a list of texts, for example [\"a\", \"b\"]");
    member.clear();
    for (const toml::node& each : *array) {
      const auto value = each.value_exact<std::string>();
      if (!value) complain(name, each, "a list of texts, for example [\"a\", \"b\"]");
      member.push_back(*value);
    }
  }
};

std::string quoted(const std::string& value) {
  std::ostringstream out;
  out << toml::value<std::string>(value);
  return out.str();
}

/// The shortest text that reads back as the same number, with a point or exponent as TOML wants it.
std::string exact(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string number(buffer, end);
  return number.find_first_of(".e") == std::string::npos ? number + ".0" : number;
}

struct Writer {
  std::ostringstream out = {};

  void group(const char* title) { out << (out.tellp() > 0 ? "\n" : "") << "# " << title << "\n"; }
  template <class T> void operator()(const char* name, const T& member, const char*) {
    out << name << " = ";
    write(member);
    out << "\n";
  }
  void write(const std::string& value) { out << quoted(value); }
  void write(bool value) { out << (value ? "true" : "false"); }
  void write(double value) { out << exact(value); }
  void write(std::int64_t value) { out << value; }
  void write(std::uint64_t value) { out << value; }
  void write(const Words& values) {
    out << "[";
    for (std::size_t i = 0; i < values.size(); ++i) out << (i ? ", " : "") << quoted(values[i]);
    out << "]";
  }
};

}  // namespace

TrainSettings read_settings(const std::filesystem::path& file) {
  toml::table table;
  try {
    table = toml::parse(read_whole(file, config_limit));
  } catch (const toml::parse_error& error) {
    throw InvalidArgument(text("`", file.string(), "`, line ", error.source().begin.line,
                               ", is not TOML: ", error.description()));
  }
  TrainSettings settings;
  KeyCollector known;
  describe(settings, known);
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(known.keys.begin(), known.keys.end(), name) != known.keys.end()) continue;
    throw InvalidArgument(text("unknown key `", name, "` in `", file.string(), "`, line ",
                               node.source().begin.line, did_you_mean(name, known.keys)));
  }
  describe(settings, Reader{table, file});
  if (!settings.data.empty() && std::filesystem::path(settings.data).is_relative())
    settings.data = (file.parent_path() / settings.data).string();
  return settings;
}

std::string settings_text(const TrainSettings& settings) {
  Writer writer;
  writer.out << "# Reproduces this run: fathom train --config config.toml --out NEW_FOLDER\n";
  describe(settings, writer);
  return writer.out.str();
}

}  // namespace fathom::app
