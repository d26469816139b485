/// A training loop: loss, gradients, optimiser step, with the work of every iteration counted.
///
///   fit(*model, [&](std::int64_t) { return torch::mse_loss(model->forward(x), y); }, {.iterations = 500});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fathom/ode/report.hpp"
#include "fathom/tensor/vector_field.hpp"

namespace fathom {

enum class Optimizer { adam, adamw, sgd };

/// What is known after one iteration.
struct FitRecord {
  std::int64_t iteration = 0;  ///< the first is 1
  double loss = 0;
  std::int64_t evaluations = 0;  ///< of the field, forwards; 0 without `FitOptions::report`
  std::int64_t backward_evaluations = 0;
  double seconds = 0;  ///< since the training began
};

struct FitOptions {
  std::int64_t iterations = 1000;
  Optimizer optimizer = Optimizer::adamw;
  double learning_rate = 1e-3;
  double weight_decay = 0;
  /// The report of the model's solve, so that evaluations are counted.
  std::function<ode::SolveReport()> report = {};
  /// Called after every iteration; returns whether to go on.
  std::function<bool(const FitRecord&)> observer = {};
  std::string title = "training";
  bool quiet = false;
};

/// One entry an iteration.
struct FitHistory {
  std::vector<double> losses;
  std::vector<std::int64_t> evaluations;  ///< forwards; 0 without `report`
  std::vector<std::int64_t> backward_evaluations;
  double seconds = 0;
};

/// `loss` gets the number of the iteration and returns a scalar. Throws Error when the loss is not finite.
FitHistory fit(torch::nn::Module& model, const std::function<Tensor(std::int64_t iteration)>& loss,
               const FitOptions& options = {});

std::int64_t parameter_count(const torch::nn::Module& model);

}  // namespace fathom
