#include "fathom/train/windows.hpp"

#include <algorithm>

namespace fathom {

namespace {

// Differences of equally spaced times differ in their last digits; times closer than this part of the longest are one.
constexpr double same_time = 1e-9;

std::vector<double> merged(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const double apart = same_time * times.back();
  std::vector<double> kept;
  for (const double time : times) {
    if (kept.empty() || time > kept.back() + apart) kept.push_back(time);
  }
  return kept;
}

/// The index of the kept time that `time` was merged into.
std::int64_t place_of(double time, const std::vector<double>& kept) {
  const auto above = std::upper_bound(kept.begin(), kept.end(), time);
  return above - kept.begin() - 1;
}

}  // namespace

std::vector<Window> all_windows(const std::vector<Course>& courses, const WindowOptions& options) {
  std::vector<Window> windows;
  for (std::size_t i = 0; i < courses.size(); ++i) {
    const auto last = std::int64_t(courses[i].times.size()) - 1;
    const std::int64_t length = options.length == 0 ? last : std::min(options.length, last);
    if (length < 1) continue;
    const std::int64_t stride = options.overlapping && options.length > 0 ? 1 : length;
    for (std::int64_t first = 0; first < last; first += stride) {
      const bool whole = first + length <= last;
      if (whole || !options.overlapping) windows.push_back({i, first, std::min(length, last - first)});
    }
  }
  return windows;
}

JointTimes joint_times(const std::vector<Course>& courses, const std::vector<Window>& windows) {
  const auto time = [&](const Window& window, std::int64_t later) {
    const auto& times = courses[window.course].times;
    return times[std::size_t(window.first + later)] - times[std::size_t(window.first)];
  };
  std::vector<double> all = {0};
  for (const Window& window : windows) {
    for (std::int64_t j = 1; j <= window.later; ++j) all.push_back(time(window, j));
  }
  JointTimes joint{.depths = merged(std::move(all))};
  std::vector<Tensor> starts, observed;
  std::vector<std::int64_t> places;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const Window& window = windows[w];
    const Tensor& states = courses[window.course].states;
    starts.push_back(states[window.first]);
    observed.push_back(states.narrow(0, window.first + 1, window.later));
    for (std::int64_t j = 1; j <= window.later; ++j)
      places.push_back(place_of(time(window, j), joint.depths) * std::int64_t(windows.size()) +
                       std::int64_t(w));
  }
  joint.starts = torch::stack(starts);
  joint.observed = torch::cat(observed);
  joint.places = torch::tensor(places);
  return joint;
}

}  // namespace fathom
