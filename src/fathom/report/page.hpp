/// A report: one self-contained HTML page that opens from disk and asks the network for nothing.
///
///   write_page("runs/annuli/report.html", {.title = "Concentric annuli", .claim = "...", .verdicts = {...},
///                                          .sections = {{.title = "Flows", .figures = {flow}}}});
///
/// Vega is embedded once (Debian's libjs-vega, linked at build time), figures follow the reader's light or dark scheme and
/// the width of the screen, and the depth slider works with the keyboard.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "fathom/report/figure.hpp"

namespace fathom::report {

/// A claim, and whether it held: `value` is what was measured, `threshold` what it was held against.
struct Verdict {
  std::string claim;
  double value = 0;
  double threshold = 0;
  bool holds = false;
};

struct Table {
  Caption caption;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Figures come before tables.
struct Section {
  std::string title;
  std::string introduction = {};
  std::vector<Figure> figures = {};
  std::vector<Table> tables = {};
};

struct Page {
  std::string title;
  std::string subtitle = {};  ///< small, above the title: id, size, seed
  std::string claim;
  std::vector<Verdict> verdicts = {};
  std::vector<std::pair<std::string, std::string>> configuration = {};
  std::vector<std::string> deviations = {};  ///< from the paper's set-up, and why
  std::vector<Section> sections = {};
};

/// The page as HTML.
std::string html(const Page& page);

/// Writes the page; what was there stays whole when that fails.
void write_page(const std::filesystem::path& file, const Page& page);

/// A number as people read it: four significant digits, no exponent where it is not needed.
std::string readable(double value);

}  // namespace fathom::report
