/// Figures made of cells: confusion matrices and sheets of small pictures.
#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "fathom/report/sheet.hpp"
#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += char(value >> shift & 0xFF);
  return bytes;
}

std::string chunk(const std::string& type, const std::string& content) {
  const std::string checked = type + content;
  const uLong checksum = crc32(0, reinterpret_cast<const Bytef*>(checked.data()), uInt(checked.size()));
  return big_endian(std::uint32_t(content.size())) + checked + big_endian(std::uint32_t(checksum));
}

/// The picture as a PNG file of 8 bits a channel; every row without a filter.
std::string png(const Tile& tile) {
  const std::size_t channels = tile.pixels.size() / std::max<std::size_t>(1, tile.width * tile.height);
  require(tile.width > 0 && tile.height > 0 && (channels == 1 || channels == 3) &&
              tile.pixels.size() == tile.width * tile.height * channels,
          "a tile needs width x height pixels of 1 or 3 bytes, got ", tile.pixels.size(), " bytes for ",
          tile.width, " x ", tile.height);
  std::string rows;
  for (std::size_t row = 0; row < tile.height; ++row) {
    rows += '\0';
    const auto from = tile.pixels.begin() + std::ptrdiff_t(row * tile.width * channels);
    rows.append(from, from + std::ptrdiff_t(tile.width * channels));
  }
  uLongf size = compressBound(uLong(rows.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
           uLong(rows.size()));
  packed.resize(size);
  const char colour = channels == 3 ? 2 : 0;
  const std::string head = big_endian(std::uint32_t(tile.width)) + big_endian(std::uint32_t(tile.height)) +
                           '\x8' + colour + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", head) + chunk("IDAT", packed) + chunk("IEND", "");
}

std::string base64(const std::string& bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = i; j < i + 3; ++j)
      three = three << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0U);
    for (const int shift : {18, 12, 6, 0}) result += digits[three >> shift & 63];
  }
  for (std::size_t missing = (3 - bytes.size() % 3) % 3, i = 0; i < missing; ++i)
    result[result.size() - 1 - i] = '=';
  return result;
}

constexpr double letter_width = 0.62;  // of the size of the type

/// `longest`: letters of the longest word, for which the type gets smaller where tiles are narrow.
json words(const std::string& field, const std::string& space, std::size_t longest, const json& colour) {
  json mark{{"type", "text"}, {"from", {{"data", "tiles"}}}};
  mark["encode"]["update"] = {
      {"text", {{"field", field}}},
      {"fill", colour},
      {"align", constant("center")},
      {"baseline", constant("top")},
      {"fontSize", signal(text("clamp((", space, " - 2) / ", letter_width * double(longest), ", 6, 10)"))},
      {"limit", signal(space + " - 2")},
      {"font", constant("system-ui, sans-serif")}};
  return mark;
}

constexpr int usual_tile = 62;   // pixels of the page that a tile takes, with its margin
constexpr int line_height = 13;  // of the words below it

}  // namespace

Figure confusion(const Caption& caption, const Confusion& data) {
  require(data.classes > 0 && !data.panels.empty(), "a confusion needs classes and panels, got ",
          data.classes, " and ", data.panels.size());
  const double count = double(data.classes);
  Sheet sheet{.height = "panel_width", .smallest_panel = 250, .largest_panel = 400};
  for (const ConfusionPanel& panel : data.panels) {
    require(panel.counts.size() == data.classes * data.classes, "`", panel.title, "` needs ",
            data.classes * data.classes, " counts, got ", panel.counts.size());
    json cells = json::array();
    for (std::size_t row = 0; row < data.classes; ++row) {
      double all = 0;
      for (std::size_t column = 0; column < data.classes; ++column)
        all += panel.counts[row * data.classes + column];
      for (std::size_t column = 0; column < data.classes; ++column) {
        const double value = panel.counts[row * data.classes + column];
        if (value == 0) continue;
        cells.push_back({{"row", row},
                         {"column", column},
                         {"count", value},
                         {"share", std::round(1000 * value / all) / 1000}});
      }
    }
    Panel drawn{panel.title, {{-0.5, count - 0.5}, {count - 0.5, -0.5}}, "answer", "class"};
    drawn.data = {{{"name", "cells"}, {"values", cells}}};
    const std::string cell = text("panel_width / ", count);
    json square{{"type", "rect"}, {"from", {{"data", "cells"}}}},
        number{{"type", "text"}, {"from", {{"data", "cells"}}}};
    square["encode"]["update"] = {
        {"x", signal("datum.column * " + cell)},
        {"y", signal("datum.row * " + cell)},
        {"width", signal(cell)},
        {"height", signal(cell)},
        {"fill", signal("datum.row === datum.column ? 'var(--c1)' : 'var(--c2)'")},
        {"fillOpacity", signal("sqrt(datum.share)")},
        {"tooltip", signal("{class: datum.row, answer: datum.column, images: datum.count, "
                           "share: format(datum.share, '.1%')}")}};
    number["encode"]["update"] = {{"x", signal("(datum.column + 0.5) * " + cell)},
                                  {"y", signal("(datum.row + 0.5) * " + cell)},
                                  {"text", {{"field", "count"}}},
                                  {"align", constant("center")},
                                  {"baseline", constant("middle")},
                                  {"fontSize", signal(text("clamp(", cell, " / 2.6, 8, 12)"))},
                                  {"font", constant("system-ui, sans-serif")},
                                  {"fill", signal("datum.share > 0.4 ? 'var(--paper)' : 'var(--ink)'")}};
    drawn.marks = {std::move(square), std::move(number)};
    sheet.panels.push_back(std::move(drawn));
  }
  return {caption, text("How often each class was answered by each, for ", titles(data.panels), "."),
          specification(sheet)};
}

Figure tile_sheet(const Caption& caption, const TileSheet& data) {
  std::size_t most = 0;
  int lines = 0;
  std::size_t longest = 1;
  for (const TilePanel& panel : data.panels) {
    most = std::max(most, panel.tiles.size());
    for (const Tile& tile : panel.tiles) {
      lines = std::max(lines, tile.note.empty() ? tile.label.empty() ? 0 : 1 : 2);
      longest = std::max({longest, tile.label.size(), tile.note.size()});
    }
  }
  require(most > 0, "a sheet of tiles needs at least one, got none");
  Sheet sheet{.smallest_panel = 280, .largest_panel = data.panels.size() == 1 ? 760 : 460};
  const std::string columns =
      data.columns > 0 ? text(data.columns) : text("max(1, floor(panel_width / ", usual_tile, "))");
  const std::string space = text("min(panel_width / ", columns, ", ", 2 * usual_tile, ")");
  const std::string row_height = text("(", space, " + ", lines * line_height, ")");
  sheet.height = text("ceil(", most, " / ", columns, ") * ", row_height);
  for (const TilePanel& panel : data.panels) {
    json tiles = json::array();
    for (const Tile& tile : panel.tiles)
      tiles.push_back({{"picture", "data:image/png;base64," + base64(png(tile))},
                       {"label", tile.label},
                       {"note", tile.note}});
    Panel drawn{.title = panel.title, .window = {}, .x_title = "", .y_title = "", .hide_y_labels = true};
    drawn.x_axis = {
        {"orient", "bottom"}, {"scale", "x"}, {"labels", false}, {"ticks", false}, {"domain", false}};
    drawn.data = {
        {{"name", "tiles"},
         {"values", tiles},
         {"transform",
          {{{"type", "window"}, {"ops", {"row_number"}}, {"as", {"number"}}},
           {{"type", "formula"}, {"as", "column"}, {"expr", "(datum.number - 1) % " + columns}},
           {{"type", "formula"}, {"as", "row"}, {"expr", "floor((datum.number - 1) / " + columns + ")"}}}}}};
    json picture{{"type", "image"}, {"from", {{"data", "tiles"}}}};
    const json left = signal("datum.column * " + space + " + 2"),
               middle = signal("(datum.column + 0.5) * " + space);
    picture["encode"]["update"] = {
        {"url", {{"field", "picture"}}},
        {"x", left},
        {"y", signal("datum.row * " + row_height)},
        {"width", signal(space + " - 4")},
        {"height", signal(space + " - 4")},
        {"smooth", constant(false)},
        {"tooltip", signal("datum.label + (datum.note ? ', ' + datum.note : '')")}};
    json label = words("label", space, longest, constant("var(--ink)")),
         note = words("note", space, longest, constant("var(--c2)"));
    label["encode"]["update"]["x"] = note["encode"]["update"]["x"] = middle;
    label["encode"]["update"]["y"] = signal(text("datum.row * ", row_height, " + ", space, " - 2"));
    note["encode"]["update"]["y"] =
        signal(text("datum.row * ", row_height, " + ", space, " - 2 + ", line_height));
    drawn.marks = {std::move(picture), std::move(label), std::move(note)};
    sheet.panels.push_back(std::move(drawn));
  }
  return {caption, text("Small pictures: ", titles(data.panels), "."), specification(sheet)};
}

}  // namespace fathom::report
