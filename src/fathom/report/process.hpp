/// Running another program. Internal.
#pragma once

#include <string>
#include <vector>

namespace fathom::report {

/// Where the program is, or nothing.
std::string found_program(const std::string& name);

/// Runs the program without a shell and with the given text as its input; its output is dropped. Throws Error with the end of what it said
/// on stderr when it fails.
void run_program(const std::vector<std::string>& arguments, const std::string& input = {});

}  // namespace fathom::report
