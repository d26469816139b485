#include "fathom/runtime/program.hpp"

#include "fathom/support/error.hpp"

namespace fathom::runtime {

namespace {

using fused::Builder;
using fused::FunctionKind;
using fused::Network;
using fused::Rows;

fused::Function function_of(Activation activation) {
  switch (activation) {
    case Activation::tanh: return {FunctionKind::tanh};
    case Activation::relu: return {FunctionKind::relu};
    case Activation::softplus: return {FunctionKind::softplus};
    case Activation::elu: return {FunctionKind::elu};
    case Activation::sigmoid: return {FunctionKind::sigmoid};
    case Activation::silu: return {FunctionKind::silu};
    case Activation::identity: return {FunctionKind::identity};
  }
  throw fused::NoProgram{"an unknown activation has no kernel"};
}

/// The state with the control beside or upon it.
Rows argument_of(Builder& build, const ModelSpec& spec, std::int32_t control_tensor) {
  if (spec.field.control == ControlKind::none) return build.state();
  const Rows u = build.input(control_tensor, std::int32_t(spec.input_features()));
  if (spec.field.control == ControlKind::addition) return build.add(build.state(), u);
  return build.joined({build.state(), u});
}

}  // namespace

std::shared_ptr<const fused::Program> program_of(const ModelSpec& spec, Carries carries) {
  const DepthKind kind = spec.field.depth.kind;
  if (kind == DepthKind::hyper) throw fused::NoProgram{"weights from a hypernetwork have no kernel"};
  const bool varies = kind == DepthKind::galerkin || kind == DepthKind::stacked;
  const bool with_divergence = carries == Carries::state_and_divergence;
  const auto features = std::int32_t(spec.state_features()), positions = std::int32_t(spec.positions());
  const std::vector<LayerSize> layers = field_layers(spec);

  Builder build(features, with_divergence ? 1 : 0);
  Network net(build, argument_of(build, spec, std::int32_t(2 * layers.size())),
              with_divergence ? features : 0);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool is_last = i + 1 == layers.size();
    fused::Matrix matrix{.weight = std::int32_t(2 * i),
                         .bias = std::int32_t(2 * i + 1),
                         .outputs = std::int32_t(layers[i].outputs),
                         .inputs = std::int32_t(layers[i].inputs)};
    if (varies) {
      const DepthBasis basis = basis_of(spec);
      matrix.basis = build.basis({std::int32_t(basis.size), basis.values, basis.slopes, basis.data});
    }
    if (kind == DepthKind::concat) net.append_depth();
    net.linear(matrix, is_last ? fused::Function{} : function_of(spec.field.activation),
               is_last ? Network::Place::last : Network::Place::inside);
  }
  const bool higher = spec.field.order > 1;
  build.give(higher
                 ? build.joined({Builder::part(build.state(), positions, features - positions), net.output()})
                 : net.output());
  if (with_divergence) build.give_loss(0, net.divergence());
  return std::make_shared<fused::Program>(std::move(build).finish());
}

}  // namespace fathom::runtime
