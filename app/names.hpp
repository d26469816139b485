/// Names on the command line -> values of the library. Below the command line nothing is chosen by name.
#pragma once

#include <string>
#include <vector>

#include "fathom/fathom.hpp"

namespace fathom::app {

ode::ButcherTableau method_named(const std::string& name);
Sensitivity sensitivity_named(const std::string& name);

std::vector<std::string> method_names();
std::vector<std::string> sensitivity_names();

/// `name` itself if it is one of `names`; otherwise an error that lists them and names the nearest.
const std::string& checked_name(const std::string& what, const std::string& name,
                                const std::vector<std::string>& names);

}  // namespace fathom::app
