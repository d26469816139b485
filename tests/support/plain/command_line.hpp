/// The program under test as a person runs it, for tests of the command line.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace fathom::testing {

struct Outcome {
  int exit_code;
  std::string output;  ///< both streams
};

inline Outcome shell(const std::string& command) {
  FILE* pipe = popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), count);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), output};
}

/// The program's path in quotes, for use in a shell command.
inline std::string program() {
  const char* path = std::getenv("FATHOM_CLI");
  EXPECT_NE(path, nullptr) << "FATHOM_CLI must name the program under test";
  return std::string("'") + (path ? path : "fathom") + "'";
}

inline Outcome run(const std::string& arguments) { return shell(program() + " " + arguments); }

/// Removed with all that is in it at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fathom test XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// A path inside, in quotes for the shell.
  std::string quoted(const std::string& name) const { return "'" + (path_ / name).string() + "'"; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name) << content;
    return quoted(name);
  }

 private:
  std::filesystem::path path_;
};

inline std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace fathom::testing
