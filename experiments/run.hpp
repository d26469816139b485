/// One run of an experiment: settings in; figures, verdicts and a page out.
///
///   run.train("vanilla", *model, loss, {.report = [&] { return ode->report(); }});
///   run.note("vanilla", "accuracy", accuracy);
///   run.claim_above("vanilla separates the rings", accuracy, 0.99);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/experiment.hpp"
#include "fathom/model/neural_ode.hpp"
#include "fathom/report/page.hpp"
#include "fathom/train/fit.hpp"
#include "fathom/train/metrics_log.hpp"
#include "fathom/train/run_folder.hpp"

namespace fathom::experiments {

/// Throws InvalidArgument, naming the nearest, where `set` has a setting that the experiment does not have.
void check_settings(const Experiment& experiment, const std::map<std::string, double>& set);
/// The same for choices and their values.
void check_choices(const Experiment& experiment, const std::map<std::string, std::string>& chosen);

class Run {
 public:
  /// Checks the settings and seeds torch.
  Run(const Experiment& experiment, const RunOptions& options);

  const std::string& choice(const std::string& name) const;
  const std::filesystem::path& images() const { return options_.images; }
  double number(const std::string& setting) const;
  std::int64_t count(const std::string& setting) const;
  std::uint64_t seed() const { return options_.seed; }
  /// For data that is drawn afresh: another stream for every number, the same for every model.
  std::uint64_t seed_of(std::int64_t draw) const;

  /// dopri5 at the setting `tolerance`, or what the command line asked for.
  Solver solver() const;
  NeuralOdeOptions ode() const { return {.solver = solver(), .sensitivity = sensitivity()}; }
  std::string gradient_name() const;
  Sensitivity sensitivity() const { return options_.sensitivity.value_or(Discrete{}); }

  /// Trains for `iterations` at `learning-rate` and `weight-decay` of the settings, logs the course and saves the model.
  /// What `how` sets of optimiser, report and (if not 0) learning rate counts before that.
  struct How {
    std::function<ode::SolveReport()> report = {};
    Optimizer optimizer = Optimizer::adam;
    double learning_rate = 0;
    Schedule schedule = {};
    std::int64_t iterations = 0;
    std::int64_t counted = 1;      ///< last iterations that the figure NFE is the mean of
    double time_budget = 0;        ///< seconds; 0: no limit
    bool has_checkpoints = false;  ///< a later run may go on where this one was interrupted
  };
  FitHistory train(const std::string& model, torch::nn::Module& module,
                   const std::function<Tensor(std::int64_t iteration)>& loss, const How& how);

  /// One iteration of a loop of the experiment's own.
  void log(const std::string& model, const FitRecord& record);

  void note(const std::string& model, const std::string& figure, double value);
  /// A claim holds when its value is below (above, at least) the threshold.
  void claim_below(const std::string& claim, double value, double threshold);
  void claim_above(const std::string& claim, double value, double threshold);
  /// A claim that is true or false: value 1 or 0, threshold 1.
  void claim_true(const std::string& claim, bool holds);

  /// Figures of one section stay together, sections in the order they were first named.
  void show(const std::string& section, report::Figure figure);
  void show(const std::string& section, report::Table table);

  /// Losses and evaluations of a model that was trained.
  const FitHistory& course(const std::string& model) const;
  /// A figure that was noted.
  double figure(const std::string& model, const std::string& name) const;
  double final_loss(const std::string& model) const { return course(model).losses.back(); }
  const RunMetrics& metrics() const { return metrics_; }
  /// Claim, verdicts, configuration, the figures shown, training curves and the table of all models.
  report::Page page() const;
  /// Settings that differ from the paper's: "batch 256 (paper: 4096)".
  std::vector<std::string> deviations() const;

 private:
  Experiment experiment_;
  RunOptions options_;
  RunMetrics metrics_;
  struct Course {
    std::string model;
    FitHistory history;
  };
  Course& course_of(const std::string& model);
  /// Where a resumed run goes on: courses, and the log without what follows the checkpoints.
  void take_up();
  std::string settings_text() const;
  report::Section training_section() const;
  report::Section& section_of(const std::string& title);

  std::vector<Course> courses_;
  std::vector<report::Section> sections_;
  std::unique_ptr<MetricsLog> log_;
};

}  // namespace fathom::experiments
