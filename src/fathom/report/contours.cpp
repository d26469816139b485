/// Marching squares. The grid is padded by values below every level, so that each outline closes; a directed segment keeps
/// the region on its left and each crossed edge has one way in and one way out, so outlines are followed edge by edge.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "fathom/report/geometry.hpp"
#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

enum Side : int { bottom, right, top, left, none };

struct Segments {
  Side from[2];
  Side to[2];
};

/// By which corners are inside: 1 bottom left, 2 bottom right, 4 top right, 8 top left.
constexpr std::array<Segments, 16> table = {{{{none, none}, {none, none}},
                                             {{bottom, none}, {left, none}},
                                             {{right, none}, {bottom, none}},
                                             {{right, none}, {left, none}},
                                             {{top, none}, {right, none}},
                                             {{bottom, top}, {left, right}},
                                             {{top, none}, {bottom, none}},
                                             {{top, none}, {left, none}},
                                             {{left, none}, {top, none}},
                                             {{bottom, none}, {top, none}},
                                             {{right, left}, {bottom, top}},
                                             {{right, none}, {top, none}},
                                             {{left, none}, {right, none}},
                                             {{bottom, none}, {right, none}},
                                             {{left, none}, {bottom, none}},
                                             {{none, none}, {none, none}}}};

class Squares {
 public:
  Squares(const Grid& grid, double level) : grid_(grid), level_(level), width_(long(grid.columns) + 2) {
    require(grid.columns >= 2 && grid.rows >= 2 && grid.values.size() == grid.columns * grid.rows,
            "a grid needs at least 2 x 2 values, got ", grid.columns, " x ", grid.rows, " nodes with ",
            grid.values.size(), " values");
    for (long row = -1; row < long(grid.rows); ++row) {
      for (long column = -1; column < long(grid.columns); ++column) march(column, row);
    }
  }

  std::vector<Polyline> outlines() {
    std::vector<Polyline> result;
    while (!next_.empty()) {
      const std::int64_t start = next_.begin()->first;
      Polyline line;
      std::int64_t edge = start;
      do {
        add(line, edge);
        edge = take(edge);
      } while (edge != start);
      add(line, start);
      result.push_back(std::move(line));
    }
    return result;
  }

  std::vector<Polyline> lines() {
    std::vector<Polyline> result;
    while (!next_.empty()) {
      // An open line starts where it leaves the padding; a closed one anywhere.
      std::int64_t start = next_.begin()->first;
      for (const auto& [edge, following] : next_) {
        if (is_padding(edge) && !is_padding(following)) {
          start = edge;
          break;
        }
      }
      follow(start, result);
    }
    return result;
  }

 private:
  bool in_grid(long column, long row) const {
    return column >= 0 && row >= 0 && column < long(grid_.columns) && row < long(grid_.rows);
  }
  double value(long column, long row) const {
    if (!in_grid(column, row)) return -std::numeric_limits<double>::infinity();
    return grid_.values[std::size_t(row) * grid_.columns + std::size_t(column)];
  }

  /// Edges are numbered by their lower or left node: even ones run along a row, odd ones along a column.
  std::int64_t edge_of(long column, long row, Side side) const {
    if (side == top) ++row;
    if (side == right) ++column;
    const bool upright = side == left || side == right;
    return 2 * ((row + 1) * width_ + column + 1) + (upright ? 1 : 0);
  }

  void march(long column, long row) {
    const int inside = (value(column, row) >= level_ ? 1 : 0) + (value(column + 1, row) >= level_ ? 2 : 0) +
                       (value(column + 1, row + 1) >= level_ ? 4 : 0) +
                       (value(column, row + 1) >= level_ ? 8 : 0);
    const Segments& segments = table[std::size_t(inside)];
    for (int i = 0; i < 2; ++i) {
      if (segments.from[i] == none) continue;
      next_[edge_of(column, row, segments.from[i])] = edge_of(column, row, segments.to[i]);
    }
  }

  struct Ends {
    long column, row, other_column, other_row;
  };
  Ends ends(std::int64_t edge) const {
    const long column = long(edge / 2) % width_ - 1, row = long(edge / 2) / width_ - 1;
    return edge % 2 ? Ends{column, row, column, row + 1} : Ends{column, row, column + 1, row};
  }
  bool is_padding(std::int64_t edge) const {
    const Ends e = ends(edge);
    return !in_grid(e.column, e.row) || !in_grid(e.other_column, e.other_row);
  }

  void add(Polyline& line, std::int64_t edge) const {
    const Ends e = ends(edge);
    const double a = value(e.column, e.row), b = value(e.other_column, e.other_row);
    double t = std::isfinite(a) && std::isfinite(b) ? (level_ - a) / (b - a) : (std::isfinite(a) ? 0 : 1);
    const double column = double(e.column) + t * double(e.other_column - e.column);
    const double row = double(e.row) + t * double(e.other_row - e.row);
    line.x.push_back(grid_.x.low + column / double(grid_.columns - 1) * (grid_.x.high - grid_.x.low));
    line.y.push_back(grid_.y.low + row / double(grid_.rows - 1) * (grid_.y.high - grid_.y.low));
  }

  std::int64_t take(std::int64_t edge) {
    const auto found = next_.find(edge);
    const std::int64_t following = found->second;
    next_.erase(found);
    return following;
  }

  /// One whole outline, cut wherever it runs along the border.
  void follow(std::int64_t start, std::vector<Polyline>& result) {
    Polyline line;
    const auto finish = [&] {
      if (line.x.size() > 1) result.push_back(std::move(line));
      line = {};
    };
    std::int64_t edge = start;
    do {
      if (is_padding(edge)) {
        finish();
      } else {
        add(line, edge);
      }
      edge = take(edge);
    } while (edge != start);
    if (!is_padding(start)) add(line, start);
    finish();
  }

  const Grid& grid_;
  double level_;
  long width_;
  std::unordered_map<std::int64_t, std::int64_t> next_;
};

}  // namespace

std::vector<Polyline> region_outlines(const Grid& grid, double level) {
  return Squares(grid, level).outlines();
}

std::vector<Polyline> level_lines(const Grid& grid, double level) { return Squares(grid, level).lines(); }

}  // namespace fathom::report
