#include "fathom/model/flow.hpp"

#include "fathom/field/lower.hpp"
#include "fathom/field/rate_of.hpp"
#include "fathom/model/inputs.hpp"
#include "fathom/model/one_by_one.hpp"
#include "fathom/model/products.hpp"
#include "fathom/model/trace.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

Tensor probe_like(const Tensor& x, Trace trace) {
  if (trace == Trace::hutchinson_gaussian) return torch::randn(x.sizes(), x.options().requires_grad(false));
  return torch::randint(0, 2, x.sizes(), x.options().requires_grad(false)) * 2 - 1;
}

}  // namespace

FlowImpl::FlowImpl(Field field, Density base, FlowOptions options)
    : field_(std::move(field)), base_(std::move(base)), options_(std::move(options)) {
  require(field_ != nullptr, "a flow needs a field, got none");
  require(bool(base_.log_prob) && bool(base_.sample),
          "a flow needs a base density with `log_prob` and `sample`");
  require(!options_.controlled_by_sample || field_->is_controlled(),
          "a flow controlled by its sample needs a controlled field, got one without control");
  register_module("field", field_);
}

std::shared_ptr<torch::nn::Module> FlowImpl::clone(const torch::optional<torch::Device>& device) const {
  auto copy = std::make_shared<FlowImpl>(field_->clone_field(device), base_, options_);
  copy->train(is_training());
  return copy;
}

void FlowImpl::check(const Tensor& x, const Tensor& condition) const {
  require(x.dim() == 2, "a flow needs samples of shape (batch, features), got ", x.sizes());
  if (options_.controlled_by_sample) {
    require(!condition.defined(), "a flow controlled by its sample takes no condition");
    return;
  }
  require(!field_->is_controlled() || condition.defined(),
          "this flow is conditional and needs a condition with one row a sample, got none");
  require(!condition.defined() || (condition.dim() >= 1 && condition.size(0) == x.size(0)),
          "the condition must have one row for each of the ", x.size(0), " samples, got shape ",
          condition.defined() ? condition.sizes() : c10::IntArrayRef{});
}

VectorField FlowImpl::vector_field(const Tensor& control, const Tensor& start, Carries carries) const {
  VectorField vector_field{
      .rate = {}, .parameters = parameters_of(*field_), .break_points = field_->break_points()};
  vector_field.sources = vector_field.parameters;
  const Tensor seen = add_input(vector_field, control, options_.sensitivity);
  vector_field.rate = [field = field_, seen](const Tensor& s, const Tensor& z) {
    return rate_of(*field, s, seen, z);
  };
  const bool with_divergence = carries == Carries::state_and_divergence;
  if (options_.solver.fused) {
    vector_field.lowered = lower(field_, start, {.control = seen, .divergence = with_divergence});
  }
  if (!with_divergence) return vector_field;
  const bool plain = is_plain_mlp(field_);
  vector_field.running_loss = [field = field_, seen, plain](const Tensor& s, const Tensor& z, const Tensor&) {
    return plain ? mlp_divergence(field, s, seen, z) : exact_divergence(field, s, seen, z);
  };
  return vector_field;
}

VectorField FlowImpl::field_with_trace(const Tensor& control, const Tensor& start) const {
  VectorField carrying = vector_field(control, start, Carries::state_and_divergence);
  if (options_.trace == Trace::exact) return carrying;
  carrying.lowered = {.program = {}, .reason = "a trace by probes has no kernel"};
  const Tensor probe = probe_like(start, options_.trace);
  const Tensor seen = control.defined() && control.requires_grad() ? carrying.parameters.back() : control;
  carrying.running_loss = [field = field_, seen, probe](const Tensor& s, const Tensor& z, const Tensor&) {
    return estimated_divergence(field, s, seen, z, probe);
  };
  return carrying;
}

Solution FlowImpl::run(const FieldOf& field_of, const Tensor& control, const Tensor& start,
                       const std::vector<double>& depths) {
  const VectorField field = field_of(control, start);
  if (!options_.steps_per_sample || start.size(0) <= 1) {
    Solution solution = solve(field, start, depths, options_.solver, options_.sensitivity);
    reports_.set({solution.shared_report});
    return solution;
  }
  const auto sample = [&](std::int64_t i) {
    const Tensor row = start.narrow(0, i, 1);
    const Tensor its_control = control.defined() ? control.narrow(0, i, 1) : control;
    return solve(field_of(its_control, row), row, depths, options_.solver, options_.sensitivity);
  };
  ApartSolution apart = solve_one_by_one(field, start, depths, options_.solver, options_.sensitivity, sample);
  reports_.set(std::move(apart.reports));
  return std::move(apart.solution);
}

Solution FlowImpl::solve_with_trace(const Tensor& x, const Tensor& control) {
  const auto field_of = [this](const Tensor& u, const Tensor& z) { return field_with_trace(u, z); };
  return run(field_of, control, x, {0.0, options_.last});
}

Tensor FlowImpl::log_prob(const Tensor& x, const Tensor& condition) {
  check(x, condition);
  if (options_.controlled_by_sample) {
    const Mapped mapped = solve_with_jacobian(x);
    return base_.log_prob(mapped.end, {}) + std::get<1>(torch::slogdet(mapped.jacobian));
  }
  const Solution solution = solve_with_trace(x, condition);
  return base_.log_prob(solution.states[-1], condition) + solution.running_loss[-1];
}

Tensor FlowImpl::trace_only_log_prob(const Tensor& x) {
  require(options_.controlled_by_sample,
          "only a flow controlled by its sample has a trace-only value to compare");
  const Solution solution = solve_with_trace(x, x);
  return base_.log_prob(solution.states[-1], {}) + solution.running_loss[-1];
}

Tensor FlowImpl::carried(const Tensor& from, double first, double last, const Tensor& control) {
  const auto field_of = [this](const Tensor& u, const Tensor& z) {
    return vector_field(u, z, Carries::state);
  };
  return run(field_of, control, from, {first, last}).states[-1];
}

Tensor FlowImpl::push_forward(const Tensor& x, const Tensor& condition) {
  check(x, condition);
  return carried(x, 0, options_.last, options_.controlled_by_sample ? x : condition);
}

Tensor FlowImpl::pull_back(const Tensor& z, const Tensor& condition) {
  check(z, condition);
  return options_.controlled_by_sample ? inverse_by_newton(z) : carried(z, options_.last, 0, condition);
}

Tensor FlowImpl::sample(std::int64_t count, const Tensor& condition) {
  require(count >= 0, "the number of samples must not be negative, got ", count);
  const Tensor z = base_.sample(count, condition);
  require(z.dim() == 2 && z.size(0) == count, "the base density must give samples of shape (", count,
          ", features), got ", z.sizes());
  return pull_back(z, condition);
}

/// z and J = dz/dx together: J' = f_z J + f_u.
VectorField FlowImpl::field_with_jacobian(const Tensor& x) const {
  const std::int64_t batch = x.size(0), d = x.size(1);
  VectorField both = vector_field(x, x, Carries::state);
  both.lowered = {.program = {}, .reason = "the total Jacobian has no kernel"};
  const Tensor u = x.requires_grad() ? both.parameters.back() : x;
  both.rate = [field = field_, u, batch, d](const Tensor& s, const Tensor& state) {
    const Tensor z = state.narrow(1, 0, d), J = state.narrow(1, d, d * d).view({batch, d, d});
    const auto rate = [&](const Tensor& at, const Tensor& control) {
      return rate_of(*field, s, control, at);
    };
    const Jacobians f = jacobians(rate, z, u);
    return torch::cat({f.rate, (torch::matmul(f.state, J) + f.control).reshape({batch, d * d})}, 1);
  };
  return both;
}

FlowImpl::Mapped FlowImpl::solve_with_jacobian(const Tensor& x) {
  const std::int64_t batch = x.size(0), d = x.size(1);
  const Tensor identity =
      torch::eye(d, x.options().requires_grad(false)).view({1, d * d}).expand({batch, d * d});
  const auto field_of = [this](const Tensor& u, const Tensor&) { return field_with_jacobian(u); };
  const Tensor end = run(field_of, x, torch::cat({x, identity}, 1), {0.0, options_.last}).states[-1];
  return {end.narrow(1, 0, d), end.narrow(1, d, d * d).view({batch, d, d})};
}

/// x with z(S; x) = z. The way back with u = z(S) is a good start where the field hardly depends on u.
Tensor FlowImpl::inverse_by_newton(const Tensor& z) {
  const torch::NoGradGuard no_graph;
  if (z.size(0) == 0) return z;
  Tensor x = carried(z, options_.last, 0, z);
  constexpr int most = 50;
  double before = std::numeric_limits<double>::infinity();
  for (int iteration = 0; iteration < most; ++iteration) {
    const Mapped mapped = solve_with_jacobian(x);
    const Tensor miss = mapped.end - z;
    const double worst = miss.abs().max().item<double>();
    if (worst < 1e-9 || (worst >= before && worst < 1e-3))
      return x;  // converged to the accuracy of the solver
    before = worst;
    x = x - torch::linalg_solve(mapped.jacobian, miss.unsqueeze(2)).squeeze(2);
  }
  require(before < 1e-3, "the flow controlled by its sample could not be inverted: still off by ", before,
          " after ", most, " Newton steps");
  return x;
}

}  // namespace fathom
