#include "fathom/report/run_state.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

/// Without a word for longer than this, a run is taken to have ended.
constexpr auto silence = std::chrono::minutes(5);

bool is_run(const fs::path& folder) {
  return fs::is_regular_file(folder / "metrics.json") || fs::is_regular_file(folder / "metrics.jsonl");
}

void collect(const fs::path& folder, const std::string& name, int levels, std::vector<RunFolder>& runs) {
  if (is_run(folder)) runs.push_back({name, folder});
  if (levels == 0) return;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (!entry.is_directory(failed) || entry.is_symlink(failed)) continue;
    const std::string own = entry.path().filename().string();
    collect(entry.path(), name.empty() ? own : name + "/" + own, levels - 1, runs);
  }
}

json metrics_of(const fs::path& run) {
  std::ifstream file(run / "metrics.json");
  return json::parse(file, nullptr,
                     false);  // being read while it is replaced or by hand: then there is nothing to show yet
}

double number(const json& value) { return value.is_number() ? value.get<double>() : std::nan(""); }

std::vector<Verdict> verdicts_of(const json& metrics) {
  std::vector<Verdict> verdicts;
  if (!metrics.is_object() || !metrics.contains("verdicts")) return verdicts;
  for (const json& each : metrics["verdicts"]) {
    verdicts.push_back({each.value("claim", ""), number(each.value("value", json())),
                        number(each.value("threshold", json())), each.value("holds", false)});
  }
  return verdicts;
}

fs::file_time_type written(const fs::path& file) {
  std::error_code failed;
  const auto time = fs::last_write_time(file, failed);
  return failed ? fs::file_time_type::min() : time;
}

/// The models' figures, one row a model.
Table figures_table(const json& metrics) {
  Table table{.caption = {.title = "Figures"}, .columns = {"model"}, .rows = {}};
  if (!metrics.is_object() || !metrics.contains("models")) return table;
  for (const auto& [name, figures] : metrics["models"].items()) {
    std::vector<std::string> row(table.columns.size());
    row[0] = name;
    for (const auto& [figure, value] : figures.items()) {
      auto column = std::find(table.columns.begin(), table.columns.end(), figure);
      if (column == table.columns.end()) {
        table.columns.push_back(figure);
        row.emplace_back();
        column = table.columns.end() - 1;
      }
      row[std::size_t(column - table.columns.begin())] =
          value.is_number() ? readable(value.get<double>()) : value.dump();
    }
    table.rows.push_back(std::move(row));
  }
  for (auto& row : table.rows) row.resize(table.columns.size());
  return table;
}

}  // namespace

std::vector<RunFolder> runs_in(const fs::path& folder) {
  std::vector<RunFolder> runs;
  if (is_run(folder)) {
    const fs::path whole = fs::canonical(folder);
    return {{whole.filename().string(), whole}};
  }
  collect(folder, "", 2, runs);
  std::sort(runs.begin(), runs.end(), [](const RunFolder& a, const RunFolder& b) { return a.name < b.name; });
  return runs;
}

RunState state_of(const fs::path& run) {
  const json metrics = metrics_of(run);
  const auto log = written(run / "metrics.jsonl"), figures = written(run / "metrics.json");
  RunState state;
  state.verdicts = verdicts_of(metrics);
  state.report = fs::is_regular_file(run / "report.html") && written(run / "report.html") >= log;
  if (metrics.is_object() && figures >= log) {
    state.stage = Stage::finished;
    state.experiment = metrics.value("experiment", "");
    state.facts = text("size ", metrics.value("size", "?"), ", seed ", metrics.value("seed", json(0)).dump());
    return state;
  }
  state.verdicts.clear();  // of an earlier run in the same folder
  const auto age = fs::file_time_type::clock::now() - log;
  state.stage = age < silence ? Stage::training : Stage::unfinished;
  const auto course = course_of(run);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  if (course.empty()) {
    state.facts = "no iteration yet";
  } else {
    const TrainingCurve& last = course.back();
    state.facts = text(last.model, ": iteration ", readable(last.iterations.back()), ", loss ",
                       readable(last.loss.back()), ", written ", seconds, " s ago");
  }
  return state;
}

std::vector<TrainingCurve> course_of(const fs::path& run) {
  std::vector<TrainingCurve> models;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const json record = json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("iteration")) continue;
    const std::string name = record.value("model", "model");
    auto model = std::find_if(models.begin(), models.end(),
                              [&](const TrainingCurve& each) { return each.model == name; });
    if (model == models.end())
      model = models.insert(models.end(), TrainingCurve{.model = name, .iterations = {}, .loss = {}});
    model->iterations.push_back(number(record["iteration"]));
    model->loss.push_back(number(record.value("loss", json())));
    model->evaluations.push_back(number(record.value("evaluations", json())));
    model->backward_evaluations.push_back(number(record.value("backward_evaluations", json())));
  }
  return models;
}

Page summary_of(const RunFolder& run) {
  const RunState state = state_of(run.path);
  const auto course = course_of(run.path);
  Page page{
      .title = run.name, .subtitle = state.experiment, .claim = state.facts, .verdicts = state.verdicts};
  Section section{.title = ""};
  section.figures = {training_curves(
      {.title = "Training", .idea = "Loss and function evaluations over iterations."}, course)};
  Table table = figures_table(metrics_of(run.path));
  if (state.stage == Stage::finished && !table.rows.empty()) section.tables = {std::move(table)};
  page.sections = {std::move(section)};
  return page;
}

}  // namespace fathom::report
