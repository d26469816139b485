#include "fathom/report/sheet.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

constexpr double path_units = 4000;
constexpr int left_space = 56, right_space = 14, column_gap = 66, row_gap = 74;

// What Vega takes for the width of a letter where it cannot measure: 0.8 of the font's size, more than most letters have.
constexpr double title_letter = 0.8 * 13, label_letter = 0.8 * 12;
constexpr int line_height = 15;
constexpr int narrowest_legend = 220;  // of a phone, beside the space of the axis
constexpr int symbol_space = 40;       // of an entry of the legend, and the gap after it

/// Letters, not bytes.
std::size_t length(const std::string& words) {
  return std::size_t(std::count_if(words.begin(), words.end(),
                                   [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// The words in one line where the panel is wide enough for it, else in as many as the smallest panel needs.
json fitted(const std::string& words, double letter, int smallest_panel) {
  const std::vector<std::string> lines = in_lines(words, std::size_t(smallest_panel / letter));
  if (lines.size() == 1) return words;
  return signal(text("panel_width < ", std::ceil(letter * double(length(words))), " ? ", json(lines).dump(),
                     " : ", json(words).dump()));
}

/// Room that the further lines of titles need between rows of panels.
int room_for_lines(const Sheet& sheet) {
  std::size_t title_lines = 1, axis_lines = 1;
  for (const Panel& panel : sheet.panels) {
    title_lines =
        std::max(title_lines, in_lines(panel.title, std::size_t(sheet.smallest_panel / title_letter)).size());
    axis_lines = std::max(axis_lines,
                          in_lines(panel.x_title, std::size_t(sheet.smallest_panel / label_letter)).size());
  }
  return line_height * int(title_lines - 1 + axis_lines - 1);
}

/// Where a value lies between the ends of an axis: 0 to 1 inside.
double position(double value, const Range& range, bool logarithmic) {
  if (logarithmic) return std::log(value / range.low) / std::log(range.high / range.low);
  return (value - range.low) / (range.high - range.low);
}

json scale(const std::string& name, const Range& range, bool logarithmic, const json& pixels) {
  return {{"name", name},
          {"type", logarithmic ? "log" : "linear"},
          {"domain", {range.low, range.high}},
          {"range", pixels},
          {"zero", false},
          {"nice", false}};
}

json axis(const std::string& orient, const std::string& scale_name, const Panel& panel, int smallest_panel) {
  const bool horizontal = orient == "bottom";
  const bool logarithmic = horizontal ? panel.window.logarithmic_x : panel.window.logarithmic_y;
  json result{
      {"orient", orient},
      {"scale", scale_name},
      {"title", horizontal ? fitted(panel.x_title, label_letter, smallest_panel) : json(panel.y_title)},
      {"grid", panel.grid_lines},
      {"labelOverlap", true},
      {"labelFlush", horizontal},
      {"tickCount",
       signal(horizontal ? "max(3, floor(panel_width / 70))" : "max(3, floor(panel_height / 45))")}};
  if (!horizontal) result["minExtent"] = result["maxExtent"] = 34;
  if (logarithmic) result["format"] = "~g";
  return result;
}

json group(const Panel& panel, int smallest_panel) {
  json result{{"type", "group"}};
  if (!panel.title.empty())
    result["title"] = {{"text", fitted(panel.title, title_letter, smallest_panel)}, {"offset", 8}};
  result["encode"]["update"] = {{"width", signal("panel_width")}, {"height", signal("panel_height")}};
  result["signals"] = {{{"name", "width"}, {"update", "panel_width"}},
                       {{"name", "height"}, {"update", "panel_height"}}};
  result["scales"] = {scale("x", panel.window.x, panel.window.logarithmic_x, {0, signal("panel_width")}),
                      scale("y", panel.window.y, panel.window.logarithmic_y, {signal("panel_height"), 0})};
  result["axes"] =
      json::array({panel.x_axis.is_null() ? axis("bottom", "x", panel, smallest_panel) : panel.x_axis});
  if (!panel.hide_y_labels) result["axes"].push_back(axis("left", "y", panel, smallest_panel));
  if (!panel.data.empty()) result["data"] = panel.data;
  // Marks are clipped in a group of their own: on the panel itself that would cut off the axes.
  json marks{{"type", "group"}, {"clip", true}, {"marks", panel.marks}};
  marks["encode"]["update"] = {{"width", signal("panel_width")}, {"height", signal("panel_height")}};
  result["marks"] = json::array({std::move(marks)});
  return result;
}

/// As many columns as the longest entry leaves room for. Entries that are longer than a phone is wide take several lines there.
json legend(const Sheet& sheet) {
  std::size_t longest = 0;
  json lines = json::object();
  for (const auto* labels : {&sheet.labels, &sheet.dashed_labels}) {
    for (const std::string& label : *labels) {
      longest = std::max(longest, length(label));
      lines[label] = in_lines(label, std::size_t((narrowest_legend - symbol_space) / label_letter));
    }
  }
  const double width = std::ceil(label_letter * double(longest)) + symbol_space;
  json result{{"orient", "top"},
              {"direction", "horizontal"},
              {"columns", signal(text("max(1, floor((available - ", left_space, ") / ", width, "))"))},
              {"labelLimit", 0},
              {"offset", 22 + room_for_lines(sheet)}};
  if (width > narrowest_legend) {
    result["encode"]["labels"]["update"]["text"] = signal(
        text("available - ", left_space, " < ", width, " ? ", lines.dump(), "[datum.label] : datum.label"));
  }
  if (sheet.symbol == "stroke") {
    result["stroke"] = "colour";
    result["strokeDash"] = "dash";
    result["symbolType"] = "stroke";
    result["symbolStrokeWidth"] = 2;
    result["symbolSize"] = 300;
  } else {
    result["fill"] = "colour";
    result["symbolType"] = "circle";
  }
  return result;
}

/// Colours and dashes by label. The legend of lines needs both over the same domain.
std::vector<json> label_scales(const Sheet& sheet) {
  std::vector<std::string> domain = sheet.labels;
  json dashes = json::array();
  for (std::size_t i = 0; i < sheet.labels.size(); ++i) dashes.push_back({1, 0});
  for (const std::string& name : sheet.dashed_labels) {
    domain.push_back(name);
    dashes.push_back({4, 3});
  }
  json colours = json::array();
  for (std::size_t i = 0; i < sheet.labels.size(); ++i) colours.push_back(text("var(--c", i % 8 + 1, ")"));
  for (std::size_t i = 0; i < sheet.dashed_labels.size(); ++i) colours.push_back("var(--ink)");
  return {{{"name", "colour"}, {"type", "ordinal"}, {"domain", domain}, {"range", colours}},
          {{"name", "dash"}, {"type", "ordinal"}, {"domain", domain}, {"range", dashes}}};
}

}  // namespace

json signal(const std::string& expression) { return {{"signal", expression}}; }

json constant(const json& value) { return {{"value", value}}; }

double rounded(double value, const Range& range) {
  const double unit = std::pow(10, std::floor(std::log10((range.high - range.low) / 2000)));
  if (!std::isfinite(value) || !(unit > 0)) return 0;
  // Dividing by a whole number gives the shortest decimals; multiplying by 0.001 would not.
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit) : std::round(value);
}

Extent& Extent::include(double value) {
  if (!std::isfinite(value)) return *this;
  if (value > 0 && (smallest_positive_ == 0 || value < smallest_positive_)) smallest_positive_ = value;
  low_ = empty_ ? value : std::min(low_, value);
  high_ = empty_ ? value : std::max(high_, value);
  empty_ = false;
  return *this;
}

Extent& Extent::include(const std::vector<double>& values) {
  for (const double value : values) include(value);
  return *this;
}

Range Extent::range(double margin) const {
  if (empty_) return {0, 1};
  const double width = high_ - low_;
  if (width <= 1e-12 * std::max(std::abs(low_), std::abs(high_))) {
    const double half = low_ == 0 ? 1 : 0.1 * std::abs(low_);
    return {low_ - half, high_ + half};
  }
  return {low_ - margin * width, high_ + margin * width};
}

Range Extent::logarithmic_range() const {
  if (smallest_positive_ == 0) return {0.1, 1};
  const double low =
      std::max(smallest_positive_, 1e-12 * high_);  // below lies rounding, or an exact zero's neighbour
  const double margin = std::max(1.15, std::pow(high_ / low, 0.04));
  return {low / margin, high_ * margin};
}

Polyline thinned(const std::vector<double>& x, const std::vector<double>& y, std::size_t most) {
  require(x.size() == y.size(), "a curve needs as many x as y, got ", x.size(), " and ", y.size());
  if (x.size() <= most) return {x, y};
  Polyline result;
  const std::size_t stride = (x.size() + most - 1) / most;
  for (std::size_t i = 0; i < x.size(); i += stride) {
    result.x.push_back(x[i]);
    result.y.push_back(y[i]);
  }
  if ((x.size() - 1) % stride != 0) {
    result.x.push_back(x.back());
    result.y.push_back(y.back());
  }
  return result;
}

std::string path(const std::vector<Polyline>& lines, const Window& window) {
  const auto whole = [](double share) { return std::lround(path_units * std::clamp(share, -5.0, 6.0)); };
  std::string result;
  for (const Polyline& line : lines) {
    long last_x = 0, last_y = 0;
    bool pen_down = false;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      const double across = position(line.x[i], window.x, window.logarithmic_x);
      const double up = position(line.y[i], window.y, window.logarithmic_y);
      if (!std::isfinite(across) || !std::isfinite(up)) {
        pen_down = false;
        continue;
      }
      const long x = whole(across), y = whole(1 - up);
      if (pen_down && x == last_x && y == last_y) continue;
      result += pen_down ? text("l", x - last_x, ",", y - last_y) : text("M", x, ",", y);
      pen_down = true;
      last_x = x;
      last_y = y;
    }
  }
  return result;
}

std::string path(const Polyline& line, const Window& window) {
  return path(std::vector<Polyline>{line}, window);
}

json path_mark(const json& data_or_path, json look) {
  json mark{{"type", "path"}};
  if (data_or_path.is_object()) {
    mark["from"] = data_or_path;
    look["path"] = {{"field", "path"}};
  } else {
    look["path"] = constant(data_or_path);
  }
  look["scaleX"] = signal(text("panel_width / ", path_units));
  look["scaleY"] = signal(text("panel_height / ", path_units));
  mark["encode"]["update"] = std::move(look);
  return mark;
}

std::string same_aspect(const Window& window) {
  const double ratio = (window.y.high - window.y.low) / (window.x.high - window.x.low);
  return text("round(panel_width * ", std::clamp(ratio, 0.4, 1.6), ")");
}

std::string specification(const Sheet& sheet) {
  const std::size_t count = sheet.panels.size();
  require(count > 0, "a figure needs at least one panel, got none");
  json spec;
  spec["autosize"] = {{"type", "pad"}, {"resize", true}};
  spec["padding"] = 2;
  if (!sheet.usermeta.empty()) spec["usermeta"] = sheet.usermeta;
  // The page sets `available` to the width at hand; rows are filled evenly.
  const std::string fitting =
      text("max(1, floor((available - ", left_space, ") / ", sheet.smallest_panel + column_gap, " + 0.15))");
  spec["signals"] = {
      {{"name", "available"}, {"value", 960}},
      {{"name", "columns"}, {"update", text("ceil(", count, " / ceil(", count, " / ", fitting, "))")}},
      {{"name", "panel_width"},
       {"update", text("min(", sheet.largest_panel, ", floor((available - ", left_space + right_space,
                       " - (columns - 1) * ", column_gap, ") / columns))")}},
      {{"name", "panel_height"}, {"update", sheet.height}}};
  for (const json& each : sheet.signals) spec["signals"].push_back(each);
  spec["layout"] = {{"columns", signal("columns")},
                    {"padding", {{"column", column_gap}, {"row", row_gap + room_for_lines(sheet)}}},
                    {"bounds", "flush"},
                    {"align", "all"}};
  spec["scales"] = sheet.scales;
  spec["legends"] = sheet.legends;
  if (!sheet.labels.empty() || !sheet.dashed_labels.empty()) {
    for (const json& each : label_scales(sheet)) spec["scales"].push_back(each);
    spec["legends"].push_back(legend(sheet));
  }
  for (const Panel& panel : sheet.panels) spec["marks"].push_back(group(panel, sheet.smallest_panel));
  return spec.dump();
}

std::vector<std::string> in_lines(const std::string& words, std::size_t letters) {
  std::vector<std::string> lines(1);
  const auto take = [&](const std::string& piece, const char* gap) {
    if (!lines.back().empty() && length(lines.back()) + length(gap) + length(piece) > letters)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : gap) + piece;
  };
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    const char* gap = " ";
    while (length(word) > letters) {
      std::size_t end = 0;
      for (std::size_t taken = 0; taken <= letters; ++end)
        taken += (static_cast<unsigned char>(word[end]) & 0xC0) != 0x80;
      take(word.substr(0, end - 1), gap);
      word = word.substr(end - 1);
      gap = "";
    }
    take(word, gap);
  }
  return lines;
}

std::string listed(const std::vector<std::string>& words) {
  std::string result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) result += i + 1 == words.size() ? " and " : ", ";
    result += words[i];
  }
  return result;
}

}  // namespace fathom::report
