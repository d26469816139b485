/// One line that says how far a long computation is: rewritten in place on a terminal, a plain line now and then otherwise.
///
///   Progress progress("vanilla", 1000);
///   progress.update(iteration, "loss 0.12, NFE 26");
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

  void update(std::int64_t done, const std::string& figures);

 private:
  using Clock = std::chrono::steady_clock;

  std::string title_;
  std::int64_t total_;
  bool quiet_;
  bool terminal_;
  bool line_open_ = false;
  Clock::time_point began_ = Clock::now();
  Clock::time_point shown_ = began_;
};

/// "3 s", "2 min 5 s", "1 h 10 min"
std::string duration_text(double seconds);

}  // namespace fathom
