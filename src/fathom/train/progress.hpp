/// How far a long computation is: a bar rewritten in place on a terminal, a plain line now and then otherwise.
///
///   Progress progress("vanilla", 1000);
///   progress.update(iteration, "loss 0.12  NFE 26");
///
///   vanilla  ██████████░░░░░░░░░░   50 %  500/1000  loss 0.12  NFE 26  410/s  2 s left
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fathom {

class Progress {
 public:
  /// `quiet`: say nothing at all.
  Progress(std::string title, std::int64_t total, bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;

  /// What was done in an earlier sitting; it does not count as this one's speed.
  void start_at(std::int64_t done) { start_ = done; }
  void update(std::int64_t done, const std::string& figures);
  /// A line of its own, above the bar.
  void say(const std::string& message);

 private:
  using Clock = std::chrono::steady_clock;

  std::string title_;
  std::int64_t total_;
  bool quiet_;
  bool terminal_;
  bool line_open_ = false;
  std::int64_t start_ = 0;
  Clock::time_point began_ = Clock::now();
  Clock::time_point shown_ = began_;
};

/// "3 s", "2 min 5 s", "1 h 10 min"
std::string duration_text(double seconds);

/// "██████░░░░" for 0.6 and 10 cells
std::string bar_text(double fraction, int cells);

}  // namespace fathom
