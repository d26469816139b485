/// The subcommands of the command line, one file each.
#pragma once

#include <CLI/CLI.hpp>

namespace fathom::app {

/// 0: done; 1: it ran and failed, or a check failed (a wrong gradient); 2: the command could not be understood;
/// 130: interrupted by Ctrl-C, what was done is saved.
enum ExitCode { success = 0, failure = 1, usage_error = 2, interrupted = 130 };

void add_run(CLI::App& app);
void add_list(CLI::App& app);
void add_view(CLI::App& app);
void add_figures(CLI::App& app);
void add_gallery(CLI::App& app);
void add_gradcheck(CLI::App& app, int& exit_code);
void add_solvers(CLI::App& app);
void add_data(CLI::App& app);
void add_train(CLI::App& app, int& exit_code);
void add_predict(CLI::App& app);
void add_forecast(CLI::App& app);
void add_sample(CLI::App& app);
void add_inspect(CLI::App& app);
void add_completion(CLI::App& app);

}  // namespace fathom::app
