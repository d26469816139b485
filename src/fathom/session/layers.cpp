#include "fathom/session/layers.hpp"

#include <algorithm>
#include <cmath>

#include "fathom/support/error.hpp"

namespace fathom::session {

namespace {

/// The functions of depth of a layer, in the one form or the other; none where it is constant.
struct Functions {
  explicit Functions(const Layer& layer) {
    if (const auto* known = std::get_if<Basis>(&layer.basis)) {
      functions = fused::functions_of(*known);
      coefficients = constant_coefficients(*known);
      break_points = fathom::break_points(*known);
    } else if (const auto* own = std::get_if<OwnBasis>(&layer.basis)) {
      require(own->size >= 1 && own->values && own->slopes,
              "a basis of one's own needs values and slopes, got ", own->size, " function(s)");
      require(own->constant.empty() || own->constant.size() == std::size_t(own->size),
              "`constant` needs a coefficient for each of the ", own->size, " functions, got ",
              own->constant.size());
      functions = {.size = own->size, .values = own->values, .slopes = own->slopes};
      coefficients = own->constant;
      if (coefficients.empty()) coefficients.assign(std::size_t(own->size), 0.0), coefficients.front() = 1;
      break_points = own->break_points;
    }
  }
  fused::DepthFunctions functions = {};
  std::vector<double> coefficients = {}, break_points = {};
};

/// What a layer has to learn; `inputs`: features that its weight reads.
std::vector<Parameter> parameters_of_one(const Layer& layer, const Functions& functions, std::int64_t inputs,
                                         std::size_t number) {
  std::vector<std::int64_t> axis;
  if (functions.functions.size > 0) axis.push_back(functions.functions.size);
  Parameter weight{.name = text("layer.", number, ".weight"),
                   .shape = axis,
                   .bound = 1 / std::sqrt(double(inputs)),
                   .coefficients = functions.coefficients};
  Parameter bias = weight;
  weight.shape.insert(weight.shape.end(), {layer.features, inputs});
  bias.name = text("layer.", number, ".bias");
  bias.shape.push_back(layer.features);
  return {weight, bias};
}

std::int64_t inputs_of(const Layer& layer, std::int64_t features, std::size_t number) {
  require(layer.features >= 1 && layer.features <= most_features, "layer ", number, " needs 1 to ",
          most_features, " features, got ", layer.features);
  return features + (layer.reads_depth ? 1 : 0);
}

}  // namespace

fused::Function function_of(Activation activation) {
  using fused::FunctionKind;
  switch (activation) {
    case Activation::tanh: return {FunctionKind::tanh};
    case Activation::relu: return {FunctionKind::relu};
    case Activation::softplus: return {FunctionKind::softplus};
    case Activation::elu: return {FunctionKind::elu};
    case Activation::sigmoid: return {FunctionKind::sigmoid};
    case Activation::silu: return {FunctionKind::silu};
    case Activation::identity: return {FunctionKind::identity};
  }
  throw InvalidArgument("an unknown activation has no kernel");
}

Layers::Layers(fused::Builder& build, const std::vector<Layer>& layers, std::int64_t features) {
  std::int64_t all = 0;
  for (const Layer& layer : layers) all += std::clamp<std::int64_t>(layer.features, 0, most_features);
  require(all <= most_features, "layers have ", most_features, " features together at most, got ", all);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    Functions functions(layer);
    const std::int64_t inputs = inputs_of(layer, features, i + 1);
    const auto own = parameters_of_one(layer, functions, inputs, i + 1);
    parameters_.insert(parameters_.end(), own.begin(), own.end());
    break_points_.insert(break_points_.end(), functions.break_points.begin(), functions.break_points.end());
    fused::Matrix matrix{.weight = std::int32_t(2 * i),
                         .bias = std::int32_t(2 * i + 1),
                         .outputs = std::int32_t(layer.features),
                         .inputs = std::int32_t(inputs)};
    if (functions.functions.size > 0) matrix.basis = build.basis(std::move(functions.functions));
    shapes_.push_back({matrix, function_of(layer.activation), layer.reads_depth});
    features = layer.features;
  }
}

void Layers::write(fused::Network& net) const {
  try {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const bool is_last = i + 1 == shapes_.size();
      if (shapes_[i].reads_depth) net.append_depth();
      net.linear(shapes_[i].matrix, shapes_[i].function,
                 is_last ? fused::Network::Place::last : fused::Network::Place::inside);
    }
  } catch (const fused::NoProgram& none) { throw InvalidArgument(none.reason); }
}

std::vector<Parameter> parameters_of(const std::vector<Layer>& layers, std::int64_t features) {
  std::vector<Parameter> all;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto own =
        parameters_of_one(layers[i], Functions(layers[i]), inputs_of(layers[i], features, i + 1), i + 1);
    all.insert(all.end(), own.begin(), own.end());
    features = layers[i].features;
  }
  return all;
}

}  // namespace fathom::session
