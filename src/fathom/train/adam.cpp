#include "fathom/train/adam.hpp"

#include <cmath>
#include <optional>
#include <tuple>

#include "fathom/fused/kernels.hpp"
#include "fathom/train/state_key.hpp"

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

/// How far both means are from 0, where they begin, after so many steps: 1 - beta^step. Nearly always the same for all parameters.
struct Bias {
  Bias(std::tuple<double, double> betas, std::int64_t steps)
      : step(steps),
        mean(1 - std::pow(std::get<0>(betas), double(steps))),
        square(1 - std::pow(std::get<1>(betas), double(steps))) {}

  std::int64_t step;
  double mean, square;
};

template <class T, class Options>
void update(const Tensor& parameter, const Tensor& means, const Tensor& squares, const Bias& bias,
            const Options& options, Decay decay) {
  const auto [beta1, beta2] = options.betas();
  const double rate = options.lr(), weight_decay = options.weight_decay();
  fused::best_kernels<T>().adam({.values = parameter.data_ptr<T>(),
                                 .gradients = parameter.grad().data_ptr<T>(),
                                 .means = means.data_ptr<T>(),
                                 .squares = squares.data_ptr<T>(),
                                 .count = std::size_t(parameter.numel()),
                                 .mean_decay = T(beta1),
                                 .square_decay = T(beta2),
                                 .rate = T(rate / bias.mean),
                                 .root_scale = T(1 / std::sqrt(bias.square)),
                                 .epsilon = T(options.eps()),
                                 .shrink = decay == Decay::of_value ? T(1 - rate * weight_decay) : T(1),
                                 .gradient_decay = decay == Decay::of_gradient ? T(weight_decay) : T(0)});
}

/// `StateOf` gives torch's own state of a parameter, so that saving and loading an optimiser needs nothing new.
template <class State, class Options, class StateOf>
void step_all(std::vector<OptimizerParamGroup>& groups, const StateOf& state_of, Decay decay) {
  const torch::NoGradGuard no_graph;
  for (OptimizerParamGroup& group : groups) {
    const auto& options = static_cast<const Options&>(group.options());
    std::optional<Bias> bias;
    for (Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& slot = state_of(parameter);
      if (!slot) {
        auto fresh = std::make_unique<State>();
        fresh->step(0);
        fresh->exp_avg(torch::zeros_like(parameter, torch::MemoryFormat::Contiguous));
        fresh->exp_avg_sq(torch::zeros_like(parameter, torch::MemoryFormat::Contiguous));
        slot = std::move(fresh);
      }
      auto& state = static_cast<State&>(*slot);
      state.step(state.step() + 1);
      if (!bias || bias->step != state.step()) bias.emplace(options.betas(), state.step());
      if (parameter.scalar_type() == torch::kFloat32) {
        update<float>(parameter, state.exp_avg(), state.exp_avg_sq(), *bias, options, decay);
      } else {
        update<double>(parameter, state.exp_avg(), state.exp_avg_sq(), *bias, options, decay);
      }
      parameter.unsafeGetTensorImpl()->bump_version();  // as an operation in place would
    }
  }
}

}  // namespace

Tensor FusedAdam::step(LossClosure closure) {
  if (!all_plain<torch::optim::AdamOptions>(param_groups())) return torch::optim::Adam::step(closure);
  Tensor loss = {};
  if (closure) {
    const at::AutoGradMode with_graph(true);
    loss = closure();
  }
  step_all<torch::optim::AdamParamState, torch::optim::AdamOptions>(
      param_groups(), [&](const Tensor& parameter) -> auto& { return state()[state_key(parameter)]; },
      Decay::of_gradient);
  return loss;
}

Tensor FusedAdamW::step(LossClosure closure) {
  if (!all_plain<torch::optim::AdamWOptions>(param_groups())) return torch::optim::AdamW::step(closure);
  Tensor loss = {};
  if (closure) {
    const at::AutoGradMode with_graph(true);
    loss = closure();
  }
  step_all<torch::optim::AdamWParamState, torch::optim::AdamWOptions>(
      param_groups(), [&](const Tensor& parameter) -> auto& { return state()[state_key(parameter)]; },
      Decay::of_value);
  return loss;
}

}  // namespace fathom
