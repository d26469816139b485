#include "fathom/train/progress.hpp"

#include <unistd.h>

#include <cmath>
#include <iostream>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

constexpr double terminal_pause = 0.1;  // seconds between two updates: the eye needs no more
constexpr double plain_pause = 2.0;     // in a log file, lines should stay few

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = std::int64_t(std::ceil(std::max(0.0, seconds)));
  if (whole < 60) return text(whole, " s");
  if (whole < 3600) return text(whole / 60, " min ", whole % 60, " s");
  return text(whole / 3600, " h ", whole % 3600 / 60, " min");
}

Progress::Progress(std::string title, std::int64_t total, bool quiet)
    : title_(std::move(title)), total_(total), quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (line_open_) std::cerr << std::endl;
}

void Progress::update(std::int64_t done, const std::string& figures) {
  if (quiet_) return;
  const auto now = Clock::now();
  const double since = std::chrono::duration<double>(now - shown_).count();
  if (since < (terminal_ ? terminal_pause : plain_pause) && done < total_) return;
  shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - began_).count();
  const double left = done > 0 ? elapsed * double(total_ - done) / double(done) : 0;
  const std::string time = done < total_ ? duration_text(left) + " left" : duration_text(elapsed);
  const std::string line = text(title_, "  ", done, "/", total_, "  ", figures, "  ", time);
  if (terminal_) {
    std::cerr << "\r\033[K" << line << std::flush;
    line_open_ = true;
  } else {
    std::cerr << line << std::endl;
  }
}

}  // namespace fathom
