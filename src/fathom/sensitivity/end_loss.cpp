#include "fathom/sensitivity/end_loss.hpp"

#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/version.h>

#include <algorithm>

#include "fathom/sensitivity/backward.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

struct LossRequest : torch::CustomClassHolder {
  const VectorField* field = nullptr;  // during the forward pass
  const EndProgram* end = nullptr;
  const Solver* solver = nullptr;
  const std::vector<double>* depths = nullptr;
  Discrete how;
  std::int64_t batch = 0;
  std::size_t field_parameters = 0;
  LossWanted wanted = {};
  FusedLoss answer = {};

  void run(const Tensor& start) {
    answer = run_fused_loss(*field, start, batch, *depths, *solver, how, *end, wanted);
  }
};

Tensor scalar_like(const Tensor& start, double value) {
  return torch::scalar_tensor(value, start.options().requires_grad(false));
}

/// One node for the whole model.
class LossFunction : public torch::autograd::Function<LossFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& start,
                        at::TensorList parameters, const c10::IValue& capsule) {
    auto& request = static_cast<LossRequest&>(*capsule.toCapsule());
    request.run(start);
    context->saved_data["request"] = capsule;
    // Saved for the check that nobody changed them in place before the gradient is taken.
    context->save_for_backward(parameters.vec());
    return scalar_like(start, request.answer.value);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    require(!torch::GradMode::is_enabled(),
            "the gradient of a loss at the end of a solve cannot be differentiated again; use `Unrolled{}`");
    torch::autograd::variable_list result = gradients(
        *context, grads[0].item<double>(), [&](std::size_t i) { return context->needs_input_grad(i); });
    result.emplace_back();  // the capsule has none
    return result;
  }

  /// Of `scale` times the loss, for the start and every parameter, as far as they are wanted.
  template <class Wants>
  static torch::autograd::variable_list gradients(torch::autograd::AutogradContext& context, double scale,
                                                  Wants&& wants) {
    const std::size_t count = context.get_saved_variables().size();
    const auto& request = static_cast<const LossRequest&>(*context.saved_data["request"].toCapsule());
    std::vector<bool> of_field, of_head;
    for (std::size_t i = 0; i < count; ++i) {
      (i < request.field_parameters ? of_field : of_head).push_back(wants(1 + i));
    }
    LossGradients found = request.answer.solve->pull_back_loss(scale, wants(0), of_field, of_head);
    torch::autograd::variable_list result = {std::move(found.start)};
    for (Tensor& gradient : found.field) result.push_back(std::move(gradient));
    for (Tensor& gradient : found.head) result.push_back(std::move(gradient));
    return result;
  }
};

using LossNode = torch::autograd::CppNode<LossFunction>;

/// Does the gradient behind an edge end in a parameter, with nobody who listens on its way?
bool ends_in_parameter(const torch::autograd::Edge& edge) {
  const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(edge.function.get());
  return leaf && leaf->pre_hooks().empty() && leaf->post_hooks().empty();
}

/// Later versions of torch have more kinds of listeners than are looked for here.
constexpr bool knows_listeners = TORCH_VERSION_MAJOR < 2;

bool needs_no_engine(const LossNode& node) {
  if (!knows_listeners || torch::autograd::AnomalyMode::is_enabled()) return false;
  if (!node.pre_hooks().empty() || !node.post_hooks().empty()) return false;
  const auto& edges = node.next_edges();
  return std::all_of(edges.begin(), edges.end(),
                     [](const auto& edge) { return !edge.is_valid() || ends_in_parameter(edge); });
}

}  // namespace

EndLossResult solve_for_loss(const VectorField& field, const Tensor& z0, const std::vector<double>& depths,
                             const Solver& solver, const Discrete& how, const EndProgram& end) {
  auto request = c10::make_intrusive<LossRequest>();
  request->field = &field;
  request->end = &end;
  request->solver = &solver;
  request->depths = &depths;
  request->how = how;
  request->batch = z0.size(0);
  request->field_parameters = field.parameters.size();
  std::vector<Tensor> sources = field.sources.empty() ? field.parameters : field.sources;
  const std::int64_t running = field.running_loss ? z0.size(0) * field.running_terms : 0;
  const Tensor start =
      running == 0 ? z0.reshape(-1) : pack({z0, torch::zeros({running}, z0.options().requires_grad(false))});
  const auto any_wanted = [](const std::vector<Tensor>& tensors) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [](const Tensor& each) { return each.requires_grad(); });
  };
  if (torch::GradMode::is_enabled()) {
    request->wanted = {.of_solve = z0.requires_grad() || any_wanted(sources),
                       .of_head = any_wanted(end.parameters)};
  }
  sources.insert(sources.end(), end.parameters.begin(), end.parameters.end());
  Tensor loss;
  if (request->wanted.of_solve || request->wanted.of_head) {
    loss = LossFunction::apply(start, at::TensorList(sources), c10::IValue::make_capsule(request));
  } else {
    request->run(start);
    loss = scalar_like(start, request->answer.value);
  }
  request->field = nullptr, request->end = nullptr, request->solver = nullptr, request->depths = nullptr;
  return {.loss = loss, .report = request->answer.report};
}

void backward(const Tensor& loss) {
  const std::shared_ptr<torch::autograd::Node> behind = loss.defined() ? loss.grad_fn() : nullptr;
  auto* node = dynamic_cast<LossNode*>(behind.get());
  if (!node || !needs_no_engine(*node)) return loss.backward();
  const torch::NoGradGuard no_graph;
  torch::autograd::variable_list gradients =
      LossFunction::gradients(node->ctx_, 1, [&](std::size_t i) { return node->should_compute_output(i); });
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    // The parameter's own node adds it: with its lock, its hooks and its memory layout.
    torch::autograd::variable_list one;
    one.push_back(std::move(gradients[i]));
    (*node->next_edge(i).function)(std::move(one));
  }
  node->release_variables();
}

}  // namespace fathom
