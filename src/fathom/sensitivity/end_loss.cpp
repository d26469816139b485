#include "fathom/sensitivity/end_loss.hpp"

#include <algorithm>

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
    const std::size_t count = context->get_saved_variables().size();
    const auto& request = static_cast<const LossRequest&>(*context->saved_data["request"].toCapsule());
    std::vector<bool> of_field, of_head;
    for (std::size_t i = 0; i < count; ++i) {
      (i < request.field_parameters ? of_field : of_head).push_back(context->needs_input_grad(1 + i));
    }
    LossGradients gradients = request.answer.solve->pull_back_loss(
        grads[0].item<double>(), context->needs_input_grad(0), of_field, of_head);
    torch::autograd::variable_list result = {std::move(gradients.start)};
    for (Tensor& gradient : gradients.field) result.push_back(std::move(gradient));
    for (Tensor& gradient : gradients.head) result.push_back(std::move(gradient));
    result.emplace_back();  // the capsule has none
    return result;
  }
};

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
  const Tensor start = z0.reshape(-1);
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

}  // namespace fathom
