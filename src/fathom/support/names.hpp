/// Names of an enumeration's values, for files and the command line.
///
///   template <> const NameTable<Task>& names<Task>();            // where the enumeration is
///   name_of(Task::density);                                      // "density"
///   value_named<Task>("task", "densty");                         // throws: ... did you mean `density`? ...
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fathom/support/error.hpp"
#include "fathom/support/nearest.hpp"

namespace fathom {

template <class Enum> using NameTable = std::vector<std::pair<Enum, std::string>>;

/// All values; specialised beside each enumeration that has names.
template <class Enum> const NameTable<Enum>& names();

template <class Enum> const std::string& name_of(Enum value) {
  for (const auto& [each, name] : names<Enum>()) {
    if (each == value) return name;
  }
  throw Error("a value of an enumeration has no name");
}

template <class Enum> std::vector<std::string> all_names() {
  std::vector<std::string> all;
  for (const auto& entry : names<Enum>()) all.push_back(entry.second);
  return all;
}

/// Throws InvalidArgument that names the nearest and lists all.
template <class Enum> Enum value_named(std::string_view what, std::string_view name) {
  for (const auto& [value, each] : names<Enum>()) {
    if (each == name) return value;
  }
  std::string listed;
  for (const std::string& each : all_names<Enum>()) listed += (listed.empty() ? "" : ", ") + each;
  throw InvalidArgument(text("unknown ", what, " `", name, "`", did_you_mean(name, all_names<Enum>()),
                             " (known: ", listed, ")"));
}

}  // namespace fathom
