/// `fathom solvers`: the Runge-Kutta methods, with what is derived from their coefficients.
#include <iomanip>
#include <iostream>

#include "commands.hpp"
#include "fathom/ode/methods.hpp"

namespace fathom::app {

void add_solvers(CLI::App& app) {
  CLI::App* command = app.add_subcommand("solvers", "The Runge-Kutta methods and their orders");
  command->callback([] {
    std::cout << "method        order  stages  evaluations a step  adaptive  dense output of order\n";
    for (const auto& method : ode::all_methods()) {
      const std::size_t evaluations = method.stages() - (method.first_same_as_last() ? 1 : 0);
      std::cout << std::left << std::setw(14) << method.name << std::right << std::setw(5) << method.order
                << std::setw(8) << method.stages() << std::setw(20) << evaluations << std::setw(10)
                << (method.adaptive() ? "yes" : "no") << std::setw(23) << method.dense_order << "\n";
    }
  });
}

}  // namespace fathom::app
