/// Files are replaced as a whole or not at all, whoever else writes them.
#include "fathom/support/whole_file.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/plain/command_line.hpp"

namespace fathom::testing {
namespace {

TEST(WholeFile, HasTheContentOfOneOfTheThreadsThatWriteIt) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "figures.json";
  constexpr std::size_t size = 1 << 18;
  const auto is_whole = [](const std::string& found) {
    return found.size() == size && found.find_first_not_of(found.front()) == std::string::npos;
  };
  write_atomically(file, std::string(size, '0'));
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    threads.emplace_back([&, letter] {
      for (int i = 0; i < 20; ++i) {
        try {
          write_atomically(file, std::string(size, letter));
          if (!is_whole(read_whole(file))) ++failures;
        } catch (const std::exception&) { ++failures; }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(is_whole(read_whole(file)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 1) << "a draft was left";
}

}  // namespace
}  // namespace fathom::testing
