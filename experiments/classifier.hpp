/// A Neural ODE with a linear layer on z(S) that tells two classes apart: what most experiments in the plane train.
///
///   Classifier model("vanilla", autonomous(net), run.ode());
///   model.train(run, training, run.count("iterations"));
#pragma once

#include <string>

#include "experiments/run.hpp"
#include "fathom/data/labelled.hpp"
#include "fathom/train/batches.hpp"

namespace fathom::experiments {

struct Classifier {
  Classifier(std::string model_name, const Field& field, const NeuralOdeOptions& options);

  /// Score above 0: the second class. (batch)
  Tensor score(const Tensor& x) { return whole->forward(x).squeeze(1); }
  /// The logistic loss of the scores; labels are 0 and 1.
  Tensor loss(const Labelled& batch);
  double accuracy(const Labelled& samples);
  /// On batches of the setting `batch`.
  void train(Run& run, const Labelled& samples, std::int64_t iterations);
  ode::SolveReport report() const { return ode->report(); }

  std::string name;
  NeuralOde ode;
  torch::nn::Sequential whole;
};

/// Every epoch a new order of the samples.
Batches batches_of(const Labelled& samples, const Run& run);
/// The rows that an iteration sees.
Labelled batch_of(const Labelled& samples, const Tensor& rows);

}  // namespace fathom::experiments
