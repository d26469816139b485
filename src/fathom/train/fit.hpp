/// A training loop: loss, gradients, optimiser step, with the work of every iteration counted.
///
///   fit(*model, [&](std::int64_t) { return torch::mse_loss(model->forward(x), y); }, {.iterations = 500});
///
/// An iteration whose solve fails, or whose loss is not finite, is no end: the parameters go back to where they were before
/// the last step, the optimiser starts afresh, and the learning rate is halved until things go well again. Wrong arguments and
/// exceptions of the field itself end the training at once: no other step would mend them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fathom/ode/report.hpp"
#include "fathom/tensor/vector_field.hpp"
#include "fathom/train/schedule.hpp"

namespace fathom {

enum class Optimizer {
  adam,
  adamw,
  sgd,
  lbfgs  ///< with a strong Wolfe line search; for the same loss every iteration; learning rate 1 is usual
};

/// Named figures in the order they are shown.
using Figures = std::vector<std::pair<std::string, double>>;

/// What is known after one iteration.
struct FitRecord {
  std::int64_t iteration = 0;    ///< the first is 1
  double loss = 0;               ///< NaN when the iteration failed
  std::int64_t evaluations = 0;  ///< of the field, forwards; 0 without `FitOptions::report`
  std::int64_t backward_evaluations = 0;
  double seconds = 0;  ///< since the training began, earlier sittings included
  double learning_rate = 0;
  Figures validation = {};  ///< where this iteration ended with one
};

/// How the model does on data it is not trained on. The first figure is to be small: it decides which parameters are kept, where it is a
/// number and not NaN.
struct Validation {
  std::function<Figures()> figures = {};
  std::int64_t every = 50;    ///< iterations
  std::int64_t patience = 0;  ///< stop after so many validations without a new best; 0: never
};

/// All that a later sitting needs to go on bit for bit (one thread), in one file that is replaced atomically.
struct Checkpoint {
  std::filesystem::path file = {};  ///< empty: none
  double every_seconds = 10;        ///< and at the end, whatever ended it
  bool resume = false;              ///< go on from the file if it is there
};

struct FitOptions {
  std::int64_t iterations = 1000;
  Optimizer optimizer = Optimizer::adamw;
  double learning_rate = 1e-3;
  double weight_decay = 0;
  double momentum = 0;  ///< of sgd
  Schedule schedule = {};
  double largest_gradient =
      0;                   ///< a longer gradient (2-norm over all parameters) is scaled to this; 0: no limit
  double time_budget = 0;  ///< seconds; 0: no limit
  std::int64_t failure_limit = 10;  ///< failed iterations in a row that end the training with an Error
  Validation validation = {};
  Checkpoint checkpoint = {};
  /// The report of the model's solve, so that evaluations are counted.
  std::function<ode::SolveReport()> report = {};
  /// Called after every iteration; returns whether to go on.
  std::function<bool(const FitRecord&)> observer = {};
  std::string title = "training";
  bool quiet = false;
};

enum class FitEnd { iterations_done, stopped_by_observer, out_of_time, no_improvement };

/// One entry an iteration, of this sitting.
struct FitHistory {
  std::vector<double> losses;
  std::vector<std::int64_t> evaluations;  ///< forwards; 0 without `report`
  std::vector<std::int64_t> backward_evaluations;
  double seconds = 0;
  std::int64_t iteration = 0;  ///< the last, counted over all sittings
  std::int64_t failures = 0;   ///< iterations that were taken back
  FitEnd end = FitEnd::iterations_done;
  std::optional<std::int64_t> best_iteration = {};  ///< whose parameters the model has now, with a validation
};

/// `loss` gets the number of the iteration, from 0, and returns a scalar; the same number must mean the same loss, or a
/// resumed run is another one. With a validation the model ends with its best parameters, else with its last.
FitHistory fit(torch::nn::Module& model, const std::function<Tensor(std::int64_t iteration)>& loss,
               const FitOptions& options = {});

std::int64_t parameter_count(const torch::nn::Module& model);

}  // namespace fathom
