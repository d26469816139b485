/// Every theta(s) x every control x every order x every augmentation: gradients of all parameters, of the input, and of
/// whatever else the field reads, by Discrete against finite differences and by Adjoint against Discrete.
#include <gtest/gtest.h>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

const std::vector<std::string> bases = {
    "none",         "concat_first",       "concat_every",     "fourier",
    "chebyshev",    "legendre",           "polynomial",       "gaussian_radial",
    "multiquadric", "piecewise_constant", "piecewise_linear", "hypernetwork"};
const std::vector<std::string> controls = {"none",      "concatenation", "addition", "embedding",
                                           "raw_input", "other_tensor",  "driven"};
const std::vector<std::string> orders = {"order1", "order2", "order3", "selective"};
const std::vector<std::string> augmentations = {"none", "zero_front", "zero_end", "input_layer", "partial"};

struct Combination {
  std::string basis, control, order, augmentation;

  /// Without h_x its input and its output are one tensor: "raw_input" would repeat "concatenation".
  bool is_meaningful() const { return control != "raw_input" || augmentation != "none"; }
  std::string name() const { return basis + "__" + control + "__" + order + "__" + augmentation; }
};

void PrintTo(const Combination& combination, std::ostream* out) { *out << combination.name(); }

std::vector<Combination> product() {
  std::vector<Combination> all;
  for (const auto& basis : bases)
    for (const auto& control : controls)
      for (const auto& order : orders)
        for (const auto& augmentation : augmentations) all.push_back({basis, control, order, augmentation});
  return all;
}

std::vector<Combination> meaningful() {
  std::vector<Combination> some = product();
  std::erase_if(some, [](const Combination& combination) { return !combination.is_meaningful(); });
  return some;
}

constexpr std::int64_t samples = 2, hidden = 3, other_features = 2;

DepthSequential network(const std::string& basis, std::int64_t inputs, std::int64_t outputs) {
  const auto varying = [&](const DepthBasis& psi) {
    return mlp({.features = {inputs, hidden, outputs}, .basis = psi});
  };
  const auto concat = [&](DepthInput depth) {
    return mlp({.features = {inputs, hidden, outputs}, .depth = depth});
  };
  if (basis == "none") return concat(DepthInput::none);
  if (basis == "concat_first") return concat(DepthInput::first_layer);
  if (basis == "concat_every") return concat(DepthInput::every_layer);
  if (basis == "fourier") return varying(fourier({.harmonics = 1}));
  if (basis == "chebyshev") return varying(chebyshev({.degree = 2}));
  if (basis == "legendre") return varying(legendre({.degree = 2}));
  if (basis == "polynomial") return varying(polynomial(2));
  if (basis == "gaussian_radial") return varying(gaussian_radial({.centres = 3}));
  if (basis == "multiquadric") return varying(multiquadric_radial({.centres = 3}));
  if (basis == "piecewise_constant") return varying(piecewise_constant({.pieces = 3}));
  if (basis == "piecewise_linear") return varying(piecewise_linear({.pieces = 3}));
  return DepthSequential(HyperLinear(inputs, hidden, 2), torch::nn::Tanh(), HyperLinear(hidden, outputs, 2));
}

/// A model of one combination with everything that its gradient may be asked for.
class Model {
 public:
  Model(const Combination& combination, const Solver& solver, const Sensitivity& sensitivity,
        double last = 1) {
    torch::manual_seed(11);
    const auto& [basis, control, order, augmentation] = combination;
    const std::int64_t state = order == "order2" ? 4 : order == "order1" ? 2 : 3;
    const std::int64_t rates = order == "order1"   ? 2
                               : order == "order3" ? 1
                                                   : 2;  // selective: one z_p, one z_bar
    const std::int64_t inputs = augmentation == "none"          ? state
                                : augmentation == "input_layer" ? 2
                                                                : state - 1;

    const torch::nn::AnyModule h_x = input_layer(augmentation, inputs, state);
    Field field = controlled_field(combination, state, inputs, rates);
    if (order == "order2") field = higher_order(field, 2);
    if (order == "order3") field = higher_order(field, 3);
    if (order == "selective") field = higher_order(field, SelectiveOrder{.states = 2, .order = 2});
    NeuralOdeOptions options{.last = last, .solver = solver, .sensitivity = sensitivity};
    // Two ways to put h_x before the solve: inside, where the control is its input, or outside, where it is its output.
    if (control == "raw_input") {
      options.input_layer = h_x;
    } else if (!h_x.is_empty()) {
      before_->push_back(h_x);
    }
    ode_ = NeuralOde(field, options);
    ode_->to(float64);
    before_->to(float64);
    randomize(*ode_);
    randomize(*before_);

    x_ = random_variable({samples, inputs});
    variables_ = with_parameters(*before_, with_parameters(*ode_, {{"x", x_}}));
    if (control == "other_tensor") {
      other_ = random_variable({samples, other_features});
      variables_.push_back({"control", other_});
    }
    for (const Tensor& extra : field->extra_parameters()) variables_.push_back({"signal", extra});
    weights_ = torch::randn({samples, state}, float64);
  }

  Tensor loss() {
    const Tensor z0 = before_->is_empty() ? x_ : before_->forward(x_);
    const Tensor end = other_.defined() ? ode_->forward_with(z0, other_) : ode_->forward(z0);
    return (end * weights_).sum() + 0.3 * end.square().sum();
  }
  const std::vector<NamedTensor>& variables() const { return variables_; }

 private:
  static torch::nn::AnyModule input_layer(const std::string& augmentation, std::int64_t inputs,
                                          std::int64_t state) {
    if (augmentation == "none") return {};
    if (augmentation == "zero_front")
      return torch::nn::AnyModule(ZeroAugmentation(state - inputs, Side::front));
    if (augmentation == "zero_end") return torch::nn::AnyModule(ZeroAugmentation(state - inputs));
    if (augmentation == "input_layer") return torch::nn::AnyModule(torch::nn::Linear(inputs, state));
    return torch::nn::AnyModule(PartialAugmentation(torch::nn::Linear(inputs, state - inputs)));
  }

  static Field controlled_field(const Combination& combination, std::int64_t state, std::int64_t inputs,
                                std::int64_t rates) {
    const auto net = [&](std::int64_t added) { return network(combination.basis, state + added, rates); };
    const std::string& control = combination.control;
    if (control == "concatenation") return controlled(net(state));
    if (control == "addition") return controlled(net(0), {.entry = ControlEntry::addition});
    if (control == "embedding")
      return controlled(net(2),
                        {.embedding = mlp({.features = {state, 2}, .depth = DepthInput::first_layer}).ptr()});
    if (control == "raw_input") return controlled(net(inputs));
    if (control == "other_tensor") return controlled(net(other_features));
    if (control == "driven") {
      const Tensor amplitude = random_variable({2});
      return driven(net(2), {.value = [=](const Tensor& s) { return amplitude * torch::sin(3 * s); },
                             .parameters = {amplitude}});
    }
    return depth_varying(net(0));
  }

  NeuralOde ode_{nullptr};
  torch::nn::Sequential before_;
  Tensor x_, other_, weights_;
  std::vector<NamedTensor> variables_;
};

std::string label(const ::testing::TestParamInfo<Combination>& test) { return test.param.name(); }

TEST(TheProduct, LeavesOutOnlyTheRawInputOfModelsWithoutAnInputLayer) {
  EXPECT_EQ(product().size(), 12u * 7u * 4u * 5u);
  EXPECT_EQ(product().size() - meaningful().size(), 12u * 1u * 4u * 1u);
}

class EveryModel : public ::testing::TestWithParam<Combination> {};

TEST_P(EveryModel, HasGradientsEqualToFiniteDifferences) {
  Model model(GetParam(), fixed(rk4(), 2), Discrete{});
  EXPECT_EQ(wrong_gradients([&] { return model.loss(); }, model.variables()), "");
}

/// A short way, since fields without a program for the fused engine cost a third of a second on the whole one; it still passes
/// the first jump of the piecewise bases.
TEST_P(EveryModel, HasAnAdjointThatAgreesWithDiscreteAtTightTolerance) {
  constexpr double last = 0.4;
  const Solver tight = adaptive(dop853(), 1e-12);
  Model exact(GetParam(), tight, Discrete{}, last), adjoint(GetParam(), tight, Adjoint{}, last);
  EXPECT_LT(distance(gradients_of(adjoint.loss(), adjoint.variables()),
                     gradients_of(exact.loss(), exact.variables())),
            1e-8);
}

INSTANTIATE_TEST_SUITE_P(Product, EveryModel, ::testing::ValuesIn(meaningful()), label);

}  // namespace
}  // namespace fathom::testing
