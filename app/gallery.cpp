/// `fathom gallery`: what runs found, as documents: verdicts in a table, and a picture of each experiment.
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "commands.hpp"
#include "experiments/experiment.hpp"
#include "fathom/report/export.hpp"
#include "fathom/report/page.hpp"
#include "fathom/support/error.hpp"
#include "fathom/train/run_folder.hpp"

namespace fathom::app {

namespace {

using nlohmann::json;
using std::filesystem::path;

struct Request {
  std::vector<std::string> runs;
  std::string docs = "docs";
};

/// The metrics of every experiment that has a finished run in the folder.
std::map<std::string, json> finished_runs(const path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw Error(text("no run folder `", folder.string(), "`; make one with `fathom run all --out ",
                     folder.string(), "`"));
  std::map<std::string, json> found;
  for (const auto& experiment : experiments::all_experiments()) {
    std::ifstream file(folder / experiment.name / "metrics.json");
    if (!file) continue;
    const json metrics = json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (metrics.is_discarded() || !metrics.contains("verdicts"))
      throw Error(
          text("`", (folder / experiment.name / "metrics.json").string(), "` is not the metrics of a run"));
    found[experiment.name] = metrics;
  }
  if (found.empty()) throw Error(text("`", folder.string(), "` holds no finished run"));
  return found;
}

std::string number(const json& value) {
  return value.is_number() ? report::readable(value.get<double>()) : "-";
}

/// "accuracy (4 of 5 seeds)" -> "accuracy", "4 of 5"
std::pair<std::string, std::string> without_seeds(const std::string& claim) {
  const auto opens = claim.rfind(" (");
  if (opens == std::string::npos || !claim.ends_with(" seeds)")) return {claim, {}};
  return {claim.substr(0, opens),
          claim.substr(opens + 2, claim.size() - opens - 2 - std::string(" seeds)").size())};
}

/// A bar would end the cell of a table.
std::string cell(const std::string& words) {
  std::string result;
  for (const char c : words) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string judgement(const json& verdict) {
  const std::string seeds = without_seeds(verdict.at("claim")).second;
  const std::string word = verdict.at("holds") ? "holds" : "**does not hold**";
  return text(number(verdict.at("value")), ", ", word, seeds.empty() ? "" : " (" + seeds + " seeds)");
}

std::string verdict_table(const std::string& name, const std::vector<std::map<std::string, json>>& all) {
  std::string head = "| claim | threshold |", rule = "|---|---|", rows;
  const json* first = nullptr;
  for (const auto& runs : all) {
    const auto found = runs.find(name);
    if (found == runs.end()) continue;
    if (!first) first = &found->second;
    head += " " + found->second.at("size").get<std::string>() + " |";
    rule += "---|";
  }
  if (!first) return {};
  for (std::size_t v = 0; v < first->at("verdicts").size(); ++v) {
    const json& verdict = first->at("verdicts")[v];
    rows += text("| ", cell(without_seeds(verdict.at("claim")).first), " | ", number(verdict.at("threshold")),
                 " |");
    for (const auto& runs : all) {
      const auto found = runs.find(name);
      if (found != runs.end() && v < found->second.at("verdicts").size())
        rows += " " + judgement(found->second.at("verdicts")[v]) + " |";
    }
    rows += "\n";
  }
  return head + "\n" + rule + "\n" + rows;
}

/// "quick, 5 to 9"
std::string seeds_of(const json& metrics) {
  const std::string size = metrics.at("size").get<std::string>();
  const auto first = metrics.at("seed").get<std::uint64_t>();
  const json& verdicts = metrics.at("verdicts");
  const std::string held = verdicts.empty() ? "" : without_seeds(verdicts[0].at("claim")).second;
  if (held.empty()) return text(size, ", ", first);
  constexpr std::string_view of = " of ";
  return text(size, ", ", first, " to ", first + std::stoull(held.substr(held.find(of) + of.size())) - 1);
}

/// Those of every column, "default, 0; quick, 5 to 9".
std::string all_seeds(const std::vector<std::map<std::string, json>>& all) {
  std::set<std::string> different;
  for (const auto& runs : all)
    for (const auto& [name, metrics] : runs) different.insert(seeds_of(metrics));
  std::string listed;
  for (const std::string& each : different) listed += (listed.empty() ? "" : "; ") + each;
  return listed;
}

/// The first figure of a run's page, of the last folder that has one, drawn small beside the document.
std::optional<std::string> picture(const std::string& name, const std::vector<std::string>& folders,
                                   const path& docs) {
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    const path page = path(*folder) / name / "report.html";
    if (!std::filesystem::is_regular_file(page)) continue;
    const auto figures = report::figures_of(page);
    if (figures.empty()) continue;
    std::filesystem::create_directories(docs / "gallery");
    const auto drawn = report::export_figures(docs / "gallery", figures, report::Picture::png,
                                              {.width = 860, .scale = 1, .only = {1}});
    const path copy = path("gallery") / (name + ".png");
    std::filesystem::rename(drawn.front(), docs / copy);
    return copy.string();
  }
  return {};
}

void write_documents(const Request& request) {
  std::vector<std::map<std::string, json>> all;
  for (const std::string& folder : request.runs) all.push_back(finished_runs(folder));
  const path docs = request.docs;
  make_run_folder(docs);
  std::string verdicts = text(
      "# Verdicts\n\nWhat `./fathom run all` found, written by `./fathom gallery` from the run folders. A "
      "value is what was measured, with several seeds\n"
      "their mean. A claim over several seeds holds if it holds for at least four fifths of them. Seeds: ",
      all_seeds(all), ".\n");
  std::string gallery =
      "# Gallery\n\nOne picture of each experiment, written by `./fathom gallery`. `./fathom run NAME` makes "
      "the whole page, with a depth\n"
      "slider; the figures behind the words are in [verdicts.md](verdicts.md).\n";
  for (const auto& experiment : experiments::all_experiments()) {
    const std::string table = verdict_table(experiment.name, all);
    if (table.empty()) continue;
    const std::string title = text("\n## ", experiment.id, " ", experiment.title, "\n");
    verdicts += text(title, "`./fathom run ", experiment.name, "`\n\n", table);
    gallery += text(title, experiment.claim, "\n\n");
    if (const auto file = picture(experiment.name, request.runs, docs))
      gallery += text("![", experiment.title, "](", *file, ")\n\n");
    gallery += table;
  }
  write_atomically(docs / "verdicts.md", verdicts);
  write_atomically(docs / "gallery.md", gallery);
  std::cout << (docs / "verdicts.md").string() << "\n" << (docs / "gallery.md").string() << "\n";
}

}  // namespace

void add_gallery(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("gallery", "Write the verdicts and pictures of runs as documents");
  command->add_option("runs", request->runs, "Folders of `fathom run all --out DIR`, one column each")
      ->required();
  command->add_option("--docs", request->docs, "Where verdicts.md and gallery.md go")->capture_default_str();
  command->footer("Examples:\n  fathom gallery runs/quick runs/default");
  command->callback([request] { write_documents(*request); });
}

}  // namespace fathom::app
