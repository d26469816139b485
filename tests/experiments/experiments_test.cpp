/// Every experiment at a tiny budget: it runs, notes what its verdicts need, draws its figures and leaves its files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/run.hpp"
#include "fathom/support/error.hpp"
#include "fathom/train/run_folder.hpp"
#include "support/plain/files.hpp"

namespace {

using namespace fathom;
using namespace fathom::experiments;

/// What takes time, as small as it goes; an experiment gets those that it has.
std::map<std::string, double> tiny(const Experiment& experiment) {
  const std::map<std::string, double> wanted = {{"iterations", 2},
                                                {"learned-iterations", 2},
                                                {"epochs", 1},
                                                {"batch", 16},
                                                {"samples", 32},
                                                {"points", 9},
                                                {"hidden", 4},
                                                {"knots", 4},
                                                {"judged-samples", 16},
                                                {"tolerance", 1e-3},
                                                {"train-images", 32},
                                                {"test-images", 20},
                                                {"side", 8}};
  std::map<std::string, double> set;
  for (const Setting& setting : experiment.settings) {
    if (const auto found = wanted.find(setting.name); found != wanted.end()) set.insert(*found);
  }
  return set;
}

std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("fathom experiments " + std::to_string(getpid())) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

/// A folder of images for those experiments that need one.
std::filesystem::path image_folder() {
  const auto folder = fresh_folder("images of ten kinds");
  for (const auto& [name, content] : fathom::testing::small_images(40, 20, 10))
    std::ofstream(folder / name, std::ios::binary) << content;
  return folder;
}

class EveryExperiment : public ::testing::TestWithParam<Experiment> {};

TEST_P(EveryExperiment, RunsAndLeavesMetricsModelsAndAPage) {
  const auto folder = fresh_folder(GetParam().name);
  experiments::Run run(GetParam(), {.size = Size::quick,
                                    .set = tiny(GetParam()),
                                    .images = image_folder(),
                                    .folder = folder,
                                    .quiet = true});
  GetParam().run(run);

  EXPECT_EQ(run.metrics().experiment, GetParam().name);
  EXPECT_EQ(run.metrics().size, "quick");
  EXPECT_FALSE(run.metrics().models.empty());
  EXPECT_FALSE(run.metrics().verdicts.empty());

  const report::Page page = run.page();
  EXPECT_EQ(page.verdicts.size(), run.metrics().verdicts.size());
  EXPECT_GE(page.sections.size(), 2u) << "what the paper shows, then the training";
  for (const report::Section& section : page.sections) {
    for (const report::Figure& figure : section.figures) {
      EXPECT_TRUE(nlohmann::json::accept(figure.specification)) << figure.caption.title;
      EXPECT_FALSE(figure.caption.idea.empty()) << figure.caption.title;
      EXPECT_FALSE(figure.caption.finding.empty()) << figure.caption.title;
    }
  }
  EXPECT_FALSE(page.sections.front().figures.empty());
  EXPECT_FALSE(page.deviations.empty()) << "a tiny run differs from the paper's and must say so";

  std::ifstream lines(folder / "metrics.jsonl");
  std::string line;
  std::set<std::string> logged;
  while (std::getline(lines, line)) logged.insert(nlohmann::json::parse(line).at("model"));
  EXPECT_FALSE(logged.empty());
  std::size_t models = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    models += file.path().extension() == ".safetensors";
  EXPECT_GE(models, 1u);
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Paper, EveryExperiment, ::testing::ValuesIn(all_experiments()),
                         [](const auto& each) {
                           std::string name = each.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Settings, AnUnknownOneNamesTheNearest) {
  try {
    check_settings(annuli(), {{"iteration", 3}});
    FAIL() << "should have been refused";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean `iterations`?"), std::string::npos)
        << error.what();
  }
}

TEST(Settings, ACountMustBeWhole) {
  experiments::Run run(annuli(), {.set = {{"batch", 1.5}}});
  EXPECT_THROW(run.count("batch"), InvalidArgument);
}

TEST(Choices, AnUnknownOneNamesTheNearest) {
  const auto message = [](const std::map<std::string, std::string>& chosen) -> std::string {
    try {
      check_choices(images(), chosen);
    } catch (const InvalidArgument& error) { return error.what(); }
    return "nothing was refused";
  };
  EXPECT_EQ(message({{"model", "anod"}}),
            "`images` has no model `anod`; did you mean `anode`? (known: all, anode, il, node, second)");
  EXPECT_EQ(message({{"modell", "anode"}}),
            "`images` has no choice `modell`; did you mean `model`? (known: data, model, velocity)");
  EXPECT_EQ(message({{"data", "a folder of mine"}}), "nothing was refused");
}

/// Everything of a run of `images` that does not depend on the clock.
std::string table_of(const std::filesystem::path& folder, std::int64_t epochs, bool resume) {
  experiments::Run run(images(), {.set = {{"train-images", 40},
                                          {"test-images", 20},
                                          {"epochs", double(epochs)},
                                          {"batch", 16},
                                          {"side", 8},
                                          {"tolerance", 1e-3}},
                                  .choose = {{"model", "il"}},
                                  .images = image_folder(),
                                  .resume = resume,
                                  .folder = folder,
                                  .quiet = true});
  images().run(run);
  RunMetrics metrics = run.metrics();
  for (ModelFigures& model : metrics.models)
    std::erase_if(model.figures, [](const auto& figure) { return figure.first == "seconds"; });
  std::string all = metrics_json(metrics);
  for (const char* model : {"IL-NODE", "linear", "plain CNN"}) {
    for (const double loss : run.course(model).losses) all += " " + std::to_string(loss);
    for (const std::int64_t count : run.course(model).evaluations) all += " " + std::to_string(count);
  }
  return all;
}

TEST(Images, AResumedRunGivesTheSameTableBitForBit) {
  const auto whole = fresh_folder("whole"), cut = fresh_folder("cut");
  const std::string wanted = table_of(whole, 4, false);
  // As a kill leaves it: IL-NODE after two of its four epochs, the others not begun, a line half written.
  table_of(cut, 2, false);
  for (const char* later : {"linear.checkpoint", "plain-CNN.checkpoint"})
    std::filesystem::remove(cut / later);
  std::filesystem::copy_file(whole / "settings.json", cut / "settings.json",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(cut / "metrics.jsonl", std::ios::app) << R"({"model":"IL-NODE","iteration":7,"lo)";
  EXPECT_EQ(table_of(cut, 4, true), wanted);
  EXPECT_EQ(table_of(cut, 4, true), wanted) << "of a finished run nothing changes";
}

TEST(Images, AResumedRunKeepsItsSettings) {
  const auto folder = fresh_folder("settings");
  table_of(folder, 1, false);
  EXPECT_THROW(table_of(folder, 2, true), InvalidArgument);
}

TEST(Images, EveryModelIsTheSameWhicheverOthersAreTrained) {
  const auto accuracy = [](const std::string& model) {
    experiments::Run run(images(), {.size = Size::quick,
                                    .set = tiny(images()),
                                    .choose = {{"model", model}},
                                    .images = image_folder(),
                                    .quiet = true});
    images().run(run);
    return run.course("IL-NODE").losses;
  };
  EXPECT_EQ(accuracy("il"), accuracy("all"));
}

TEST(Settings, ThePaperSizeHasNoDeviations) {
  for (const Experiment& each : all_experiments())
    EXPECT_TRUE(experiments::Run(each, {.size = Size::paper}).deviations().empty()) << each.name;
}

TEST(Verdicts, HoldOnTheRightSideOfTheirThreshold) {
  experiments::Run run(annuli(), {});
  run.claim_below("a", 1, 2);
  run.claim_below("b", 2, 2);
  run.claim_above("c", 2, 2);
  run.claim_above("d", 1, 2);
  run.claim_below("not a number never holds", std::nan(""), 2);
  const std::vector<ClaimVerdict>& verdicts = run.metrics().verdicts;
  EXPECT_TRUE(verdicts[0].holds);
  EXPECT_FALSE(verdicts[1].holds);
  EXPECT_TRUE(verdicts[2].holds);
  EXPECT_FALSE(verdicts[3].holds);
  EXPECT_FALSE(verdicts[4].holds);
}

}  // namespace
