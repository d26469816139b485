#include "fathom/report/process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

/// An unnamed file in the temporary folder: unlike a pipe it never blocks, whatever its size.
class Scratch {
 public:
  explicit Scratch(const std::string& content = {}) : file_(std::tmpfile()) {
    if (!file_) throw Error(text("cannot make a temporary file: ", std::strerror(errno)));
    std::fwrite(content.data(), 1, content.size(), file_);
    std::fflush(file_);
    std::rewind(file_);
  }
  ~Scratch() { std::fclose(file_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  int descriptor() const { return fileno(file_); }
  std::string content() const {
    std::rewind(file_);
    std::string result;
    char buffer[4096];
    while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file_))
      result.append(buffer, count);
    return result;
  }

 private:
  FILE* file_;
};

}  // namespace

std::string found_program(const std::string& name) {
  const char* folders = std::getenv("PATH");
  std::istringstream list(folders ? folders : "/usr/bin:/bin");
  for (std::string folder; std::getline(list, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

void run_program(const std::vector<std::string>& arguments, const std::string& input) {
  const Scratch in(input), complaints;
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error(text("cannot start `", arguments.front(), "`: ", std::strerror(errno)));
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(in.descriptor(), 0);
    dup2(nowhere, 1);
    dup2(complaints.descriptor(), 2);
    execv(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::string said = complaints.content();
  throw Error(
      text("`", arguments.front(), "` failed: ", said.substr(said.size() > 400 ? said.size() - 400 : 0)));
}

}  // namespace fathom::report
