/// The report of a training run: its course, and what the model does on data it was not trained on.
#pragma once

#include "fathom/report/page.hpp"
#include "settings.hpp"
#include "task_data.hpp"

namespace fathom::app {

/// `log` is the run's metrics.jsonl.
report::Page train_page(Model& model, const TaskData& data, const TrainSettings& settings,
                        const Figures& figures, const std::filesystem::path& log);

}  // namespace fathom::app
