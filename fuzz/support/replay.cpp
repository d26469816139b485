/// A short run without libFuzzer: the whole corpus, then seeded mutations of it. replay CORPUS MUTATIONS
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "support/harness.hpp"

namespace {

using Random = std::mt19937_64;

std::size_t below(std::size_t end, Random& random) { return end == 0 ? 0 : std::size_t(random() % end); }

/// One small change, of the kinds that break parsers: bits, sizes, lengths, repetitions, other files' parts.
void mutate(std::string& input, const std::string& other, Random& random) {
  const std::size_t at = below(input.size(), random);
  const std::size_t length = std::min(input.size() - at, 1 + below(16, random));
  constexpr std::string_view telling = "\0\x01\x7F\x80\xFF\",;\n\r\t-+.eE0919{}()'[]:";
  switch (random() % 7) {
    case 0:
      if (!input.empty()) input[at] = char(input[at] ^ (1 << random() % 8));
      break;
    case 1:
      if (!input.empty()) input[at] = telling[below(telling.size(), random)];
      break;
    case 2:
      input.insert(at, std::string(1 + below(8, random), telling[below(telling.size(), random)]));
      break;
    case 3: input.erase(at, length); break;
    case 4: input.insert(at, input.substr(at, length)); break;
    case 5: input.resize(at); break;
    default: {
      const std::size_t from = below(other.size(), random);
      input.insert(at, other.substr(from, 1 + below(64, random)));
    }
  }
}

std::vector<std::filesystem::path> files_in(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: " << argv[0] << " CORPUS MUTATIONS\n", 2;
  std::vector<std::string> corpus;
  bool passed = true;
  for (const auto& file : files_in(argv[1])) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>{});
    const bool accepted = fathom::fuzz::accepts(corpus.back());
    if (!accepted && file.filename().string().starts_with("good")) {
      std::cerr << file.filename() << " must be accepted\n";
      passed = false;
    }
  }
  if (corpus.empty()) return std::cerr << argv[1] << " has no files\n", 1;
  Random random(1);
  std::size_t accepted = 0;
  const long mutations = std::stol(argv[2]);
  for (long i = 0; i < mutations; ++i) {
    std::string input = corpus[below(corpus.size(), random)];
    for (std::size_t changes = 1 + below(6, random); changes > 0; --changes)
      mutate(input, corpus[below(corpus.size(), random)], random);
    if (fathom::fuzz::accepts(input)) ++accepted;
  }
  std::cout << corpus.size() << " files, " << mutations << " mutations, " << accepted
            << " of them accepted\n";
  return passed ? 0 : 1;
}
