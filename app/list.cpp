/// `fathom list`: what can be run.
#include <iomanip>
#include <iostream>

#include "commands.hpp"
#include "experiments/experiment.hpp"

namespace fathom::app {

void add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "The experiments that `fathom run` knows");
  command->callback([] {
    for (const auto& experiment : experiments::all_experiments()) {
      std::cout << std::left << std::setw(20) << experiment.name << std::setw(5) << experiment.id
                << experiment.summary << "\n";
    }
    std::cout << "\nRun one with `fathom run NAME`.\n";
  });
}

}  // namespace fathom::app
