#include "fathom/sensitivity/program_tensors.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

namespace fathom {

namespace {

/// Activations of a thread are kept for the way back while they are few; beyond that, reading them back from memory costs as
/// much as computing them again.
constexpr std::int64_t activation_budget = 8 * 1024 * 1024;
/// Rates are few: from them the way back finds the arguments of all stages, and only what it needs of the layers between.
constexpr std::int64_t rate_budget = 64 * 1024 * 1024;

}  // namespace

int threads_for(std::int64_t batch) { return batch <= 16 ? 1 : at::get_num_threads(); }

fused::EngineOptions engine_options(const Solver& solver) {
  fused::EngineOptions options{.method = solver.method};
  if (const auto* adaptive = std::get_if<AdaptiveSteps>(&solver.steps)) options.adaptive = *adaptive;
  return options;
}

void keep_for_gradient(const Discrete& how, int threads, fused::EngineOptions& options) {
  const Keep keep = kept_for(how);
  options.keeps_starts = true;
  options.keep_every = keep.every;
  options.keep_budget = keep.budget;
  if (keep.every == 1 && keep.budget == 0) {
    options.activation_budget = activation_budget * threads;
    options.rate_budget = rate_budget;
  }
}

std::vector<Tensor> contiguous(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  result.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    result.push_back(tensor.is_contiguous() ? tensor : tensor.detach().contiguous());
  }
  return result;
}

std::vector<std::ptrdiff_t> places_of(const std::vector<Tensor>& tensors,
                                      const std::vector<Tensor>& parameters) {
  std::vector<std::ptrdiff_t> places;
  places.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const Tensor& parameter) { return parameter.is_same(tensor); });
    places.push_back(found == parameters.end() ? -1 : found - parameters.begin());
  }
  return places;
}

ProgramTensors::ProgramTensors(const VectorField& field)
    : tensors_(contiguous(field.lowered.tensors)),
      parameter_of_(places_of(field.lowered.tensors, field.parameters)),
      is_input_(tensors_.size(), false) {
  numbers_.reserve(tensors_.size());
  for (const Tensor& tensor : tensors_) numbers_.push_back(tensor.storage());
  for (const fused::SampleInput& input : field.lowered.program->inputs)
    is_input_[std::size_t(input.tensor)] = true;
}

void ProgramTensors::own_inputs() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (is_input_[i]) tensors_[i] = tensors_[i].detach().clone();
  }
}

bool ProgramTensors::wants_inputs(const Wanted& wanted) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (is_input_[i] && is_wanted(i, wanted)) return true;
  }
  return false;
}

bool ProgramTensors::wants_weights(const Wanted& wanted) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!is_input_[i] && is_wanted(i, wanted)) return true;
  }
  return false;
}

std::optional<std::size_t> ProgramTensors::wanted_place(const fused::SampleInput& input,
                                                        const Wanted& wanted) const {
  const std::size_t tensor = std::size_t(input.tensor);
  if (!is_wanted(tensor, wanted)) return {};
  return std::size_t(parameter_of_[tensor]);
}

}  // namespace fathom
