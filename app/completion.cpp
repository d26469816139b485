/// `fathom completion bash|zsh|fish`: what a shell needs to complete commands and flags, from the commands themselves.
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "names.hpp"

namespace fathom::app {

namespace {

struct Command {
  std::string name, meaning;
  std::vector<std::pair<std::string, std::string>> flags;  // with what they mean
};

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    Command command{each->get_name(), each->get_description(), {}};
    for (const CLI::Option* option : each->get_options()) {
      for (const std::string& name : option->get_lnames())
        command.flags.emplace_back("--" + name, option->get_description());
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

/// For use between single quotes in any of the shells.
std::string plain(std::string text) {
  std::replace(text.begin(), text.end(), '\'', ' ');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string bash(const std::vector<Command>& commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    names += command.name + " ";
    cases += "    " + command.name + ") words='";
    for (const auto& [flag, meaning] : command.flags) cases += flag + " ";
    cases += "' ;;\n";
  }
  return "# source <(fathom completion bash)\n"
         "_fathom() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} words=''\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         names +
         "' -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "  esac\n"
         "  if [[ $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _fathom fathom\n";
}

std::string zsh(const std::vector<Command>& commands) {
  // zsh runs bash completions as they are.
  return "# source <(fathom completion zsh)\nautoload -U +X bashcompinit && bashcompinit\n" + bash(commands);
}

std::string fish(const std::vector<Command>& commands) {
  std::string out = "# fathom completion fish | source\n";
  for (const Command& command : commands) {
    out += "complete -c fathom -n __fish_use_subcommand -a " + command.name + " -d '" +
           plain(command.meaning) + "'\n";
    for (const auto& [flag, meaning] : command.flags)
      out += "complete -c fathom -n '__fish_seen_subcommand_from " + command.name + "' -l " + flag.substr(2) +
             " -d '" + plain(meaning) + "'\n";
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "A script that completes commands and flags in your shell");
  command->add_option("shell", *shell, "bash, zsh or fish")->required();
  command->footer(
      "Examples:\n"
      "  source <(fathom completion bash)\n"
      "  fathom completion fish > ~/.config/fish/completions/fathom.fish");
  command->callback([&app, shell] {
    checked_name("shell", *shell, {"bash", "zsh", "fish"});
    const auto commands = commands_of(app);
    std::cout << (*shell == "bash" ? bash(commands) : *shell == "zsh" ? zsh(commands) : fish(commands));
  });
}

}  // namespace fathom::app
