#include "fathom/sensitivity/end_loss.hpp"

#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "fathom/sensitivity/backward.hpp"
#include "fathom/sensitivity/field_rules.hpp"
#include "fathom/support/error.hpp"
#include "fathom/tensor/torch_version.hpp"

namespace fathom {

namespace {

using torch::autograd::Edge;
using torch::autograd::variable_list;

/// The whole model as one node of torch's graph. torch's Function would make it with less code, but takes longer over that than
/// the solve of a small model does over all its samples.
class LossNode final : public torch::autograd::Node {
 public:
  /// `sources`: what the gradients of the field's parameters, then of the head's go to.
  LossNode(std::unique_ptr<FusedLossSolve> solve, const std::shared_ptr<KeptLoss>& kept,
           std::size_t field_parameters, std::vector<Tensor> sources)
      : solve_(std::move(solve)),
        kept_(kept),
        field_parameters_(field_parameters),
        sources_(std::move(sources)) {
    seen_.reserve(sources_.size());
    for (const Tensor& source : sources_) seen_.push_back(state_of(source));
  }

  ~LossNode() override { give_back(); }

  variable_list apply(variable_list&& upstream) override {
    require(!torch::GradMode::is_enabled(),
            "the gradient of a loss at the end of a solve cannot be differentiated again; use `Unrolled{}`");
    const double scale = upstream[0].defined() ? upstream[0].item<double>() : 0;
    return gradients(scale, [&](std::size_t i) { return task_should_compute_output(i); });
  }

  /// Of `scale` times the loss, for the start and every source, as far as they are wanted. `earlier`: see FusedLossSolve.
  template <class Wants>
  variable_list gradients(double scale, const Wants& wants, std::span<Tensor> earlier = {}) {
    const std::lock_guard lock(mutex_);
    check_unchanged();
    LossGradientsWanted wanted{.start = wants(0),
                               .field = std::vector<bool>(field_parameters_),
                               .head = std::vector<bool>(sources_.size() - field_parameters_)};
    for (std::size_t i = 0; i < wanted.field.size(); ++i) wanted.field[i] = wants(1 + i);
    for (std::size_t i = 0; i < wanted.head.size(); ++i) wanted.head[i] = wants(1 + field_parameters_ + i);
    LossGradients found = solve_->pull_back(scale, wanted, earlier);
    variable_list result;
    result.reserve(1 + sources_.size());
    result.push_back(std::move(found.start));
    for (Tensor& gradient : found.field) result.push_back(std::move(gradient));
    for (Tensor& gradient : found.head) result.push_back(std::move(gradient));
    return result;
  }

  /// Gradients of the sources that went to their parameters as they are. When those let go of them, they can take the next ones.
  std::vector<Tensor> remembered() {
    const std::shared_ptr<KeptLoss> kept = kept_.lock();
    std::vector<Tensor> gradients = kept ? kept->take_gradients() : std::vector<Tensor>();
    gradients.resize(num_outputs() - 1);
    return gradients;
  }
  void remember(std::vector<Tensor> gradients) {
    if (const std::shared_ptr<KeptLoss> kept = kept_.lock()) kept->give(std::move(gradients));
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    give_back();
    sources_.clear();
  }

 private:
  void give_back() {
    if (const std::shared_ptr<KeptLoss> kept = kept_.lock()) kept->give(std::move(solve_));
    solve_.reset();
  }

  /// Changes when the numbers do: in place, or by others that take their place.
  struct State {
    std::int64_t version = 0;
    const void* numbers = nullptr;
    bool operator==(const State&) const = default;
  };
  static State state_of(const Tensor& tensor) {
    return {tensor._version(), tensor.has_storage() ? tensor.data_ptr() : nullptr};
  }

  void check_unchanged() const {
    TORCH_CHECK(solve_,
                "the gradient of this loss was taken already, and what it needs is gone; compute the loss "
                "again, or keep it with `loss.backward({}, /*retain_graph=*/true)`");
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      TORCH_CHECK(state_of(sources_[i]) == seen_[i], "a tensor that the loss was computed from, of shape ",
                  sources_[i].sizes(),
                  ", was changed before the gradient was taken; take the gradient first");
    }
  }

  std::unique_ptr<FusedLossSolve> solve_;  // none once it was released
  std::weak_ptr<KeptLoss> kept_;  // the model's; what it keeps may in turn have this node in its graph
  std::size_t field_parameters_;
  std::vector<Tensor> sources_;
  std::vector<State> seen_;  // of the sources, when the loss was computed
};

/// Does the gradient behind an edge end in a parameter, with nobody who listens on its way?
bool ends_in_parameter(const Edge& edge) {
  torch::autograd::Node& node = *edge.function;
  if (typeid(node) != typeid(torch::autograd::AccumulateGrad)) return false;
  auto& leaf = static_cast<torch::autograd::AccumulateGrad&>(node);
  return !has_listeners(leaf) && has_gradient_of_its_type(leaf.variable);
}

bool needs_no_engine(LossNode& node) {
  if (torch::autograd::AnomalyMode::is_enabled() || has_listeners(node)) return false;
  const auto& edges = node.next_edges();
  return std::all_of(edges.begin(), edges.end(),
                     [](const auto& edge) { return !edge.is_valid() || ends_in_parameter(edge); });
}

/// A gradient becomes the parameter's, as it is: torch's node would make another tensor of it. Only for the first gradient of a
/// plain parameter.
bool is_handed_over(torch::autograd::AccumulateGrad& leaf, const Tensor& gradient) {
  Tensor& parameter = leaf.variable;
  const std::lock_guard lock(lock_of(leaf));
  if (!parameter.requires_grad() || parameter.grad().defined() || !parameter.is_contiguous()) return false;
  parameter.mutable_grad() = gradient;
  return true;
}

Tensor scalar(double value, torch::ScalarType type) {
  Tensor made = unfilled({}, type);
  if (type == torch::kFloat32) {
    *made.data_ptr<float>() = float(value);
  } else {
    *made.data_ptr<double>() = value;
  }
  return made;
}

}  // namespace

EndLossResult solve_for_loss(const VectorField& field, const Tensor& z0, const std::vector<double>& depths,
                             const Solver& solver, const Discrete& how, const EndProgram& end,
                             const std::shared_ptr<KeptLoss>& kept) {
  std::vector<Tensor> sources = field.sources.empty() ? field.parameters : field.sources;
  const auto wants_gradient = [](const Tensor& tensor) { return tensor.requires_grad(); };
  LossWanted wanted;
  if (torch::GradMode::is_enabled()) {
    wanted.of_solve = wants_gradient(z0) || std::any_of(sources.begin(), sources.end(), wants_gradient);
    wanted.of_head = std::any_of(end.parameters.begin(), end.parameters.end(), wants_gradient);
  }
  const auto has_tangent = [](const Tensor& tensor) {
    const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
    return meta && meta->fw_grad_ && tensor._fw_grad(/*level=*/0).defined();
  };
  TORCH_CHECK(!has_tangent(z0) && std::none_of(sources.begin(), sources.end(), has_tangent) &&
                  std::none_of(end.parameters.begin(), end.parameters.end(), has_tangent),
              "a loss at the end of a solve has no forward-mode derivative; use its gradient");
  const std::int64_t running = field.running_loss ? z0.size(0) * field.running_terms : 0;
  const Tensor start =
      running == 0 ? z0 : pack({z0, torch::zeros({running}, z0.options().requires_grad(false))});
  FusedLoss answer = with_finite_start(z0, [&] {
    return run_fused_loss({.field = field,
                           .start = start,
                           .batch = z0.size(0),
                           .depths = depths,
                           .solver = solver,
                           .how = how,
                           .end = end,
                           .wanted = wanted},
                          kept->take_solve());
  });
  Tensor loss = scalar(answer.value, z0.scalar_type());
  if (wanted.of_solve || wanted.of_head) {
    sources.insert(sources.end(), end.parameters.begin(), end.parameters.end());
    torch::autograd::edge_list edges;
    edges.reserve(1 + sources.size());
    const auto add_edge = [&](const Tensor& tensor) {
      edges.push_back(wants_gradient(tensor) ? torch::autograd::impl::gradient_edge(tensor) : Edge());
    };
    add_edge(start);
    for (const Tensor& source : sources) add_edge(source);
    kept->hold_nodes(edges, [&](std::size_t i) {
      // An input is the caller's, and the field has a copy of it. A weight that is computed has a graph behind it.
      return i > 0 && sources[i - 1].is_leaf() &&
             (i > field.parameters.size() || sources[i - 1].is_same(field.parameters[i - 1]));
    });
    const NodePointer node =
        make_node<LossNode>(std::move(answer.solve), kept, field.parameters.size(), std::move(sources));
    node->set_next_edges(std::move(edges));
    torch::autograd::set_history(loss, node);
  } else {
    kept->give(std::move(answer.solve));
  }
  return {.loss = loss, .report = answer.report};
}

void backward(const Tensor& loss) {
  const NodePointer behind = loss.defined() ? loss.grad_fn() : NodePointer();
  auto* node = dynamic_cast<LossNode*>(behind.get());
  if (!node || !needs_no_engine(*node)) return loss.backward();
  const torch::NoGradGuard no_graph;
  constexpr std::int64_t most_numbers = 1 << 14;  // beyond that, making a tensor is cheap beside filling it
  std::vector<Tensor> earlier = node->remembered();
  variable_list gradients = node->gradients(
      1, [&](std::size_t i) { return node->should_compute_output(i); }, earlier);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    auto& leaf = static_cast<torch::autograd::AccumulateGrad&>(*node->next_edge(i).function);
    TORCH_CHECK(gradients[i].sizes() == leaf.variable.sizes(), "a tensor of shape ", gradients[i].sizes(),
                " has another shape since the loss was computed from it, ", leaf.variable.sizes());
    if (is_handed_over(leaf, gradients[i])) {
      if (i > 0 && gradients[i].numel() <= most_numbers) earlier[i - 1] = std::move(gradients[i]);
      continue;
    }
    // The parameter's own node adds it: with its lock and its memory layout.
    variable_list one;
    one.push_back(std::move(gradients[i]));
    leaf(std::move(one));
  }
  node->remember(std::move(earlier));
  node->release_variables();
}

}  // namespace fathom
