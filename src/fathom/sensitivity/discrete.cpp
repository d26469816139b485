/// The exact gradient of the computed solution, step by step, last to first.
#include <algorithm>
#include <cmath>
#include <utility>

#include "fathom/sensitivity/field_rules.hpp"
#include "fathom/sensitivity/replay.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// Puts back the start states that were not kept, from the last kept one on: the same steps give the same bits.
void recompute_starts(const ForwardPass& pass, std::vector<StepRecord>& records, std::size_t kept,
                      std::size_t upto) {
  const torch::NoGradGuard no_graph;
  TensorEngine engine(pass.field, records[kept].start, pass.solver);
  for (std::size_t n = kept; n < upto; ++n) {
    const ode::Step& step = records[n].step;
    ode::with_site([&] { engine.attempt(step); }, site_on_way_back(pass, step.start, step.size()));
    engine.accept();
    if (records[n].step.ends_at_break) engine.forget_rate();
    records[n + 1].start = engine.state();
  }
  pass.report->backward_evaluations += engine.evaluations();
}

/// One step is enough to see whether the field is what it was: the one that went farthest.
std::size_t longest_step(const std::vector<StepRecord>& records) {
  const auto shorter = [](const StepRecord& a, const StepRecord& b) {
    return std::abs(a.step.size()) < std::abs(b.step.size());
  };
  return std::size_t(std::max_element(records.begin(), records.end(), shorter) - records.begin());
}

class Sweep {
 public:
  Sweep(const ForwardPass& pass, const Tensor& grad_states, const Wanted& wanted)
      : pass_(pass), grad_states_(grad_states), wanted_(wanted), parameters_(wanted.parameters.size()) {
    adjoint_ = torch::zeros_like(pass.start);
    if (wanted.depths) {
      depths_ = torch::zeros({std::int64_t(pass.given_depths)}, torch::kFloat64).requires_grad_();
      depth_grads_ = torch::zeros({std::int64_t(pass.given_depths)}, torch::kFloat64);
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (wanted.parameters[i]) parameters_[i] = torch::zeros_like(pass.field.parameters[i].detach());
    }
  }

  /// `end`: where the solve was after the step, to be held against the replayed one; may be undefined.
  void through(const StepRecord& record, const Tensor& end) {
    ode::with_site([&] { pull_through(record, end); },
                   site_on_way_back(pass_, record.step.start, record.step.size()));
  }

  Gradients finish() {
    // Rows saved at the very start are z0; one with a depth of its own moves along the field, away from the first depth.
    const torch::NoGradGuard no_graph;
    std::vector<bool> taken(pass_.depths.size(), false);
    for (const StepRecord& record : pass_.records) {
      for (const SavedPoint& point : record.saved) taken[point.place] = true;
    }
    for (std::size_t place = 0; place < taken.size(); ++place) {
      if (taken[place]) continue;
      const Tensor grad = grad_states_[std::int64_t(place)];
      adjoint_ = adjoint_ + grad;
      if (!wanted_.depths || place == 0) continue;
      const Tensor rate = rate_at(pass_, inside_first(pass_), pass_.start);
      const double along = (grad * rate).sum().item<double>();
      depth_grads_[std::int64_t(place)] += along;
      depth_grads_[0] -= along;
    }
    return {.start = adjoint_, .depths = depth_grads_, .parameters = std::move(parameters_)};
  }

 private:
  void pull_through(const StepRecord& record, const Tensor& end) {
    const torch::AutoGradMode with_graph(true);
    const Tensor start = record.start.detach().requires_grad_();
    const ReplayedStep step = replay(pass_, record, start, depths_);
    pass_.report->backward_evaluations += step.evaluations;

    std::vector<Tensor> outputs = {step.end}, adjoints = {adjoint_ + grads_at_end(record, step)};
    for (std::size_t i = 0; i < step.saved.size(); ++i) {
      outputs.push_back(step.saved[i]);
      adjoints.push_back(grad_states_[std::int64_t(step.places[i])]);
    }
    if (end.defined()) {
      check_replayed(pass_, record, end, step.end);
      std::vector<Tensor> known = pass_.field.parameters;
      known.insert(known.end(), {start, depths_});
      check_listed(outputs, known);
    }
    std::vector<Tensor> inputs = {start};
    if (wanted_.depths) inputs.push_back(depths_);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (wanted_.parameters[i]) inputs.push_back(pass_.field.parameters[i]);
    }
    // Retained, since a field may hold what was computed from its parameters outside of it: every step passes there.
    collect(torch::autograd::grad(outputs, inputs, adjoints, /*retain_graph=*/true, /*create_graph=*/false,
                                  /*allow_unused=*/true));
  }

  Tensor grads_at_end(const StepRecord& record, const ReplayedStep& step) const {
    Tensor sum = torch::zeros_like(adjoint_);
    for (const SavedPoint& point : record.saved) {
      const bool apart = std::find(step.places.begin(), step.places.end(), point.place) != step.places.end();
      if (!apart) sum = sum + grad_states_[std::int64_t(point.place)];
    }
    return sum;
  }

  void collect(const std::vector<Tensor>& grads) {
    std::size_t next = 0;
    adjoint_ = grads[next++].detach();
    if (wanted_.depths) {
      if (grads[next].defined()) depth_grads_ += grads[next];
      ++next;
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!wanted_.parameters[i]) continue;
      if (grads[next].defined()) parameters_[i] += grads[next].detach();
      ++next;
    }
  }

  const ForwardPass& pass_;
  const Tensor& grad_states_;  // (depths, size)
  const Wanted& wanted_;
  Tensor adjoint_;  // (size), of the state at the end of the step to come
  Tensor depths_;   // stand-in for the caller's depths; only differences of it enter
  Tensor depth_grads_;
  std::vector<Tensor> parameters_;
};

}  // namespace

Keep kept_for(const Discrete& how) {
  require(how.checkpoint_every >= 1, "Discrete: `checkpoint_every` must be at least 1, got ",
          how.checkpoint_every);
  require(how.memory_budget >= 0, "Discrete: `memory_budget` must not be negative, got ", how.memory_budget);
  return {.every = how.checkpoint_every, .budget = how.memory_budget};
}

Gradients pull_back(const Discrete&, const ForwardPass& pass, const Tensor& grad_states,
                    const Wanted& wanted) {
  Sweep sweep(pass, grad_states, wanted);
  std::vector<StepRecord> records = pass.records;
  const std::size_t longest = longest_step(records);
  Tensor end = pass.states[-1];  // of the step at hand
  for (std::size_t n = records.size(); n-- > 0;) {
    if (!records[n].start.defined()) {
      std::size_t kept = n;
      while (!records[kept].start.defined()) --kept;
      recompute_starts(pass, records, kept, n);
    }
    sweep.through(records[n], n == longest ? end : Tensor{});
    end = std::exchange(records[n].start, {});
  }
  return sweep.finish();
}

}  // namespace fathom
