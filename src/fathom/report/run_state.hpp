/// What a run folder tells while its run trains and when it is done. Internal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fathom/report/page.hpp"

namespace fathom::report {

/// A run and the name it is shown by: its path below the folder that was asked for.
struct RunFolder {
  std::string name;
  std::filesystem::path path;
};

/// A folder that is a run, or the runs at most two levels below it, by name.
std::vector<RunFolder> runs_in(const std::filesystem::path& folder);

enum class Stage { training, finished, unfinished };

struct RunState {
  Stage stage = Stage::unfinished;
  std::string experiment;
  std::string facts;    ///< size and seed, or how far it is
  bool report = false;  ///< report.html is there and belongs to these figures
  std::vector<Verdict> verdicts = {};
};

RunState state_of(const std::filesystem::path& run);

/// The course of the training so far, from metrics.jsonl; a last line that is still being written is left out.
std::vector<TrainingCurve> course_of(const std::filesystem::path& run);

/// A page made of metrics.json and metrics.jsonl, for a run without a report.
Page summary_of(const RunFolder& run);

}  // namespace fathom::report
