/// Many short solves of a series as one: windows of courses that start at their own times are laid over each other at depth 0,
/// and one solve keeps every time that any of them was observed at.
#pragma once

#include <cstdint>
#include <vector>

#include "fathom/train/learn.hpp"

namespace fathom {

/// Observations first, first + 1, ..., first + later of one course.
struct Window {
  std::size_t course = 0;
  std::int64_t first = 0;
  std::int64_t later = 0;
};

struct WindowOptions {
  std::int64_t length = 8;   ///< observations after the first; 0: to the end of the course
  bool overlapping = false;  ///< one from every observation, or each where the last one ended
};

/// At least one from every course of two or more observations; those at its end may be shorter.
std::vector<Window> all_windows(const std::vector<Course>& courses, const WindowOptions& options);

struct JointTimes {
  std::vector<double> depths;  ///< from 0 up: every time after its window's start
  Tensor starts;               ///< (windows, columns)
  Tensor places;               ///< (observations) int64: depth * windows + window
  Tensor observed;             ///< (observations, columns)
};
JointTimes joint_times(const std::vector<Course>& courses, const std::vector<Window>& windows);

}  // namespace fathom
