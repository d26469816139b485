/// The optimisers of FitOptions, and their state as named tensors for a checkpoint.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fathom/train/fit.hpp"

namespace fathom {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::vector<Tensor>& parameters,
                                                        const FitOptions& options);

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

/// What the optimiser remembers: "3.exp_avg" is of the fourth parameter. Learning rates and the like are options, not state.
/// (libtorch's own archive cannot store an LBFGS, some of whose tensors are undefined.)
using OptimizerState = std::map<std::string, Tensor>;
OptimizerState state_of(torch::optim::Optimizer& optimizer);

/// Throws Error when the state is of another kind of optimiser or incomplete.
void restore(torch::optim::Optimizer& optimizer, const OptimizerState& state);

}  // namespace fathom
