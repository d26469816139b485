/// Evenly spread streamlines, in the manner of Jobard and Lefer (1997) with a mask of cells for the distance: a line may
/// not enter a cell that another line went through, and a new one starts in an empty cell.
#include <cmath>
#include <numeric>
#include <optional>

#include "fathom/report/geometry.hpp"
#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

/// A position or direction in the window scaled to the unit square.
struct Point {
  double x, y;
};

/// The field's direction by bilinear interpolation; nothing where it stands still or is not a number.
class Direction {
 public:
  explicit Direction(const VectorGrid& field) : field_(field) {
    require(field.columns >= 2 && field.rows >= 2 && field.u.size() == field.columns * field.rows &&
                field.v.size() == field.u.size(),
            "a vector grid needs at least 2 x 2 values of u and v, got ", field.columns, " x ", field.rows,
            " nodes with ", field.u.size(), " and ", field.v.size(), " values");
    double largest = 0;
    for (std::size_t i = 0; i < field.u.size(); ++i) {
      const double speed = std::hypot(across(field.u[i]), up(field.v[i]));
      if (std::isfinite(speed)) largest = std::max(largest, speed);
    }
    standstill_ = 1e-3 * largest;
  }

  std::optional<Point> at(Point p) const {
    if (p.x < 0 || p.y < 0 || p.x > 1 || p.y > 1) return {};
    const double x = p.x * double(field_.columns - 1), y = p.y * double(field_.rows - 1);
    const std::size_t column = std::min(std::size_t(x), field_.columns - 2);
    const std::size_t row = std::min(std::size_t(y), field_.rows - 2);
    const double a = x - double(column), b = y - double(row);
    const auto blend = [&](const std::vector<double>& values) {
      const double* corner = values.data() + row * field_.columns + column;
      return (1 - b) * ((1 - a) * corner[0] + a * corner[1]) +
             b * ((1 - a) * corner[field_.columns] + a * corner[field_.columns + 1]);
    };
    const Point d{across(blend(field_.u)), up(blend(field_.v))};
    const double speed = std::hypot(d.x, d.y);
    if (!(speed > standstill_)) return {};
    return Point{d.x / speed, d.y / speed};
  }

 private:
  double across(double u) const { return u / (field_.x.high - field_.x.low); }
  double up(double v) const { return v / (field_.y.high - field_.y.low); }

  const VectorGrid& field_;
  double standstill_ = 0;
};

class Canvas {
 public:
  Canvas(const VectorGrid& field, int density)
      : direction_(field), cells_(density), owner_(std::size_t(density * density), 0) {}

  std::vector<std::vector<Point>> lines() {
    const int count = cells_ * cells_;
    // A stride prime to the count visits every cell once and jumps about, so that no corner is favoured.
    int stride = int(0.618 * count) | 1;
    while (std::gcd(stride, count) != 1) stride += 2;
    std::vector<std::vector<Point>> result;
    for (int i = 0; i < count; ++i) {
      const int cell = int((long(i) * stride) % count);
      if (owner_[std::size_t(cell)] != 0) continue;
      std::vector<Point> line =
          line_through({(cell % cells_ + 0.5) / cells_, (cell / cells_ + 0.5) / cells_});
      if (double(line.size()) * step > shortest)
        result.push_back(std::move(line));
      else
        release();
      ++line_;
    }
    return result;
  }

 private:
  static constexpr double step = 0.008, shortest = 0.1, longest = 1.2;

  std::vector<Point> line_through(Point seed) {
    visited_.clear();
    claim(seed);
    std::vector<Point> backward = half(seed, -1), forward = half(seed, 1);
    std::vector<Point> line(backward.rbegin(), backward.rend());
    line.push_back(seed);
    line.insert(line.end(), forward.begin(), forward.end());
    return line;
  }

  std::vector<Point> half(Point p, double sign) {
    std::vector<Point> line;
    while (double(line.size()) * step < longest) {
      const auto d = direction_.at(p);
      if (!d) break;
      const auto middle = direction_.at({p.x + sign * step / 2 * d->x, p.y + sign * step / 2 * d->y});
      if (!middle) break;
      p = {p.x + sign * step * middle->x, p.y + sign * step * middle->y};
      if (p.x < 0 || p.y < 0 || p.x > 1 || p.y > 1 || !claim(p)) break;
      line.push_back(p);
    }
    return line;
  }

  /// Whether the cell of `p` is this line's, now or already; it is not where another line went through.
  bool claim(Point p) {
    const int column = std::min(int(p.x * cells_), cells_ - 1), row = std::min(int(p.y * cells_), cells_ - 1);
    const std::size_t cell = std::size_t(row * cells_ + column);
    if (owner_[cell] == line_) return true;
    if (owner_[cell] != 0) return false;
    owner_[cell] = line_;
    visited_.push_back(cell);
    return true;
  }
  void release() {
    for (const std::size_t cell : visited_) owner_[cell] = 0;
  }

  Direction direction_;
  int cells_;
  std::vector<int> owner_;  // (cells * cells,): 0 for nobody
  std::vector<std::size_t> visited_;
  int line_ = 1;
};

}  // namespace

std::vector<Polyline> streamlines(const VectorGrid& field, int density) {
  require(density >= 2, "`density` needs at least 2 cells, got ", density);
  std::vector<Polyline> result;
  for (const auto& line : Canvas(field, density).lines()) {
    Polyline scaled;
    for (const Point& p : line) {
      scaled.x.push_back(field.x.low + p.x * (field.x.high - field.x.low));
      scaled.y.push_back(field.y.low + p.y * (field.y.high - field.y.low));
    }
    result.push_back(std::move(scaled));
  }
  return result;
}

}  // namespace fathom::report
