#include "fathom/report/export.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "fathom/report/assets.hpp"
#include "fathom/report/process.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/whole_file.hpp"

namespace fathom::report {

namespace {

std::string required_program(const std::string& name, const std::string& package,
                             const std::string& purpose) {
  const std::string program = found_program(name);
  if (program.empty())
    throw Error(text("to export ", purpose, ", `", name,
                     "` is required and was not found; install Debian's package ", package));
  return program;
}

std::string node() { return required_program("node", "nodejs", "figures"); }
std::string rsvg() { return required_program("rsvg-convert", "librsvg2-bin", "PNG"); }

/// "figure-2-learned-depth.svg"
std::string file_name(std::size_t number, const std::string& title, const std::string& ending) {
  std::string words;
  for (const char c : title) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c));
    if (kept)
      words += char(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.empty() && words.back() != '-')
      words += '-';
    if (words.size() >= 48) break;
  }
  while (!words.empty() && words.back() == '-') words.pop_back();
  return text("figure-", number, words.empty() ? "" : "-", words, ending);
}

struct Drawing {
  std::filesystem::path file;
  nlohmann::json specification;
};

nlohmann::json fitted(const Figure& figure, int width) {
  nlohmann::json specification = nlohmann::json::parse(figure.specification);
  for (auto& signal : specification["signals"]) {
    if (signal["name"] == "available") signal["value"] = width;
  }
  return specification;
}

/// A program for node that writes each figure's SVG to its file.
std::string script(const std::vector<Drawing>& drawings) {
  nlohmann::json work = nlohmann::json::array();
  for (const Drawing& each : drawings)
    work.push_back({{"file", each.file.string()}, {"specification", each.specification}});
  return text(assets::vega_js(), assets::drawing_js(), "const work = ", work.dump(), ";\n", R"((async () => {
  for (const { file, specification } of work) {
    require("fs").writeFileSync(file, await drawing.svg(specification));
  }
})().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
)");
}

}  // namespace

void check_exporter(Picture picture) {
  node();
  if (picture == Picture::png) rsvg();
}

std::vector<std::filesystem::path> export_figures(const std::filesystem::path& folder,
                                                  const std::vector<Figure>& figures, Picture picture,
                                                  const PictureOptions& options) {
  check_exporter(picture);
  if (!std::filesystem::is_directory(folder))
    throw Error(text("cannot write figures into `", folder.string(), "`: there is no such folder"));
  const bool png = picture == Picture::png;
  for (const std::size_t number : options.only)
    require(number >= 1 && number <= figures.size(), "a figure's number must be 1 to ", figures.size(),
            ", got ", number);
  std::vector<std::filesystem::path> files;
  std::vector<Drawing> drawings;
  for (std::size_t number = 1; number <= figures.size(); ++number) {
    const Figure& figure = figures[number - 1];
    if (!options.only.empty() && std::count(options.only.begin(), options.only.end(), number) == 0) continue;
    files.push_back(folder / file_name(number, figure.caption.title, png ? ".png" : ".svg"));
    drawings.push_back({files.back().string() + (png ? ".part" : ""), fitted(figure, options.width)});
  }
  run_program({node(), "-"}, script(drawings));
  for (std::size_t i = 0; png && i < files.size(); ++i) {
    run_program({rsvg(), "--zoom", text(options.scale), "--background-color", "white", "--output",
                 files[i].string(), drawings[i].file.string()});
    std::filesystem::remove(drawings[i].file);
  }
  return files;
}

std::vector<std::filesystem::path> export_figures(const std::filesystem::path& folder, const Page& page,
                                                  Picture picture, const PictureOptions& options) {
  std::vector<Figure> figures;
  for (const Section& section : page.sections)
    figures.insert(figures.end(), section.figures.begin(), section.figures.end());
  return export_figures(folder, figures, picture, options);
}

namespace {

/// What stands between two marks from `at` on, which moves behind the second.
std::string between(const std::string& whole, const std::string& before, const std::string& after,
                    std::size_t& at) {
  const std::size_t start = whole.find(before, at);
  const std::size_t end = start == std::string::npos ? start : whole.find(after, start + before.size());
  if (end == std::string::npos) {
    at = end;
    return {};
  }
  at = end + after.size();
  return whole.substr(start + before.size(), end - start - before.size());
}

}  // namespace

std::vector<Figure> figures_of(const std::filesystem::path& report) {
  const std::string page = read_whole(report, 64 << 20);
  std::vector<Figure> figures;
  std::size_t at = 0;
  while (true) {
    const std::string figure = between(page, "<figure id=", "</figure>", at);
    if (figure.empty()) break;
    std::size_t inside = 0;
    const std::string title = between(figure, "<figcaption><b>", "</b>", inside);
    const std::string specification =
        between(figure, "<script type=\"application/json\">", "</script>", inside);
    if (!nlohmann::json::accept(specification))
      throw Error(text("`", report.string(), "` is not a whole report of fathom; run its experiment again"));
    figures.push_back({.caption = {.title = title}, .specification = specification});
  }
  return figures;
}

}  // namespace fathom::report
