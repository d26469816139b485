/// `fathom list`: what can be run, and with which settings.
#include <iomanip>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "experiments/experiment.hpp"
#include "fathom/report/page.hpp"
#include "names.hpp"

namespace fathom::app {

namespace {

void list_all() {
  for (const auto& experiment : experiments::all_experiments()) {
    std::cout << std::left << std::setw(20) << experiment.name << std::setw(5) << experiment.id
              << experiment.summary << "\n";
  }
  std::cout << "\nRun one with `fathom run NAME`, see its settings with `fathom list NAME`.\n";
}

void list_settings(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& experiment : experiments::all_experiments()) names.push_back(experiment.name);
  checked_name("experiment", name, names);
  for (const auto& experiment : experiments::all_experiments()) {
    if (experiment.name != name) continue;
    std::cout << experiment.id << "  " << experiment.title << "\n" << experiment.claim << "\n\n";
    std::cout << std::left << std::setw(22) << "setting" << std::right << std::setw(9) << "--quick"
              << std::setw(9) << "default" << std::setw(9) << "--paper"
              << "\n";
    for (const auto& setting : experiment.settings) {
      std::cout << std::left << std::setw(22) << setting.name << std::right << std::setw(9)
                << report::readable(setting.quick) << std::setw(9) << report::readable(setting.standard)
                << std::setw(9) << report::readable(setting.paper) << "  " << setting.meaning << "\n";
    }
    for (const auto& choice : experiment.choices) {
      std::cout << std::left << std::setw(22) << "--" + choice.name << choice.usual << "  " << choice.meaning;
      for (const std::string& value : choice.values)
        std::cout << (&value == &choice.values.front() ? ": " : ", ") << value;
      std::cout << "\n";
    }
  }
}

}  // namespace

void add_list(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("list", "The experiments that `fathom run` knows, and their settings");
  command->add_option("name", *name, "Show the settings of this experiment");
  command->footer("Examples:\n  fathom list\n  fathom list annuli");
  command->callback([name] { name->empty() ? list_all() : list_settings(*name); });
}

}  // namespace fathom::app
