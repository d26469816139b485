#include "fathom/field/mlp.hpp"

#include "fathom/support/error.hpp"

namespace fathom {

void append(DepthSequential& net, Activation activation) {
  switch (activation) {
    case Activation::tanh: net->push_back(torch::nn::Tanh()); break;
    case Activation::relu: net->push_back(torch::nn::ReLU()); break;
    case Activation::softplus: net->push_back(torch::nn::Softplus()); break;
    case Activation::elu: net->push_back(torch::nn::ELU()); break;
    case Activation::sigmoid: net->push_back(torch::nn::Sigmoid()); break;
    case Activation::silu: net->push_back(torch::nn::SiLU()); break;
    case Activation::identity: break;
  }
}

DepthSequential mlp(const MlpOptions& options) {
  require(options.features.size() >= 2, "`features` needs those of the input and of the output, got ",
          options.features.size(), " number(s)");
  for (std::int64_t count : options.features) require(count >= 1, "`features` must be positive, got ", count);
  DepthSequential net;
  for (std::size_t i = 1; i < options.features.size(); ++i) {
    const bool concat =
        options.depth == DepthInput::every_layer || (options.depth == DepthInput::first_layer && i == 1);
    const std::int64_t inputs = options.features[i - 1] + (concat ? 1 : 0), outputs = options.features[i];
    if (concat) net->push_back(DepthConcat());
    if (options.basis)
      net->push_back(DepthLinear(inputs, outputs, *options.basis));
    else
      net->push_back(torch::nn::Linear(inputs, outputs));
    const bool is_last = i + 1 == options.features.size();
    append(net, is_last ? options.last_activation : options.activation);
  }
  return net;
}

}  // namespace fathom
