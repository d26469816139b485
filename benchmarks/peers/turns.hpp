/// What fathom's programs of the comparison share: the steps of a work and the protocol of serve.py, that is: one JSON line when a program is warm, then, for each line on its standard input, a turn of iterations,
/// answered by `milliseconds evaluations loss`.
#pragma once

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fathom/ode/steps.hpp"

inline fathom::ode::AdaptiveSteps steps_of(const nlohmann::json& work) {
  fathom::ode::AdaptiveSteps steps{.relative_tolerance = work["rtol"], .absolute_tolerance = work["atol"]};
  if (!work["first_step"].is_null()) steps.first_step = work["first_step"].get<double>();
  return steps;
}

/// `iterate` returns the loss, `evaluations` the forward evaluations of the last iteration. A turn takes at least so many seconds; its
/// figure is the median of its iterations.
template <class Iterate, class Evaluations>
void take_turns(const std::string& version, double turn_seconds, Iterate&& iterate,
                Evaluations&& evaluations) {
  for (int warm_up = 0; warm_up < 3; ++warm_up) iterate();
  std::cout << nlohmann::json{{"version", version}} << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<double> times;
    double loss = 0, spent = 0;
    do {
      const auto began = std::chrono::steady_clock::now();
      loss = iterate();
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
      spent += times.back();
    } while (spent < turn_seconds);
    std::nth_element(times.begin(), times.begin() + std::ptrdiff_t(times.size() / 2), times.end());
    std::cout << times[times.size() / 2] * 1e3 << " " << evaluations() << " " << std::setprecision(8) << loss
              << std::setprecision(6) << std::endl;
  }
}
