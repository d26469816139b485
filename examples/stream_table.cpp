/// A table of any size in bounded memory: mean and deviation of every column, a chunk at a time.
///   mean_n = mean_(n-1) + (x_n - mean_(n-1)) / n,   M_n = M_(n-1) + (x_n - mean_(n-1)) (x_n - mean_n),   deviation = sqrt(M_n / n)
/// Without an argument it makes a small table of its own.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "fathom/read/table_reader.hpp"

using namespace fathom;

std::filesystem::path small_table() {
  const auto path = std::filesystem::temp_directory_path() / "fathom_stream_table.csv";
  std::ofstream out(path);
  out << "n,square\n";
  for (int n = 0; n < 10000; ++n) out << n << "," << n * n << "\n";
  return path;
}

int main(int argc, char** argv) {
  const std::filesystem::path path = argc > 1 ? argv[1] : small_table();
  // [stream]
  TableReader reader(open_source(path));
  std::vector<double> means(reader.names().size(), 0.0), squares(means);
  double rows = 0;
  while (const auto chunk = reader.next(10000)) {
    for (std::size_t column = 0; column < means.size(); ++column) {
      double n = rows;
      for (const double x : chunk->columns[column].values) {
        const double before = means[column];
        means[column] += (x - before) / ++n;
        squares[column] += (x - before) * (x - means[column]);
      }
    }
    rows += double(chunk->rows);
  }
  // [/stream]
  std::cout << rows << " rows\n";
  for (std::size_t column = 0; column < means.size(); ++column) {
    std::cout << reader.names()[column] << ": mean " << means[column] << ", deviation "
              << std::sqrt(squares[column] / rows) << "\n";
  }
  return argc > 1 || (rows == 10000 && std::abs(means[0] - 4999.5) < 1e-9) ? 0 : 1;
}
