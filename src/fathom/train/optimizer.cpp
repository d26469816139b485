#include "fathom/train/optimizer.hpp"

#include "fathom/support/error.hpp"
#include "fathom/tensor/torch_version.hpp"
#include "fathom/train/adam.hpp"

namespace fathom {

namespace {

/// Writes members of a state into named tensors.
struct Saving {
  OptimizerState& to;
  std::string prefix;
  void operator()(const char* name, const Tensor& tensor) { to[prefix + name] = tensor.detach().clone(); }
  void operator()(const char* name, std::int64_t number) { to[prefix + name] = torch::tensor(number); }
  void operator()(const char* name, double number) {
    to[prefix + name] = torch::tensor(number, torch::kFloat64);
  }
  void operator()(const char* name, const std::deque<Tensor>& list) {
    (*this)(name, std::int64_t(list.size()));
    for (std::size_t i = 0; i < list.size(); ++i) to[text(prefix, name, ".", i)] = list[i].detach().clone();
  }
};

/// Reads the same members back.
struct Restoring {
  const OptimizerState& from;
  std::string prefix;
  Tensor at(const std::string& name) const {
    const auto found = from.find(prefix + name);
    if (found == from.end())
      throw Error(text("the checkpoint lacks `", prefix, name, "` of the optimiser; was it another one?"));
    return found->second;
  }
  void operator()(const char* name, Tensor& tensor) { tensor = at(name).clone(); }
  void operator()(const char* name, std::int64_t& number) { number = at(name).item<std::int64_t>(); }
  void operator()(const char* name, double& number) { number = at(name).item<double>(); }
  void operator()(const char* name, std::deque<Tensor>& list) {
    list.clear();
    const auto size = at(name).item<std::int64_t>();
    for (std::int64_t i = 0; i < size; ++i) list.push_back(at(text(name, ".", i)).clone());
  }
};

template <class AdamState> void visit_adam(AdamState& state, auto visit) {
  visit("step", state.step());
  visit("exp_avg", state.exp_avg());
  visit("exp_avg_sq", state.exp_avg_sq());
}
void visit_members(torch::optim::AdamParamState& state, auto visit) { visit_adam(state, visit); }
void visit_members(torch::optim::AdamWParamState& state, auto visit) { visit_adam(state, visit); }
void visit_members(torch::optim::SGDParamState& state, auto visit) {
  visit("momentum_buffer", state.momentum_buffer());
}
/// `al` is left out: it is scratch, written before it is read.
void visit_members(torch::optim::LBFGSParamState& state, auto visit) {
  visit("func_evals", state.func_evals());
  visit("n_iter", state.n_iter());
  visit("t", state.t());
  visit("prev_loss", state.prev_loss());
  visit("d", state.d());
  visit("H_diag", state.H_diag());
  visit("prev_flat_grad", state.prev_flat_grad());
  visit("old_dirs", state.old_dirs());
  visit("old_stps", state.old_stps());
  visit("ro", state.ro());
}

template <class State> void save_as(torch::optim::Optimizer& optimizer, OptimizerState& to) {
  const auto& parameters = optimizer.param_groups().at(0).params();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = optimizer.state().find(state_key(parameters[i]));
    if (found == optimizer.state().end()) continue;
    visit_members(static_cast<State&>(*found->second), Saving{to, text(i, ".")});
  }
}

template <class State> void restore_as(torch::optim::Optimizer& optimizer, const OptimizerState& from) {
  const auto& parameters = optimizer.param_groups().at(0).params();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string prefix = text(i, ".");
    const auto first = from.lower_bound(prefix);
    if (first == from.end() || !first->first.starts_with(prefix)) continue;
    auto state = std::make_unique<State>();
    visit_members(*state, Restoring{from, prefix});
    optimizer.state()[state_key(parameters[i])] = std::move(state);
  }
}

/// Calls `act` with a null pointer to the type of the optimiser's state.
void with_state_type(torch::optim::Optimizer& optimizer, auto act) {
  using namespace torch::optim;
  if (dynamic_cast<Adam*>(&optimizer)) return act(static_cast<AdamParamState*>(nullptr));
  if (dynamic_cast<AdamW*>(&optimizer)) return act(static_cast<AdamWParamState*>(nullptr));
  if (dynamic_cast<SGD*>(&optimizer)) return act(static_cast<SGDParamState*>(nullptr));
  if (dynamic_cast<LBFGS*>(&optimizer)) return act(static_cast<LBFGSParamState*>(nullptr));
  throw InvalidArgument("the state of this optimiser cannot be saved");
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::vector<Tensor>& parameters,
                                                        const FitOptions& options) {
  const double rate = options.learning_rate, decay = options.weight_decay;
  switch (options.optimizer) {
    case Optimizer::adam:
      return std::make_unique<FusedAdam>(parameters, torch::optim::AdamOptions(rate).weight_decay(decay));
    case Optimizer::adamw:
      return std::make_unique<FusedAdamW>(parameters, torch::optim::AdamWOptions(rate).weight_decay(decay));
    case Optimizer::sgd:
      return std::make_unique<torch::optim::SGD>(
          parameters, torch::optim::SGDOptions(rate).weight_decay(decay).momentum(options.momentum));
    case Optimizer::lbfgs:
      return std::make_unique<torch::optim::LBFGS>(
          parameters, torch::optim::LBFGSOptions(rate).line_search_fn("strong_wolfe"));
  }
  throw InvalidArgument("unknown optimiser");
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

OptimizerState state_of(torch::optim::Optimizer& optimizer) {
  OptimizerState state;
  with_state_type(optimizer, [&]<class State>(State*) { save_as<State>(optimizer, state); });
  return state;
}

void restore(torch::optim::Optimizer& optimizer, const OptimizerState& state) {
  with_state_type(optimizer, [&]<class State>(State*) { restore_as<State>(optimizer, state); });
}

}  // namespace fathom
