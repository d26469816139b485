/// `fathom run`, `fathom list` and `fathom gallery` as a person meets them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/plain/command_line.hpp"
#include "support/plain/files.hpp"

namespace {

using fathom::testing::Outcome;

Outcome fathom(const std::string& arguments) { return ::fathom::testing::run(arguments); }

std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("fathom run test " + std::to_string(getpid())) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder.parent_path());
  return folder;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool is_one_line(const std::string& text) { return std::count(text.begin(), text.end(), '\n') == 1; }

nlohmann::json metrics_in(const std::filesystem::path& folder) {
  std::ifstream file(folder / "metrics.json");
  return nlohmann::json::parse(file);
}

/// Everything that takes time made small.
const std::string tiny = "run annuli --quick --quiet --set iterations=2 --set batch=16 --out ";

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

TEST(RunCommand, LeavesMetricsLogModelsAndPage) {
  const auto folder = fresh_folder("run with spaces");
  const Outcome outcome = fathom(tiny + quoted(folder));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* word : {"accuracy", "NFE", "parameters", "hold", "report.html"})
    EXPECT_TRUE(contains(outcome.output, word)) << word << "\n" << outcome.output;
  const nlohmann::json metrics = metrics_in(folder);
  EXPECT_EQ(metrics.at("experiment"), "annuli");
  EXPECT_EQ(metrics.at("size"), "quick");
  EXPECT_EQ(metrics.at("models").at("vanilla").at("parameters"), 165);
  EXPECT_EQ(metrics.at("models").at("data-controlled").at("parameters"), 229);
  ASSERT_EQ(metrics.at("verdicts").size(), 4u);
  for (const char* key : {"claim", "value", "threshold", "holds"})
    EXPECT_TRUE(metrics.at("verdicts")[0].contains(key)) << key;
  for (const char* file :
       {"metrics.jsonl", "report.html", "vanilla.safetensors", "data-controlled.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(folder / file)) << file;
}

TEST(RunCommand, TheSameSeedGivesTheSameFigures) {
  const auto read = [](const std::filesystem::path& folder) {
    nlohmann::json metrics = metrics_in(folder);
    for (auto& model : metrics["models"]) model.erase("seconds");
    return metrics;
  };
  const auto one = fresh_folder("one"), two = fresh_folder("two");
  ASSERT_EQ(fathom(tiny + quoted(one) + " --seed 5").exit_code, 0);
  ASSERT_EQ(fathom(tiny + quoted(two) + " --seed 5").exit_code, 0);
  EXPECT_EQ(read(one), read(two));
}

TEST(RunCommand, SeveralSeedsGiveMeansAndDeviations) {
  const auto folder = fresh_folder("seeds");
  const Outcome outcome = fathom(tiny + quoted(folder) + " --seeds 2 --seed 3");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const nlohmann::json both = metrics_in(folder), first = metrics_in(folder / "seed-3"),
                       second = metrics_in(folder / "seed-4");
  const auto loss = [](const nlohmann::json& metrics) {
    return metrics.at("models").at("vanilla").at("loss").get<double>();
  };
  EXPECT_NE(loss(first), loss(second));
  EXPECT_NEAR(loss(both), (loss(first) + loss(second)) / 2, 1e-12);
  EXPECT_TRUE(both.at("models").at("vanilla").contains("loss deviation"));
  EXPECT_TRUE(contains(both.at("verdicts")[0].at("claim"), "of 2 seeds)"));
}

TEST(RunCommand, SolverAndGradientCanBeChosen) {
  const auto folder = fresh_folder("solver");
  const Outcome outcome = fathom(tiny + quoted(folder) + " --solver bosh3 --gradient adjoint");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const Outcome unknown = fathom(tiny + quoted(folder) + " --solver dopri");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(contains(unknown.output, "did you mean `dopri5`?")) << unknown.output;
}

TEST(RunCommand, AnUnknownSettingNamesTheNearestOne) {
  const Outcome outcome = fathom("run annuli --set iteration=3 --out " + quoted(fresh_folder("unknown")));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.output, "`annuli` has no setting `iteration`; did you mean `iterations`?"))
      << outcome.output;
  EXPECT_TRUE(is_one_line(outcome.output)) << outcome.output;
}

TEST(RunCommand, ASettingWithoutANumberIsExplained) {
  for (const char* words : {"iterations", "iterations=", "iterations=many"}) {
    const Outcome outcome =
        fathom("run annuli --set " + std::string(words) + " --out " + quoted(fresh_folder("number")));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_TRUE(contains(outcome.output, "--set needs KEY=VALUE with a number")) << outcome.output;
  }
}

TEST(RunCommand, QuickAndPaperExcludeEachOther) {
  const Outcome outcome = fathom("run annuli --quick --paper");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(is_one_line(outcome.output)) << outcome.output;
}

TEST(RunCommand, AnInterruptedRunIsSaidAndReplaced) {
  const auto folder = fresh_folder("interrupted");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "metrics.jsonl") << "{\"model\": \"vanilla\", \"iterat";
  const Outcome outcome = fathom(tiny + quoted(folder));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "holds a run that was interrupted; it is replaced by this one"))
      << outcome.output;
  EXPECT_EQ(metrics_in(folder).at("experiment"), "annuli");
}

TEST(RunCommand, AnOutputFolderThatCannotBeMadeIsSaidBeforeTheWork) {
  const auto file = fresh_folder("in the way");
  std::ofstream(file) << "a file";
  const Outcome outcome = fathom("run annuli --out " + quoted(file));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.output, "cannot make the run folder")) << outcome.output;
  EXPECT_TRUE(is_one_line(outcome.output)) << outcome.output;
}

/// A folder of small images, in quotes.
std::string images_folder() {
  const auto folder = fresh_folder("images");
  std::filesystem::create_directories(folder);
  for (const auto& [name, content] : fathom::testing::small_images(40, 20, 10))
    std::ofstream(folder / name, std::ios::binary) << content;
  return quoted(folder);
}

const std::string tiny_images =
    "run images --quick --quiet --train-images 32 --test-images 20 --side 8 --epochs 1 --set tolerance=1e-3 ";

TEST(RunImages, LeavesTheTableOfThePaperBesideOurs) {
  const auto folder = fresh_folder("table");
  const Outcome outcome =
      fathom(tiny_images + "--model il --data " + images_folder() + " --out " + quoted(folder));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(metrics_in(folder).at("models").at("IL-NODE").at("parameters"), 20686);
  EXPECT_NEAR(metrics_in(folder).at("models").at("IL-NODE").at("share of the paper's training").get<double>(),
              32.0 / (20 * 60000), 1e-12);
  const std::string page = fathom::testing::content(folder / "report.html");
  for (const char* part : {"99.1", "share of paper", "plain CNN", "linear"})
    EXPECT_TRUE(contains(page, part)) << part;
}

TEST(RunImages, StopsAtItsBudgetAndSaysWhatShareItDid) {
  const auto folder = fresh_folder("budget");
  const Outcome outcome = fathom(tiny_images + "--set epochs=1000000 --budget 1s --model il --data " +
                                 images_folder() + " --out " + quoted(folder));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const double epochs = metrics_in(folder).at("models").at("IL-NODE").at("epochs").get<double>();
  EXPECT_GT(epochs, 0);
  EXPECT_LT(epochs, 100000);
}

TEST(RunImages, GoesOnWhereItWasKilled) {
  const auto folder = fresh_folder("killed");
  const std::string command =
      tiny_images + "--model il --data " + images_folder() + " --out " + quoted(folder);
  ASSERT_EQ(fathom(command).exit_code, 0);
  const nlohmann::json whole = metrics_in(folder);
  for (const char* file : {"metrics.json", "report.html", "plain-CNN.checkpoint"})
    std::filesystem::remove(folder / file);
  const Outcome resumed = fathom(command + " --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(metrics_in(folder).at("models").at("IL-NODE"), whole.at("models").at("IL-NODE"))
      << "its seconds too";
  EXPECT_TRUE(std::filesystem::exists(folder / "report.html"));
  const Outcome other = fathom(command + " --resume --seed 7");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.output, "holds a run with other settings")) << other.output;
}

TEST(RunImages, SaysInOneSentenceWhatIsWrongWithTheImages) {
  const auto refused = [](const std::string& data) {
    const Outcome outcome =
        fathom(tiny_images + "--data " + data + " --out " + quoted(fresh_folder("refused")));
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
    EXPECT_NE(outcome.exit_code, 0);
    return outcome.output;
  };
  EXPECT_TRUE(contains(refused("mnits"), "unknown data set `mnits`; did you mean `mnist`?"));
  const auto folder = fresh_folder("broken images");
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(contains(refused(quoted(folder)), "no images in"));
  for (const auto& [name, content] : fathom::testing::small_images(40, 20, 10))
    std::ofstream(folder / name, std::ios::binary) << content.substr(0, content.size() - 1);
  EXPECT_TRUE(contains(refused(quoted(folder)), "ends early"));
}

TEST(RunImages, RefusesADurationWithoutAUnitOfTime) {
  for (const char* budget : {"soon", "3x", "-5m", "0"}) {
    const Outcome outcome = fathom("run images --budget " + std::string(budget));
    EXPECT_EQ(outcome.exit_code, 2) << budget;
    EXPECT_TRUE(contains(outcome.output, "--budget")) << outcome.output;
  }
}

TEST(ListCommand, ShowsTheSettingsOfAnExperiment) {
  const Outcome outcome = fathom("list tracking");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* word : {"E1", "iterations", "--quick", "--paper", "4096"})
    EXPECT_TRUE(contains(outcome.output, word)) << word;
  EXPECT_EQ(fathom("list trackin").exit_code, 2);
}

TEST(GalleryCommand, WritesWhatTheRunsFound) {
  const auto runs = fresh_folder("gallery"), docs = fresh_folder("docs");
  ASSERT_EQ(fathom(tiny + quoted(runs / "annuli")).exit_code, 0);
  const Outcome outcome = fathom("gallery " + quoted(runs) + " --docs " + quoted(docs));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  std::ifstream file(docs / "verdicts.md");
  const std::string verdicts((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(contains(verdicts, "| claim | threshold | quick |")) << verdicts;
  EXPECT_TRUE(contains(verdicts, "one closed disc")) << verdicts;
  EXPECT_TRUE(contains(verdicts, "Seeds: quick, 0.")) << verdicts;
  EXPECT_TRUE(std::filesystem::exists(docs / "gallery.md"));
}

TEST(GalleryCommand, AMissingFolderIsOneSentence) {
  const Outcome outcome = fathom("gallery " + quoted(fresh_folder("nowhere")));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.output, "no run folder")) << outcome.output;
  EXPECT_TRUE(is_one_line(outcome.output)) << outcome.output;
}

}  // namespace
