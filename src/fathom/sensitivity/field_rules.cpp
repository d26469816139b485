#include "fathom/sensitivity/field_rules.hpp"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <unordered_set>

#include "fathom/support/error.hpp"
#include "fathom/support/not_finite.hpp"

namespace fathom {

namespace {

using torch::autograd::Node;

double largest(const Tensor& values) {
  return values.numel() == 0 ? 0 : values.detach().abs().max().item<double>();
}

/// Do the ends of a step differ by more than `factor` times what rounding may do?
bool is_apart(const Tensor& one, const Tensor& other, const Tensor& start, double factor) {
  const double epsilon = start.scalar_type() == torch::kFloat32
                             ? double(std::numeric_limits<float>::epsilon())
                             : std::numeric_limits<double>::epsilon();
  // Rates may cancel each other in a step, and stages magnify differences: sqrt(epsilon) of how far it went.
  const double allowed = std::sqrt(epsilon) * largest(other - start) + 100 * epsilon * largest(start);
  return !(largest(one - other) <= factor * allowed);
}

constexpr double looser = 32;  // than a difference that only raises suspicion

[[noreturn]] void refuse_impure() {
  throw InvalidArgument(
      "the field must give the same rate for the same depth and state, but gave another one when it was "
      "evaluated "
      "again for the gradient; call `eval()` on layers with dropout, draw random numbers before the solve, "
      "and "
      "leave what the field reads as it is until the gradient is taken");
}

}  // namespace

void check_listed(const std::vector<Tensor>& outputs, const std::vector<Tensor>& known) {
  const torch::AutoGradMode with_graph(true);  // a parameter's node is made on demand
  std::vector<torch::autograd::Edge> kept;     // while the set below refers to them
  std::unordered_set<Node*> seen;
  for (const Tensor& tensor : known) {
    if (!tensor.defined() || !tensor.requires_grad()) continue;
    kept.push_back(torch::autograd::impl::gradient_edge(tensor));
    seen.insert(kept.back().function.get());
  }
  std::vector<Node*> open;
  const auto visit = [&](Node* node) {
    if (node && seen.insert(node).second) open.push_back(node);
  };
  for (const Tensor& output : outputs) {
    if (output.defined() && output.requires_grad())
      visit(torch::autograd::impl::gradient_edge(output).function.get());
  }
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node)) {
      throw InvalidArgument(
          text("the field reads a tensor of shape ", leaf->variable.sizes(),
               " that wants a gradient and is not in `parameters`, so it would get none; list it there (a "
               "FieldModule registers it), `detach()` it, or solve under torch::NoGradGuard"));
    }
    for (const auto& edge : node->next_edges()) visit(edge.function.get());
  }
}

FlatField watched(const FlatField& field) {
  FlatField result = field;
  result.rate = [rate = field.rate, parameters = field.parameters,
                 is_seen = std::make_shared<std::atomic<bool>>(false)](const Tensor& s, const Tensor& y) {
    if (is_seen->load(std::memory_order_relaxed)) return rate(s, y);
    is_seen->store(true, std::memory_order_relaxed);
    const torch::AutoGradMode with_graph(true);
    // The state wants a gradient, as it will on the way back. Not a leaf, which torch would not let a field change.
    const Tensor start = y.detach().requires_grad_();
    std::vector<Tensor> known = parameters;
    known.push_back(start);
    const Tensor value = rate(s, start.clone());
    check_listed({value}, known);
    return value.detach();
  };
  return result;
}

bool differ_by_rounding(const Tensor& one, const Tensor& other, const Tensor& start) {
  const torch::NoGradGuard no_graph;
  return !is_apart(one, other, start, 1);
}

void check_replayed(const ForwardPass& pass, const StepRecord& record, const Tensor& recorded,
                    const Tensor& replayed) {
  const torch::NoGradGuard no_graph;
  if (differ_by_rounding(replayed, recorded, record.start)) return;
  // A field that jumps may turn rounding into more than that. The solve's own arithmetic gives the same bits again.
  TensorEngine engine(pass.field, record.start, pass.solver);
  engine.attempt(record.step);
  engine.accept();
  pass.report->backward_evaluations += engine.evaluations();
  if (is_apart(engine.state(), recorded, record.start, looser)) refuse_impure();
}

void check_pure(const ForwardPass& pass, double depth, const Tensor& y) {
  const torch::NoGradGuard no_graph;
  const Tensor first = rate_at(pass, depth, y), second = rate_at(pass, depth, y);
  pass.report->backward_evaluations += 2;
  if (is_apart(first, second, torch::zeros_like(second), looser)) refuse_impure();
}

void check_finite(const Tensor& z0) {
  const std::string found =
      first_non_finite(z0.detach().reshape(-1), {{.name = "z0", .shape = z0.sizes().vec()}});
  if (!found.empty())
    throw NotFinite(
        text("`z0` must be finite, got ", found, "; check the data, or the layers that computed it"));
}

}  // namespace fathom
