#include "fathom/train/adam.hpp"

#include <cmath>
#include <optional>
#include <tuple>

#include "fathom/fused/kernels.hpp"
#include "fathom/support/error.hpp"
#include "fathom/tensor/torch_version.hpp"

namespace fathom {

namespace {

using torch::Tensor;
using torch::optim::OptimizerParamGroup;

bool is_plain(const Tensor& parameter) {
  const Tensor& gradient = parameter.grad();
  const auto type = parameter.scalar_type();
  return !gradient.defined() ||
         (parameter.device().is_cpu() && !gradient.is_sparse() && parameter.is_contiguous() &&
          gradient.is_contiguous() && gradient.scalar_type() == type &&
          (type == torch::kFloat32 || type == torch::kFloat64));
}

void check_not_empty(const std::vector<OptimizerParamGroup>& groups) {
  for (const OptimizerParamGroup& group : groups) {
    if (!group.params().empty()) return;
  }
  throw InvalidArgument(
      "the optimiser has no parameters to train, got an empty list; is what is to learn registered in a "
      "module, "
      "or given to own_field() in `modules` or `parameters`?");
}

template <class Options> bool all_plain(std::vector<OptimizerParamGroup>& groups) {
  for (OptimizerParamGroup& group : groups) {
    if (static_cast<Options&>(group.options()).amsgrad()) return false;
    for (const Tensor& parameter : group.params()) {
      if (!is_plain(parameter)) return false;
    }
  }
  return true;
}

enum class Decay { of_gradient, of_value };

/// What a step is for all parameters that have had as many: nearly always all of them.
struct CommonStep {
  template <class Options>
  CommonStep(const Options& options, Decay decay, std::int64_t steps_)
      : steps(steps_),
        beta1(std::get<0>(options.betas())),
        beta2(std::get<1>(options.betas())),
        // The means begin at 0, which 1 - beta^steps makes up for.
        rate(options.lr() / (1 - std::pow(beta1, double(steps)))),
        root_scale(1 / std::sqrt(1 - std::pow(beta2, double(steps)))),
        epsilon(options.eps()),
        shrink(decay == Decay::of_value ? 1 - options.lr() * options.weight_decay() : 1),
        gradient_decay(decay == Decay::of_gradient ? options.weight_decay() : 0) {}

  template <class T>
  void update(const Tensor& parameter, const Tensor& gradient, const Tensor& means,
              const Tensor& squares) const {
    fused::best_kernels<T>().adam({.values = parameter.data_ptr<T>(),
                                   .gradients = gradient.data_ptr<T>(),
                                   .means = means.data_ptr<T>(),
                                   .squares = squares.data_ptr<T>(),
                                   .count = std::size_t(parameter.numel()),
                                   .mean_decay = T(beta1),
                                   .mean_gain = T(1 - beta1),
                                   .square_decay = T(beta2),
                                   .square_gain = T(1 - beta2),
                                   .rate = T(rate),
                                   .root_scale = T(root_scale),
                                   .epsilon = T(epsilon),
                                   .shrink = T(shrink),
                                   .gradient_decay = T(gradient_decay)});
  }

  std::int64_t steps;
  double beta1, beta2, rate, root_scale, epsilon, shrink, gradient_decay;
};

/// `states` are torch's own, so that saving and loading an optimiser needs nothing new.
template <class State, class Options, class States>
void step_all(std::vector<OptimizerParamGroup>& groups, States& states, Decay decay) {
  const torch::NoGradGuard no_graph;
  for (OptimizerParamGroup& group : groups) {
    const auto& options = static_cast<const Options&>(group.options());
    std::optional<CommonStep> common;
    for (Tensor& parameter : group.params()) {
      const Tensor& gradient = parameter.grad();
      if (!gradient.defined()) continue;
      auto& slot = states[state_key(parameter)];
      if (!slot) {
        auto fresh = std::make_unique<State>();
        fresh->step(0);
        fresh->exp_avg(torch::zeros_like(parameter, torch::MemoryFormat::Contiguous));
        fresh->exp_avg_sq(torch::zeros_like(parameter, torch::MemoryFormat::Contiguous));
        slot = std::move(fresh);
      }
      auto& state = static_cast<State&>(*slot);
      state.step(state.step() + 1);
      if (!common || common->steps != state.step()) common.emplace(options, decay, state.step());
      if (parameter.scalar_type() == torch::kFloat32) {
        common->update<float>(parameter, gradient, state.exp_avg(), state.exp_avg_sq());
      } else {
        common->update<double>(parameter, gradient, state.exp_avg(), state.exp_avg_sq());
      }
      parameter.unsafeGetTensorImpl()->bump_version();  // as an operation in place would
    }
  }
}

/// `by_torch`: its own step, for parameters that are not plain. The closure comes first: it makes the gradients.
template <class State, class Options, class States, class ByTorch>
Tensor step_with(torch::optim::Optimizer& optimizer, States& states,
                 const torch::optim::Optimizer::LossClosure& closure, Decay decay, const ByTorch& by_torch) {
  check_not_empty(optimizer.param_groups());
  Tensor loss = {};
  if (closure) {
    const at::AutoGradMode with_graph(true);
    loss = closure();
  }
  if (all_plain<Options>(optimizer.param_groups())) {
    step_all<State, Options>(optimizer.param_groups(), states, decay);
  } else {
    by_torch();
  }
  return loss;
}

}  // namespace

Tensor FusedAdam::step(LossClosure closure) {
  return step_with<torch::optim::AdamParamState, torch::optim::AdamOptions>(
      *this, state(), closure, Decay::of_gradient, [&] { torch::optim::Adam::step(); });
}

Tensor FusedAdamW::step(LossClosure closure) {
  return step_with<torch::optim::AdamWParamState, torch::optim::AdamWOptions>(
      *this, state(), closure, Decay::of_value, [&] { torch::optim::AdamW::step(); });
}

}  // namespace fathom
