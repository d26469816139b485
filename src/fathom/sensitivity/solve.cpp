#include "fathom/sensitivity/solve.hpp"

#include <algorithm>
#include <unordered_set>

#include "fathom/sensitivity/field_rules.hpp"
#include "fathom/sensitivity/fused_solve.hpp"
#include "fathom/sensitivity/pullback.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

/// Everything the autograd node needs besides tensors; rides through torch in a capsule.
struct SolveRequest : torch::CustomClassHolder {
  VectorField given;
  FlatField field;
  Solver solver;
  Sensitivity sensitivity;
  std::vector<double> depths;
  std::string not_fused;                   // why; empty: the fused engine runs
  bool apart = false;                      // each sample with steps of its own
  bool is_watched = false;                 // for tensors that are not listed
  ForwardPass pass = {};                   // filled by the forward pass
  std::unique_ptr<FusedSolve> fused = {};  // likewise
  std::vector<std::shared_ptr<SolveReport>> reports = {};

  /// `keep` is what the tensor engine keeps; the fused one knows by itself.
  void run(const Tensor& start, const Keep& keep, bool differentiated) {
    if (not_fused.empty()) {
      FusedForward forward =
          apart
              ? run_fused_apart(given, field, start, depths, solver,
                                differentiated ? std::get<Discrete>(sensitivity) : Discrete{}, differentiated)
              : run_fused(given, field, start, depths, solver, sensitivity, differentiated);
      pass = std::move(forward.pass);
      fused = std::move(forward.solve);
      reports = std::move(forward.reports);
    } else {
      pass = run_forward(is_watched ? watched(field) : field, start, depths, solver, keep);
      pass.report->not_fused = not_fused;
    }
  }
};

/// A tensor listed twice, such as a shared weight, gets its gradient once.
bool listed_before(const std::vector<Tensor>& parameters, std::size_t place) {
  const auto end = parameters.begin() + std::ptrdiff_t(place);
  return std::any_of(parameters.begin(), end,
                     [&](const Tensor& other) { return other.is_same(parameters[place]); });
}

class SolveFunction : public torch::autograd::Function<SolveFunction> {
 public:
  /// Gives the states and, where there is one, the running loss, each in its shape.
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const Tensor& start, const Tensor& depths,
                                                at::TensorList parameters, const c10::IValue& capsule) {
    auto request = capsule.toCapsule();
    auto& solve = static_cast<SolveRequest&>(*request);
    Keep keep = std::visit([](const auto& how) { return kept_for(how); }, solve.sensitivity);
    keep.stages = keep.stages || solve.solver.dense;
    solve.run(start, keep, /*differentiated=*/true);
    context->saved_data["request"] = capsule;
    // Saved for the check that nobody changed them in place before the gradient is taken.
    std::vector<Tensor> inputs = {start, depths};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    // The fused engine has copies of what it reads for each sample.
    const std::vector<Tensor>& constants = solve.given.constants;
    if (!solve.fused) inputs.insert(inputs.end(), constants.begin(), constants.end());
    context->save_for_backward(inputs);
    torch::autograd::variable_list outputs;
    for (std::size_t part = 0; part < solve.field.parts.size(); ++part) {
      outputs.push_back(unpack(solve.pass.states, solve.field.parts, part).clone());
    }
    return outputs;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    require(
        !torch::GradMode::is_enabled(),
        "the gradient of a solve by Discrete or an adjoint cannot be differentiated again; use `Unrolled{}`");
    const auto inputs = context->get_saved_variables();
    auto capsule = context->saved_data["request"].toCapsule();
    const auto& solve = static_cast<const SolveRequest&>(*capsule);
    Wanted wanted{.depths = context->needs_input_grad(1)};
    for (std::size_t i = 0; i < solve.field.parameters.size(); ++i) {
      wanted.parameters.push_back(inputs[2 + i].requires_grad() && !listed_before(solve.field.parameters, i));
    }
    const Tensor upstream = joined(solve, grads);
    Gradients gradients = std::visit(
        [&](const auto& how) {
          if (solve.fused) return solve.fused->pull_back(solve.pass, how, upstream, wanted);
          if constexpr (std::is_same_v<std::decay_t<decltype(how)>, Unrolled>) {
            return Gradients{};  // never here: its graph is torch's own
          } else {
            return pull_back(how, solve.pass, upstream, wanted);
          }
        },
        solve.sensitivity);
    torch::autograd::variable_list result = {gradients.start, gradients.depths};
    for (Tensor& gradient : gradients.parameters) result.push_back(std::move(gradient));
    result.emplace_back();  // the capsule has none
    return result;
  }

 private:
  /// dL/d(flat states), (depths, size), from those of the parts; zeros for a part that the loss does not use.
  static Tensor joined(const SolveRequest& solve, const torch::autograd::variable_list& grads) {
    const std::int64_t depths = solve.pass.states.size(0);
    std::vector<Tensor> parts;
    for (std::size_t part = 0; part < grads.size(); ++part) {
      const std::int64_t size = solve.field.parts[part].size();
      parts.push_back(grads[part].defined() ? grads[part].reshape({depths, size})
                                            : torch::zeros({depths, size}, solve.pass.states.options()));
    }
    return parts.size() == 1 ? parts.front() : at::cat(parts, 1);
  }
};

/// Every node that the gradient of `tensor` would visit.
std::unordered_set<torch::autograd::Node*> ancestors(const Tensor& tensor) {
  std::unordered_set<torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> open = {tensor.grad_fn().get()};
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    for (const auto& edge : node->next_edges()) {
      if (edge.function && seen.insert(edge.function.get()).second) open.push_back(edge.function.get());
    }
  }
  return seen;
}

/// A parameter computed from another one would get its gradient twice: by itself and through the other.
void check_independent(const std::vector<Tensor>& parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].requires_grad() || !parameters[i].grad_fn()) continue;
    const auto above = ancestors(parameters[i]);
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      if (i == j || !parameters[j].requires_grad()) continue;
      auto* node = torch::autograd::impl::gradient_edge(parameters[j]).function.get();
      require(!above.contains(node), "parameter ", i, " of the field is computed from parameter ", j,
              "; compute it inside `rate`, or list only one of them");
    }
  }
}

/// The plain graph runs from the parameters: it does not know of sources that they were copied from.
void check_connected(const std::vector<Tensor>& parameters, const std::vector<Tensor>& sources) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    require(!sources[i].requires_grad() || parameters[i].is_same(sources[i]), "with `Unrolled`, parameter ",
            i,
            " of the field must be its own source, got a copy, which would lose the gradient; give the "
            "source itself in "
            "`parameters`");
  }
}

void check_start(const Tensor& z0) {
  require(z0.defined(), "`z0` must be a tensor, got an undefined one");
  const auto type = z0.scalar_type();
  require(type == torch::kFloat32 || type == torch::kFloat64, "`z0` must be float32 or float64, got ", type,
          "; convert it with `.to(torch::kFloat32)`");
}

std::vector<double> values_of(const Tensor& depths) {
  require(depths.defined() && depths.dim() == 1 && depths.scalar_type() == torch::kFloat64,
          "`depths` must be a 1-dimensional float64 tensor, got ",
          depths.defined() ? text(depths.sizes(), " ", depths.scalar_type()) : "an undefined one");
  const Tensor local = depths.detach().to(torch::kCPU).contiguous();
  return {local.data_ptr<double>(), local.data_ptr<double>() + local.numel()};
}

const std::vector<Tensor>& sources_of(const VectorField& field) {
  return field.sources.empty() ? field.parameters : field.sources;
}

bool is_differentiated(const VectorField& field, const Tensor& z0, const Tensor& depths) {
  const auto wants_gradient = [](const Tensor& tensor) { return tensor.requires_grad(); };
  const std::vector<Tensor>& sources = sources_of(field);
  return torch::GradMode::is_enabled() && (wants_gradient(z0) || wants_gradient(depths) ||
                                           std::any_of(sources.begin(), sources.end(), wants_gradient));
}

c10::intrusive_ptr<SolveRequest> request_for(const VectorField& field, const Tensor& z0, const Tensor& depths,
                                             const Solver& solver, const Sensitivity& sensitivity) {
  check_start(z0);
  auto request = c10::make_intrusive<SolveRequest>();
  request->given = field;
  request->field = flatten(field, z0);
  request->solver = solver;
  request->sensitivity = sensitivity;
  request->depths = values_of(depths);
  ode::check_depths(request->depths);
  require(field.sources.empty() || field.sources.size() == field.parameters.size(),
          "`sources` must be empty or one for each of the ", field.parameters.size(), " parameters, got ",
          field.sources.size());
  const bool differentiated = is_differentiated(field, z0, depths);
  // The graph of Unrolled is torch's own and ends in whatever the field reads.
  request->is_watched =
      torch::GradMode::is_enabled() && !(differentiated && std::holds_alternative<Unrolled>(sensitivity));
  request->not_fused = why_not_fused(field, z0, solver, sensitivity, differentiated);
  return request;
}

Solution answer(const c10::intrusive_ptr<SolveRequest>& request, const Tensor& z0, const Tensor& depths) {
  const VectorField& field = request->given;
  Tensor start = z0.reshape(-1);
  if (field.running_loss)
    start = pack({z0, torch::zeros({request->field.parts[1].size()}, z0.options().requires_grad(false))});
  const std::vector<Tensor>& sources = sources_of(field);
  const bool differentiated = is_differentiated(field, z0, depths);
  const auto solved_parts = [&] {
    if (differentiated && !std::holds_alternative<Unrolled>(request->sensitivity)) {
      check_independent(field.parameters);
      return SolveFunction::apply(start, depths, at::TensorList(sources), c10::IValue::make_capsule(request));
    }
    if (differentiated) check_connected(field.parameters, sources);
    request->run(start, {.stages = request->solver.dense}, /*differentiated=*/false);
    const Tensor flat = differentiated ? unroll(request->pass, start, depths) : request->pass.states;
    std::vector<Tensor> parts;
    for (std::size_t part = 0; part < request->field.parts.size(); ++part) {
      parts.push_back(unpack(flat, request->field.parts, part));
    }
    return parts;
  };
  const std::vector<Tensor> parts = with_finite_start(z0, solved_parts);

  const ForwardPass& pass = request->pass;
  Solution solution{.depths = pass.depths, .states = parts[0], .shared_report = pass.report};
  if (field.running_loss) solution.running_loss = parts[1];
  for (std::size_t n = 1; n < pass.records.size(); ++n) solution.grid.push_back(pass.records[n].step.start);
  if (request->solver.dense) {
    solution.interpolant =
        Interpolant(request->solver.method, pass.field.parts, pass.records, pass.start, pass.depths.front());
  }
  return solution;
}

}  // namespace

Solution solve(const VectorField& field, const Tensor& z0, const std::vector<double>& depths,
               const Solver& solver, const Sensitivity& sensitivity) {
  return solve(field, z0, torch::tensor(depths, torch::kFloat64), solver, sensitivity);
}

Solution solve(const VectorField& field, const Tensor& z0, const Tensor& depths, const Solver& solver,
               const Sensitivity& sensitivity) {
  return answer(request_for(field, z0, depths, solver, sensitivity), z0, depths);
}

std::optional<ApartSolution> solve_apart(const VectorField& field, const Tensor& z0,
                                         const std::vector<double>& given, const Solver& solver,
                                         const Sensitivity& sensitivity) {
  const Tensor depths = torch::tensor(given, torch::kFloat64);
  auto request = request_for(field, z0, depths, solver, sensitivity);
  const bool has_gradient =
      std::holds_alternative<Discrete>(sensitivity) || !is_differentiated(field, z0, depths);
  if (!request->not_fused.empty() || !has_gradient || solver.observer) return {};
  request->apart = true;
  Solution solution = answer(request, z0, depths);
  return ApartSolution{.solution = std::move(solution), .reports = request->reports};
}

}  // namespace fathom
