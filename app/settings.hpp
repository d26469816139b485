/// All that `fathom train` can be told, by flags or by a config.toml with the same names.
///
/// describe() is the one list of settings: flags, the reader of config.toml, its writer and its errors all follow from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::app {

using Words = std::vector<std::string>;

struct TrainSettings {
  std::string data;
  std::string task = "auto";
  std::string label;
  Words target;
  Words inputs;
  Words ignore;
  std::string time;
  std::string series;
  std::string missing = "refuse";
  double validation = 0.2;
  double test = 0;

  std::string model = "mlp 32";
  std::string activation = "tanh";
  std::string augment = "none";
  std::string field = "invariant";
  std::int64_t order = 1;
  std::string velocities = "zero";
  std::string head = "auto";
  double depth = 1;
  std::string precision = "float32";

  std::string solver = "dopri5";
  double rtol = 1e-4;
  double atol = 0;
  std::int64_t steps = 0;
  double step_size = 0;
  bool steps_per_sample = false;
  std::string gradient = "discrete";

  std::string loss = "auto";
  double kinetic = 0;
  std::int64_t window = 8;
  std::int64_t iterations = 1000;
  std::int64_t batch = 0;
  std::string optimizer = "adamw";
  double learning_rate = 0;
  double weight_decay = 0;
  double momentum = 0;
  std::string schedule = "constant";
  std::int64_t warm_up = 0;
  double clip = 0;
  std::int64_t validate_every = 25;
  std::int64_t patience = 0;
  double time_budget = 0;
  double checkpoint_every = 10;
  std::uint64_t seed = 0;
};

/// Calls `visit.group(title)` and `visit(name, member, what it means)` for every setting, in the order of the help.
template <class Settings, class Visitor> void describe(Settings& settings, Visitor&& visit) {
  visit.group("Data");
  visit("data", settings.data, "Table with a header: .csv or .tsv");
  visit("task", settings.task,
        "classification, regression, series or density; auto: by the columns named below");
  visit("label", settings.label, "Classification: the column of classes");
  visit("target", settings.target, "Regression: the column(s) to predict, separated by commas");
  visit("time", settings.time, "Series: the column of times, which may be irregular");
  visit("series", settings.series, "Series: the column that tells several series apart");
  visit("inputs", settings.inputs, "Columns to use; default: all others");
  visit("ignore", settings.ignore, "Columns to leave out");
  visit("missing", settings.missing, "Empty cells: refuse, or drop their rows");
  visit("validation", settings.validation,
        "Fraction of rows held out to select the best parameters; 0: none");
  visit("test", settings.test, "Fraction of rows kept apart and judged once, at the end");

  visit.group("Model");
  visit("model", settings.model, "Network of the field: `mlp` and its hidden widths");
  visit("activation", settings.activation, "tanh, relu, softplus, elu, sigmoid, silu or identity");
  visit("augment", settings.augment, "z(0): none, zero:N, input:N or partial:N");
  visit("field", settings.field,
        "Parts joined by +: invariant, concat, galerkin:BASIS:N, stacked:N, hyper:N; control, "
        "control:addition");
  visit("order", settings.order, "2: positions and velocities");
  visit("velocities", settings.velocities, "Initial velocities: zero or learned");
  visit("head", settings.head, "linear or none; auto: linear where there are labels or targets");
  visit("depth", settings.depth, "Depth S at which the flow ends");
  visit("precision", settings.precision, "float32 or float64");

  visit.group("Solver");
  visit("solver", settings.solver, "A method of `fathom solvers`");
  visit("rtol", settings.rtol, "Relative tolerance");
  visit("atol", settings.atol, "Absolute tolerance; 0: as rtol");
  visit("steps", settings.steps, "Fixed steps over the depth; 0: adaptive");
  visit("step-size", settings.step_size, "Fixed steps of this size; 0: adaptive");
  visit("steps-per-sample", settings.steps_per_sample,
        "Adaptive steps of each row's own: slower, but an answer does not depend on the rows beside it");
  visit("gradient", settings.gradient, "discrete, adjoint, interpolated-adjoint or unrolled");

  visit.group("Training");
  visit("loss", settings.loss, "mse, l1, huber, cross-entropy or likelihood; auto: by the task");
  visit("kinetic", settings.kinetic, "Weight of the running loss |f|^2, for flows that are easy to solve");
  visit("window", settings.window,
        "Series: observations that are predicted from one start; 0: the whole series");
  visit("iterations", settings.iterations, "Steps of the optimiser");
  visit("batch", settings.batch, "Rows (series: windows) an iteration; 0: all rows, or 32 windows");
  visit("optimizer", settings.optimizer, "adam, adamw, sgd or lbfgs");
  visit("learning-rate", settings.learning_rate, "Learning rate; 0: 1 for lbfgs, 0.01 for the others");
  visit("weight-decay", settings.weight_decay, "Weight decay (adam, adamw, sgd)");
  visit("momentum", settings.momentum, "Momentum (sgd)");
  visit("schedule", settings.schedule, "constant, step:EVERY:FACTOR, cosine or cosine:FLOOR");
  visit("warm-up", settings.warm_up, "Iterations in which the learning rate rises");
  visit("clip", settings.clip, "Largest norm of the gradient; 0: any");
  visit("validate-every", settings.validate_every, "Iterations between validations");
  visit("patience", settings.patience, "Stop after so many validations without a new best; 0: never");
  visit("time-budget", settings.time_budget, "Seconds of training; 0: no limit");
  visit("checkpoint-every", settings.checkpoint_every, "Seconds between checkpoints");
  visit("seed", settings.seed, "Seed of the split, the initial weights and the order of data");
}

/// Throws InvalidArgument with one sentence; an unknown key names the nearest. A relative `data` is beside the file.
TrainSettings read_settings(const std::filesystem::path& file);

/// The settings as a config.toml.
std::string settings_text(const TrainSettings& settings);

}  // namespace fathom::app
