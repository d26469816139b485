#include "fathom/runtime/program.hpp"

#include <cmath>

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

bool varies_with_depth(const ModelSpec& spec) {
  const DepthKind kind = spec.field.depth.kind;
  return kind == DepthKind::galerkin || kind == DepthKind::stacked;
}

bool is_of_field(const std::string& tensor) { return tensor.starts_with("field."); }

}  // namespace

std::shared_ptr<const fused::Program> program_of(const ModelSpec& spec, Carries carries) {
  const DepthKind kind = spec.field.depth.kind;
  if (kind == DepthKind::hyper) throw fused::NoProgram{"weights from a hypernetwork have no kernel"};
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
    if (varies_with_depth(spec)) {
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

ProgramField field_of(const ModelSpec& spec, Carries carries) {
  auto program = program_of(spec, carries);
  const std::vector<LayerSize> layers = field_layers(spec);
  std::vector<double> coefficients, break_points;
  if (varies_with_depth(spec)) {
    const DepthBasis basis = basis_of(spec);
    coefficients = basis.constant;
    // One set for each layer, as the full library has it.
    for (std::size_t i = 0; i < layers.size(); ++i)
      break_points.insert(break_points.end(), basis.break_points.begin(), basis.break_points.end());
  }
  std::vector<Parameter> parameters;
  for (const TensorLayout& tensor : layout(spec)) {
    if (!is_of_field(tensor.name)) continue;
    const LayerSize& layer = layers[parameters.size() / 2];
    parameters.push_back({.name = tensor.name,
                          .shape = tensor.shape,
                          .bound = 1 / std::sqrt(double(layer.inputs)),
                          .coefficients = coefficients});
  }
  std::vector<std::int64_t> inputs;
  if (spec.field.control != ControlKind::none) inputs.push_back(spec.input_features());
  return {std::move(program), std::move(parameters), std::move(inputs), std::move(break_points)};
}

template <class T> std::vector<T> field_parameters(const ModelFile& file) {
  std::vector<T> all;
  for (const TensorLayout& tensor : layout(file.spec)) {
    if (!is_of_field(tensor.name)) continue;
    const std::vector<T> some = file.tensors.at(tensor.name).template numbers<T>();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

template std::vector<float> field_parameters(const ModelFile&);
template std::vector<double> field_parameters(const ModelFile&);

}  // namespace fathom::runtime
