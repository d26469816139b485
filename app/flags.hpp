/// Settings of settings.hpp as flags of a command.
#pragma once

#include <CLI/CLI.hpp>

#include "settings.hpp"

namespace fathom::app {

/// One flag for every setting; `data` is the command's argument.
void add_flags(CLI::App& command);

/// Puts the flags that were given into the settings, and returns their names.
Words apply_flags(const CLI::App& command, TrainSettings& settings);

/// "a,b" -> {"a", "b"}
Words column_list(const std::string& words);

}  // namespace fathom::app
