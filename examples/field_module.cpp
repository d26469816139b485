/// A field as a module of your own: the form for fields with options, sub-modules and an input, which can be cloned.
///   z' = -rate z + net(z) + gain x          rate and gain are learned with the network
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

// [field]
class Plant : public FieldModule {
 public:
  Plant(std::int64_t states, std::int64_t hidden) : states_(states), hidden_(hidden) {
    net_ = register_module("net", mlp({.features = {states, hidden, states}}));
    rate_ = register_parameter("rate", torch::ones({states}));
    gain_ = register_parameter("gain", torch::zeros({states}));
  }

  Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) override {
    return net_->forward(s, z) - rate_ * z + gain_ * x;
  }
  bool is_controlled() const override { return true; }  // it reads x: without this line it would not get it

  std::shared_ptr<torch::nn::Module> clone(const torch::optional<torch::Device>& device) const override {
    return filled(std::make_shared<Plant>(states_, hidden_), device);
  }

 private:
  std::int64_t states_, hidden_;
  DepthSequential net_;
  Tensor rate_, gain_;
};
// [/field]

int main() {
  torch::manual_seed(2);
  NeuralOde plant(std::make_shared<Plant>(2, 16));
  const Tensor z0 = torch::randn({64, 2}), input = torch::randn({64, 2});
  const Tensor wanted = 0.5 * z0 + 0.7 * input;  // what the plant does in one unit of time
  FusedAdam optimizer(plant->parameters(), torch::optim::AdamOptions(2e-2));
  double loss = 0;
  for (int iteration = 0; iteration < 200; ++iteration) {
    const Tensor miss = torch::mse_loss(plant->forward_with(z0, input), wanted);
    optimizer.zero_grad();
    miss.backward();
    optimizer.step();
    loss = miss.item<double>();
  }
  const auto copy = std::dynamic_pointer_cast<NeuralOdeImpl>(plant->clone());
  const bool same = torch::equal(copy->forward_with(z0, input), plant->forward_with(z0, input));
  std::cout << "loss " << loss << " with " << plant->parameters().size() << " tensors to learn; "
            << plant->report().brief() << "\nits clone gives " << (same ? "the same" : "something else")
            << "\n";
  return loss < 1e-2 && same ? 0 : 1;
}
