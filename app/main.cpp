/// The command line of fathom: `fathom --help`.
#include <iostream>

#include "commands.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/nearest.hpp"

namespace {

using namespace fathom;

/// Every subcommand or flag that could have been meant where parsing stopped.
std::vector<std::string> known_words(const CLI::App& app, bool flags) {
  std::vector<std::string> words;
  if (!flags) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      words.push_back(command->get_name());
    }
    return words;
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

/// "fathom run" for the subcommand `run`.
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent ? full_name(*parent) + " " + command.get_name() : command.get_name();
}

/// What is wrong, and what is required; all values that are converted are numbers.
std::string reason_of(const CLI::ParseError& error) {
  constexpr std::string_view beginning = "Could not convert: ", middle = " = ";
  const std::string said = error.what();
  const std::size_t at = said.find(middle);
  if (!said.starts_with(beginning) || at == std::string::npos) return said;
  return "`" + said.substr(beginning.size(), at - beginning.size()) + "` needs a number, got `" +
         said.substr(at + middle.size()) + "`";
}

/// CLI11 says "The following argument was not expected"; this says what was meant.
int explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const auto extras = command.remaining();
  if (extras.empty()) {
    std::cerr << "fathom: " << reason_of(error) << "; see `" << full_name(command) << " --help`\n";
    return app::usage_error;
  }
  const std::string word = extras.front().substr(0, extras.front().find('='));
  const bool flag = word.starts_with("-");
  const std::string meant = did_you_mean(word, known_words(command, flag));
  std::cerr << "fathom: unknown " << (flag ? "flag" : "command") << " `" << word << "`" << meant
            << (meant.empty() ? "; see `" : " See `") << full_name(command) << " --help`\n";
  return app::usage_error;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("fathom: train, run and inspect Neural ODEs.\n", "fathom");
  app.set_version_flag("--version", "fathom " FATHOM_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer(
      "Examples:\n"
      "  fathom train iris.csv --label species\n"
      "                                  a model from a table; then predict, forecast, sample\n"
      "  fathom list                     what can be run\n"
      "  fathom run annuli --quick       concentric rings, four models, one page to look at\n"
      "  fathom view                     look at the runs in a browser\n"
      "  fathom gradcheck                are the gradients right on this machine?\n"
      "  fathom solvers                  the Runge-Kutta methods and their orders\n\n"
      "Exit codes: 0 done, 1 failed or a check failed, 2 the command was not understood, 130 interrupted.");
  int exit_code = fathom::app::success;
  fathom::app::add_list(app);
  fathom::app::add_run(app);
  fathom::app::add_view(app);
  fathom::app::add_figures(app);
  fathom::app::add_gallery(app);
  fathom::app::add_gradcheck(app, exit_code);
  fathom::app::add_solvers(app);
  fathom::app::add_data(app);
  fathom::app::add_train(app, exit_code);
  fathom::app::add_predict(app);
  fathom::app::add_forecast(app);
  fathom::app::add_sample(app);
  fathom::app::add_inspect(app);
  fathom::app::add_completion(app);
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  } catch (const fathom::InvalidArgument& error) {
    std::cerr << "fathom: " << error.what() << "\n";
    return fathom::app::usage_error;
  } catch (const std::exception& error) {
    std::cerr << "fathom: " << error.what() << "\n";
    return fathom::app::failure;
  }
}
