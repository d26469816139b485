/// What a model says of its last solve: one report, or one a sample. Several threads may solve with one model; the last one counts.
///
///   reports_.set({solution.shared_report});
///   SolveReport report() const { return reports_.mean(); }
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "fathom/tensor/solver.hpp"

namespace fathom {

/// Means over the samples, rounded up; extremes and times of all.
SolveReport mean_of(const std::vector<std::shared_ptr<SolveReport>>& reports);

class LastReports {
 public:
  void set(std::vector<std::shared_ptr<SolveReport>> reports) {
    const std::lock_guard lock(mutex_);
    reports_.swap(reports);
  }
  SolveReport mean() const {
    const std::lock_guard lock(mutex_);
    return mean_of(reports_);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<SolveReport>> reports_ = {std::make_shared<SolveReport>()};
};

}  // namespace fathom
