#include "fathom/report/site.hpp"

#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "fathom/report/html.hpp"
#include "fathom/report/run_state.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/whole_file.hpp"

namespace fathom::report {

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_file = 256 << 20;
constexpr int index_refresh_seconds = 5;

Response missing() {
  return {.status = 404, .type = "text/plain; charset=utf-8", .body = "there is no such page\n"};
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The names in a request's path, decoded; nothing where one could mean another place than a file below.
std::optional<std::vector<std::string>> names_in(const std::string& target) {
  std::vector<std::string> names = {""};
  const std::string path = target.substr(1, std::min(target.find_first_of("?#"), target.size()) - 1);
  for (std::size_t i = 0; i < path.size(); ++i) {
    char c = path[i];
    if (c == '/') {
      names.emplace_back();
      continue;
    }
    if (c == '%') {
      if (i + 2 >= path.size()) return {};
      const int high = digit(path[i + 1]), low = digit(path[i + 2]);
      if (high < 0 || low < 0) return {};
      c = char(16 * high + low);
      i += 2;
    }
    if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 32) return {};
    names.back() += c;
  }
  if (names.back().empty()) names.pop_back();  // of a path that ends with a slash
  for (const std::string& name : names) {
    if (name.empty() || name == "." || name == "..") return {};
  }
  return names;
}

std::string encoded(const std::string& path) {
  std::string result;
  for (const char c : path) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string("-_.~/").find(c) != std::string::npos;
    constexpr const char* digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    result += plain ? std::string(1, c) : std::string{'%', digits[byte / 16], digits[byte % 16]};
  }
  return result;
}

std::string type_of(const fs::path& file) {
  static const std::map<std::string, std::string> types = {{".html", "text/html; charset=utf-8"},
                                                           {".json", "application/json"},
                                                           {".jsonl", "text/plain; charset=utf-8"},
                                                           {".toml", "text/plain; charset=utf-8"},
                                                           {".csv", "text/plain; charset=utf-8"},
                                                           {".svg", "image/svg+xml"},
                                                           {".png", "image/png"}};
  const auto found = types.find(file.extension().string());
  return found == types.end() ? "application/octet-stream" : found->second;
}

/// A regular file below the folder; links are followed only as far as they stay there.
Response file_in(const fs::path& folder, const std::vector<std::string>& names, std::size_t first) {
  fs::path file = folder;
  for (std::size_t i = first; i < names.size(); ++i) file /= names[i];
  std::error_code failed;
  const fs::path root = fs::canonical(folder, failed),
                 real = failed ? fs::path() : fs::canonical(file, failed);
  if (failed || !fs::is_regular_file(real)) return missing();
  const auto end = std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first;
  if (end != root.end()) return missing();
  return {.type = type_of(real), .body = read_whole(real, largest_file)};
}

std::string stage_name(Stage stage) {
  switch (stage) {
    case Stage::training: return "training";
    case Stage::finished: return "finished";
    case Stage::unfinished: return "did not finish";
  }
  return {};
}

std::string card(const RunFolder& run, const RunState& state) {
  std::string result = text("<section class=\"run\">\n<h2><a href=\"/", escaped(encoded(run.name)), "/\">",
                            escaped(run.name), "</a></h2>\n<p><b>", stage_name(state.stage), "</b> <small>",
                            escaped(state.facts), "</small></p>\n<ul>\n");
  for (const Verdict& verdict : state.verdicts) {
    result += text("<li class=\"", verdict.holds ? "holds" : "fails", "\"><b>",
                   verdict.holds ? "holds" : "does not hold", "</b> ", escaped(verdict.claim), "</li>\n");
  }
  return result + "</ul>\n</section>\n";
}

std::string index_page(const std::vector<RunFolder>& runs) {
  std::string cards;
  bool training = false;
  std::size_t claims = 0, holding = 0;
  for (const RunFolder& run : runs) {
    const RunState state = state_of(run.path);
    training = training || state.stage == Stage::training;
    for (const Verdict& verdict : state.verdicts) {
      ++claims;
      holding += verdict.holds ? 1 : 0;
    }
    cards += card(run, state);
  }
  const std::string summary = runs.empty() ? "There is no run here yet; start one with `fathom run annuli`."
                                           : text(runs.size(), runs.size() == 1 ? " run, " : " runs, ",
                                                  holding, " of ", claims, " claims hold.");
  return html(Document{.title = "Runs",
                       .main = "<header>\n<h1>Runs</h1>\n" + element("p", summary, "claim") +
                               "</header>\n<div class=\"runs\">\n" + cards + "</div>\n",
                       .figures = false,
                       .refresh_seconds = training || runs.empty() ? index_refresh_seconds : 0});
}

Response run_page(const RunFolder& run) {
  const RunState state = state_of(run.path);
  if (state.report && state.stage == Stage::finished)
    return {.body = read_whole(run.path / "report.html", largest_file)};
  const Page page = summary_of(run);
  return {.body = html(Document{.title = page.title,
                                .main = "<p><a href=\"/\">All runs</a></p>\n" + main_part(page),
                                .live = state.stage == Stage::training ? "live.json" : ""})};
}

Response live_state(const RunFolder& run) {
  const RunState state = state_of(run.path);
  const Page page = summary_of(run);
  const nlohmann::json answer{{"finished", state.stage != Stage::training},
                              {"status", state.facts},
                              {"course", nlohmann::json::parse(page.sections[0].figures[0].specification)}};
  return {.type = "application/json", .body = answer.dump()};
}

/// How many of the request's names are the run's own, or nothing if it is not this run.
std::optional<std::size_t> names_of_run(const RunFolder& run, const std::vector<std::string>& names) {
  std::string joined;
  for (std::size_t i = 0; i < names.size() && joined.size() < run.name.size(); ++i) {
    joined += (i == 0 ? "" : "/") + names[i];
    if (joined == run.name) return i + 1;
  }
  return {};
}

}  // namespace

Site::Site(std::vector<fs::path> folders) : folders_(std::move(folders)) {
  for (const fs::path& folder : folders_) {
    require(fs::is_directory(folder), "`", folder.string(),
            "` is not a folder; give a run folder or one that holds runs, such as `runs`");
  }
}

Response Site::answer(const Request& request) const {
  const auto names = names_in(request.target);
  if (!names) return missing();
  std::vector<RunFolder> runs;
  for (const fs::path& folder : folders_) {
    const std::string prefix = folders_.size() > 1 ? fs::canonical(folder).filename().string() + "/" : "";
    for (RunFolder& run : runs_in(folder)) {
      if (!fs::equivalent(run.path, folder)) run.name = prefix + run.name;
      runs.push_back(std::move(run));
    }
  }
  if (names->empty()) return {.body = index_page(runs)};
  const RunFolder* chosen = nullptr;
  std::size_t used = 0;
  for (const RunFolder& run : runs) {  // the longest name wins: a run may lie inside another
    const auto own = names_of_run(run, *names);
    if (own && *own > used) {
      chosen = &run;
      used = *own;
    }
  }
  if (!chosen) return missing();
  if (used == names->size()) {
    // Relative addresses of the page need the slash.
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (!path.ends_with("/"))
      return {.status = 302, .type = "text/plain", .body = {}, .location = "/" + encoded(chosen->name) + "/"};
    return run_page(*chosen);
  }
  if (used + 1 == names->size() && names->back() == "live.json") return live_state(*chosen);
  return file_in(chosen->path, *names, used);
}

}  // namespace fathom::report
