/// Continuous normalizing flows: a density carried along a field.                                      (M10, M11)
///   log p(x) = log q(z(S)) + int_0^S tr df/dz ds,   z(0) = x;     to sample, z(S) ~ q is carried back to depth 0
///
///   Flow flow(autonomous(net), standard_normal(2));
///   const Tensor loss = -flow->log_prob(x).mean();
///   const Tensor points = flow->sample(1000);
///
/// With a controlled field the control is a condition, log p(x | c). Where the control is the sample itself, u = x, the map
/// x -> z(S) has the total Jacobian J' = f_z J + f_u, J(0) = I, and int tr df/dz is not its log-determinant.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fathom/field/field.hpp"
#include "fathom/model/density.hpp"
#include "fathom/model/last_reports.hpp"
#include "fathom/sensitivity/solve.hpp"

namespace fathom {

enum class Trace {
  exact,                ///< tangents through the layers of an MLP, else one backward product a feature
  hutchinson_gaussian,  ///< one product with a random probe, fixed during a solve
  hutchinson_rademacher
};

struct FlowOptions {
  double last = 1;  ///< S
  Solver solver = {};
  Sensitivity sensitivity = Discrete{};
  Trace trace = Trace::exact;
  bool controlled_by_sample = false;  ///< u = x, with the exact likelihood by the total Jacobian (small d)
  bool steps_per_sample = false;      ///< as in NeuralOdeOptions: each sample as if it were alone
};

class FlowImpl : public torch::nn::Module {
 public:
  FlowImpl(Field field, Density base, FlowOptions options = {});

  /// (batch, d) -> (batch). `condition` has the batch of x.
  Tensor log_prob(const Tensor& x, const Tensor& condition = {});
  /// For a flow controlled by its sample: what leaving out f_u gives. Not a likelihood; for comparison.
  Tensor trace_only_log_prob(const Tensor& x);
  /// (count, d); `condition`, if needed, has one row for each.
  Tensor sample(std::int64_t count, const Tensor& condition = {});

  /// x -> z(S) and back, without densities.
  Tensor push_forward(const Tensor& x, const Tensor& condition = {});
  Tensor pull_back(const Tensor& z, const Tensor& condition = {});

  SolveReport report() const { return reports_.mean(); }
  const Field& field() const { return field_; }
  const Density& base() const { return base_; }
  FlowOptions& options() { return options_; }
  /// The field's parameters are copied; the base density, a pair of functions, is shared.
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

 private:
  enum class Carries { state, state_and_divergence };
  /// The field on states like `start`; with its divergence as running loss, or without.
  VectorField vector_field(const Tensor& control, const Tensor& start, Carries carries) const;
  /// The same with what is chosen for the trace.
  VectorField field_with_trace(const Tensor& control, const Tensor& start) const;
  /// Of (z, dz/dx), flat.
  VectorField field_with_jacobian(const Tensor& x) const;
  /// The field for any of the samples: their control and their start -> field.
  using FieldOf = std::function<VectorField(const Tensor& control, const Tensor& start)>;
  Solution run(const FieldOf& field_of, const Tensor& control, const Tensor& start,
               const std::vector<double>& depths);
  Tensor carried(const Tensor& from, double first, double last, const Tensor& control);
  Solution solve_with_trace(const Tensor& x, const Tensor& control);
  struct Mapped {
    Tensor end;       // (batch, d)
    Tensor jacobian;  // (batch, d, d)
  };
  Mapped solve_with_jacobian(const Tensor& x);
  Tensor inverse_by_newton(const Tensor& z);
  void check(const Tensor& x, const Tensor& condition) const;

  Field field_;
  Density base_;
  FlowOptions options_;
  LastReports reports_;
};

class Flow : public torch::nn::ModuleHolder<FlowImpl> {
 public:
  using torch::nn::ModuleHolder<FlowImpl>::ModuleHolder;
  Flow(Field field, Density base, FlowOptions options = {})
      : ModuleHolder(std::make_shared<FlowImpl>(std::move(field), std::move(base), std::move(options))) {}
};

}  // namespace fathom
