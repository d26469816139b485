#include "names.hpp"

#include <algorithm>

#include "fathom/support/error.hpp"
#include "fathom/support/nearest.hpp"

namespace fathom::app {

const std::string& checked_name(const std::string& what, const std::string& name,
                                const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  std::string listed;
  for (const std::string& each : names) listed += (listed.empty() ? "" : ", ") + each;
  throw InvalidArgument(
      text("unknown ", what, " `", name, "`", did_you_mean(name, names), " (known: ", listed, ")"));
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const auto& method : ode::all_methods()) names.push_back(method.name);
  return names;
}

ode::ButcherTableau method_named(const std::string& name) {
  checked_name("solver", name, method_names());
  return *std::find_if(ode::all_methods().begin(), ode::all_methods().end(),
                       [&](const auto& method) { return method.name == name; });
}

std::vector<std::string> sensitivity_names() {
  return {"discrete", "adjoint", "interpolated-adjoint", "unrolled"};
}

Sensitivity sensitivity_named(const std::string& name) {
  checked_name("gradient", name, sensitivity_names());
  if (name == "adjoint") return Adjoint{};
  if (name == "interpolated-adjoint") return InterpolatedAdjoint{};
  if (name == "unrolled") return Unrolled{};
  return Discrete{};
}

}  // namespace fathom::app
