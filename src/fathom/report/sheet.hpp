/// What all figures share: panels in a grid that follows the width at hand, scales, axes, legend, paths. Internal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fathom/report/figure.hpp"
#include "fathom/report/geometry.hpp"

namespace fathom::report {

using nlohmann::json;

/// {"signal": expression}
json signal(const std::string& expression);

/// {"value": value}
json constant(const json& value);

/// The value to a few thousandths of the range, in as few characters as that takes.
double rounded(double value, const Range& range);

/// The smallest range that holds all finite values, widened by `margin` of itself on both sides.
class Extent {
 public:
  Extent& include(const std::vector<double>& values);
  Extent& include(double value);
  Range range(double margin = 0.04) const;
  /// The same in factors, for a logarithmic axis: zero and below are left out.
  Range logarithmic_range() const;

 private:
  double low_ = 0, high_ = 0, smallest_positive_ = 0;
  bool empty_ = true;
};

/// Every n-th point, so that at most `most` and the last remain.
Polyline thinned(const std::vector<double>& x, const std::vector<double>& y, std::size_t most = 400);

/// The window that a panel shows.
struct Window {
  Range x;
  Range y;
  bool logarithmic_x = false;
  bool logarithmic_y = false;
};

/// Lines as one SVG path over the window scaled to path_units x path_units, y downwards.
std::string path(const std::vector<Polyline>& lines, const Window& window);
std::string path(const Polyline& line, const Window& window);

/// A Vega path mark for the `path` field of its data (or the given path), fitted to its panel.
json path_mark(const json& data_or_path, json look);

/// A panel: its own x and y scale over the window, axes and marks.
struct Panel {
  std::string title;
  Window window;
  std::string x_title;
  std::string y_title;
  bool grid_lines = false;
  bool hide_y_labels = false;  ///< rows that the legend names
  json x_axis = {};            ///< in place of the usual one
  std::vector<json> data = {};
  std::vector<json> marks = {};
};

/// How high a panel is, as a Vega expression of panel_width.
std::string same_aspect(const Window& window);
inline constexpr const char* chart_height = "clamp(round(panel_width * 0.62), 180, 320)";

struct Sheet {
  std::vector<Panel> panels;
  std::string height = chart_height;
  int smallest_panel = 205;
  int largest_panel = 460;
  std::vector<std::string> labels = {};  ///< colours of the scale "colour", shown in the legend
  std::vector<std::string> dashed_labels =
      {};                         ///< further entries of the legend, drawn dashed and without colour
  std::string symbol = "circle";  ///< of the legend: "circle" or "stroke"
  std::vector<json> signals = {};
  std::vector<json> scales = {};
  std::vector<json> legends = {};
  json usermeta = json::object();
};

/// Words in lines of at most so many letters; a word that is longer is divided.
std::vector<std::string> in_lines(const std::string& words, std::size_t letters);

/// The whole specification, as text.
std::string specification(const Sheet& sheet);

/// A list for people: "a, b and c".
std::string listed(const std::vector<std::string>& words);
template <class Panels> std::string titles(const Panels& panels) {
  std::vector<std::string> words;
  for (const auto& panel : panels) words.push_back(panel.title);
  return listed(words);
}

}  // namespace fathom::report
