/// What a later sitting needs to continue a training bit for bit, as one safetensors file:
///   model.*, before.*, best.*   parameters and buffers: now, before the last step, and at the best validation
///   optimizer.*, random         states of the optimiser and of torch's generator
/// and the counters as JSON in its metadata. The order of data is no part of it: see batches.hpp.
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fathom/tensor/vector_field.hpp"
#include "fathom/train/optimizer.hpp"

namespace fathom {

struct FitState {
  std::int64_t iteration = 0;  ///< iterations done
  double seconds = 0;
  double caution = 1;  ///< factor of the learning rate: halved by a failure, grows back to 1
  std::int64_t failures = 0;
  std::int64_t failures_in_a_row = 0;
  double best_figure = std::numeric_limits<double>::infinity();
  std::int64_t best_iteration = 0;
  std::vector<Tensor> before = {};  ///< tensors_of(model) before the last step; empty at the start
  std::vector<Tensor> best = {};    ///< at the best validation; empty before the first
  OptimizerState optimizer = {};
};

/// Parameters, then buffers, in the order of the module.
std::vector<Tensor> tensors_of(const torch::nn::Module& model);
std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors);
/// Copies values without a trace in the graph.
void assign(const std::vector<Tensor>& to, const std::vector<Tensor>& from);

/// The state, the model's tensors and torch's generator.
void write_checkpoint(const std::filesystem::path& file, const FitState& state,
                      const torch::nn::Module& model);

/// Puts the model and torch's generator where they were. Throws Error when the file is of another model or damaged.
FitState resume_from(const std::filesystem::path& file, torch::nn::Module& model);

/// How many iterations a checkpoint has behind it; none without a file.
std::optional<std::int64_t> checkpoint_iteration(const std::filesystem::path& file);

}  // namespace fathom
