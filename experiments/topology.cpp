#include "experiments/topology.hpp"

#include "fathom/support/error.hpp"

namespace fathom::experiments {

namespace {

enum class Neighbours { by_edge, by_edge_or_corner };

class FloodFill {
 public:
  FloodFill(const std::vector<bool>& inside, const GridSize& grid)
      : inside_(inside), grid_(grid), seen_(inside.size(), false) {}

  std::size_t pieces(bool of_inside, Neighbours neighbours) {
    std::size_t count = 0;
    for (std::size_t cell = 0; cell < inside_.size(); ++cell) {
      if (inside_[cell] != of_inside || seen_[cell]) continue;
      fill(cell, neighbours);
      ++count;
    }
    return count;
  }

 private:
  void fill(std::size_t start, Neighbours neighbours) {
    std::vector<std::size_t> open = {start};
    seen_[start] = true;
    while (!open.empty()) {
      const std::size_t cell = open.back();
      open.pop_back();
      const auto row = std::ptrdiff_t(cell / grid_.columns), column = std::ptrdiff_t(cell % grid_.columns);
      for (std::ptrdiff_t down = -1; down <= 1; ++down) {
        for (std::ptrdiff_t right = -1; right <= 1; ++right) {
          if (neighbours == Neighbours::by_edge && down != 0 && right != 0) continue;
          visit(row + down, column + right, inside_[start], open);
        }
      }
    }
  }

  void visit(std::ptrdiff_t row, std::ptrdiff_t column, bool value, std::vector<std::size_t>& open) {
    if (row < 0 || column < 0 || row >= std::ptrdiff_t(grid_.rows) || column >= std::ptrdiff_t(grid_.columns))
      return;
    const std::size_t cell = std::size_t(row) * grid_.columns + std::size_t(column);
    if (seen_[cell] || inside_[cell] != value) return;
    seen_[cell] = true;
    open.push_back(cell);
  }

  const std::vector<bool>& inside_;
  GridSize grid_;
  std::vector<bool> seen_;
};

}  // namespace

Shape shape_of(const std::vector<bool>& inside, const GridSize& grid) {
  require(inside.size() == grid.columns * grid.rows, "a grid of ", grid.columns, " x ", grid.rows,
          " needs as many values, got ", inside.size());
  Shape shape;
  FloodFill fill(inside, grid);
  shape.pieces = fill.pieces(true, Neighbours::by_edge_or_corner);
  shape.outside_pieces = fill.pieces(false, Neighbours::by_edge);
  std::size_t cells = 0;
  for (std::size_t cell = 0; cell < inside.size(); ++cell) {
    const std::size_t row = cell / grid.columns, column = cell % grid.columns;
    const bool at_edge = row == 0 || column == 0 || row + 1 == grid.rows || column + 1 == grid.columns;
    if (!inside[cell]) continue;
    ++cells;
    shape.touches_edge = shape.touches_edge || at_edge;
  }
  shape.area = inside.empty() ? 0 : double(cells) / double(inside.size());
  return shape;
}

}  // namespace fathom::experiments
