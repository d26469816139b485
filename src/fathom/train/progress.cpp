#include "fathom/train/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

constexpr double terminal_pause = 0.1;  // seconds between two updates: the eye needs no more
constexpr double plain_pause = 2.0;     // in a log file, lines should stay few
constexpr int bar_cells = 20;

/// Columns of the terminal; a longer line would wrap and could not be rewritten.
std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string speed_text(double per_second) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(per_second < 10 ? 1 : 0) << per_second << "/s";
  return out.str();
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = std::int64_t(std::ceil(std::max(0.0, seconds)));
  if (whole < 60) return text(whole, " s");
  if (whole < 3600) return text(whole / 60, " min ", whole % 60, " s");
  return text(whole / 3600, " h ", whole % 3600 / 60, " min");
}

std::string bar_text(double fraction, int cells) {
  const int full = int(std::clamp(fraction, 0.0, 1.0) * cells);
  std::string bar;
  for (int i = 0; i < cells; ++i) bar += i < full ? "█" : "░";
  return bar;
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
  const double speed = elapsed > 0 ? double(done - start_) / elapsed : 0;
  const double left = speed > 0 ? double(total_ - done) / speed : 0;
  const std::string time = done < total_ ? duration_text(left) + " left" : duration_text(elapsed);
  const std::string line = text(done, "/", total_, "  ", figures, "  ", speed_text(speed), "  ", time);
  if (!terminal_) {
    std::cerr << title_ << "  " << line << std::endl;
    return;
  }
  const double fraction = total_ > 0 ? double(done) / double(total_) : 1;
  const std::string percent = text(std::setw(5), std::int64_t(100 * fraction), " %  ");
  const std::size_t before = title_.size() + 2 + bar_cells + percent.size();
  const std::size_t room = terminal_width() > before + 1 ? terminal_width() - before - 1 : 0;
  std::cerr << "\r\033[K" << title_ << "  " << bar_text(fraction, bar_cells) << percent
            << line.substr(0, room) << std::flush;
  line_open_ = true;
}

void Progress::say(const std::string& message) {
  if (quiet_) return;
  std::cerr << (line_open_ ? "\r\033[K" : "") << title_ << "  " << message << std::endl;
  line_open_ = false;
}

}  // namespace fathom
