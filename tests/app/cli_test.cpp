/// The command line as a person meets it: what it prints, where, and with which exit code.
#include <gtest/gtest.h>

#include <string>

#include "support/plain/command_line.hpp"

namespace {

using fathom::testing::Outcome;

Outcome fathom(const std::string& arguments) { return ::fathom::testing::run(arguments); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CommandLine, HelpNamesEverySubcommandAndGivesExamples) {
  const Outcome help = fathom("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* word : {"run", "list", "gallery", "gradcheck", "solvers", "Examples:"})
    EXPECT_TRUE(contains(help.output, word)) << word;
}

TEST(CommandLine, EverySubcommandExplainsItself) {
  for (const char* command : {"run", "list", "gradcheck", "solvers", "train", "predict", "forecast", "sample",
                              "inspect", "completion"}) {
    const Outcome help = fathom(std::string(command) + " --help");
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_TRUE(contains(help.output, "Usage:")) << help.output;
  }
}

TEST(CommandLine, ListShowsTheExperiments) {
  const Outcome list = fathom("list");
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_TRUE(contains(list.output, "annuli"));
}

TEST(CommandLine, AnUnknownExperimentNamesTheNearestOne) {
  const Outcome outcome = fathom("run anuli");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.output, "did you mean `annuli`?")) << outcome.output;
}

TEST(CommandLine, AnUnknownFlagNamesTheNearestOne) {
  const Outcome outcome = fathom("run annuli --sed 3");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.output, "unknown flag `--sed`; did you mean `--seed`?")) << outcome.output;
}

TEST(CommandLine, AnUnknownCommandNamesTheNearestOne) {
  const Outcome outcome = fathom("rum annuli");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.output, "unknown command `rum`; did you mean `run`?")) << outcome.output;
}

TEST(CommandLine, ABadNumberIsExplainedInOneLine) {
  const Outcome outcome = fathom("run annuli --seeds -3");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.output, "--seeds")) << outcome.output;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  const Outcome word = fathom("run annuli --seed x");
  EXPECT_EQ(word.exit_code, 2);
  EXPECT_TRUE(contains(word.output, "`--seed` needs a number, got `x`")) << word.output;
}

TEST(CommandLine, GradcheckPassesRightGradients) {
  const Outcome outcome = fathom("gradcheck --gradient discrete");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "All gradients agree")) << outcome.output;
}

TEST(CommandLine, GradcheckFailsOnAWrongGradient) {
  for (const char* gradient : {"discrete", "adjoint", "interpolated-adjoint", "unrolled"}) {
    const Outcome outcome = fathom(std::string("gradcheck --field wrong --gradient ") + gradient);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, "WRONG")) << outcome.output;
  }
}

}  // namespace
