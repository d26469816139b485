/// Fields of the user's own, as functions and as modules: what torch sees of them, and what is said where it would see nothing.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/directions.hpp"

namespace fathom::testing {
namespace {

const double once = std::exp(-1.0);

/// z' = net(s, z) - z
Field with_network(const DepthSequential& net) {
  return own_field(
      {.rate = [net](const Tensor& s, const Tensor&, const Tensor& z) { return net->forward(s, z) - z; },
       .modules = {net}});
}

Field decay(const Tensor& theta) {
  return own_field({.rate = [=](const Tensor&, const Tensor&, const Tensor& z) { return -theta * z; },
                    .parameters = {theta}});
}

class OwnFields : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(3); }

  Tensor x = torch::randn({8, 2}), y = torch::randn({8, 2});
};

TEST_F(OwnFields, ShowTheirWeightsToTorch) {
  const Tensor theta = torch::ones({2}).requires_grad_();
  NeuralOde ode(decay(theta));
  ASSERT_EQ(ode->parameters().size(), 1u);
  EXPECT_TRUE(ode->parameters()[0].is_same(theta));
  EXPECT_EQ(parameters_of(*ode->field()).size(), 1u);
}

TEST_F(OwnFields, ShowTheWeightsOfTheirModulesToTorchOnce) {
  const auto net = mlp({.features = {2, 4, 2}});
  torch::nn::Linear outer(2, 2);
  const Tensor scale = torch::ones({1}).requires_grad_();
  const Field field =
      own_field({.rate = [=](const Tensor& s, const Tensor&,
                             const Tensor& z) mutable { return scale * outer->forward(net->forward(s, z)); },
                 .parameters = {scale, outer->weight, scale},
                 .modules = {net, outer}});
  EXPECT_EQ(field->parameters().size(), net->parameters().size() + 2 + 1);
  EXPECT_EQ(parameters_of(*field).size(), field->parameters().size());
}

TEST_F(OwnFields, KeepWhetherAParameterWantsAGradient) {
  const Tensor fixed = torch::ones({2});
  EXPECT_FALSE(decay(fixed)->parameters().at(0).requires_grad());
}

TEST_F(OwnFields, PassGradientsToWhatAParameterIsComputedFrom) {
  const Tensor root = torch::full({2}, 0.5).requires_grad_();
  const Tensor theta = 2 * root;
  NeuralOde ode(decay(theta));
  EXPECT_TRUE(ode->parameters().empty());
  ode->forward(x).sum().backward();
  EXPECT_GT(root.grad().abs().min().item<double>(), 0);
}

TEST_F(OwnFields, AreTrainedByOptimisersAndFit) {
  for (const auto& train : std::vector<std::function<void(NeuralOde&)>>{
           [&](NeuralOde& ode) {
             FusedAdam optimizer(ode->parameters(), torch::optim::AdamOptions(0.1));
             torch::mse_loss(ode->forward(x), y).backward();
             optimizer.step();
           },
           [&](NeuralOde& ode) {
             fit(*ode, [&](std::int64_t) { return ode->loss(x, y); },
                 {.iterations = 1, .learning_rate = 0.1, .quiet = true});
           }}) {
    const auto net = mlp({.features = {2, 4, 2}});
    const Tensor before = net->parameters()[0].detach().clone();
    NeuralOde ode(with_network(net));
    train(ode);
    EXPECT_GT((net->parameters()[0] - before).abs().max().item<double>(), 0.01);
  }
}

TEST_F(OwnFields, AreSavedAndLoaded) {
  const std::string file = ::testing::TempDir() + "own_field.safetensors";
  NeuralOde saved(with_network(mlp({.features = {2, 4, 2}}))),
      loaded(with_network(mlp({.features = {2, 4, 2}})));
  ASSERT_FALSE(torch::equal(saved->forward(x), loaded->forward(x)));
  save_module(file, *saved);
  load_into(*loaded, file);
  EXPECT_TRUE(torch::equal(saved->forward(x), loaded->forward(x)));
  std::filesystem::remove(file);
}

TEST_F(OwnFields, AreConvertedWithTheirModel) {
  const Tensor theta = torch::ones({2}).requires_grad_();
  NeuralOde ode(decay(theta)), other(with_network(mlp({.features = {2, 4, 2}})));
  ode->to(float64), other->to(float64);
  EXPECT_LT(distance(ode->forward(x.to(float64)), once * x.to(float64)), 1e-4);
  EXPECT_EQ(other->forward(x.to(float64)).scalar_type(), float64);
}

TEST_F(OwnFields, TrainAndEvaluateTheirModulesWithTheModel) {
  torch::nn::Dropout dropout(0.5);
  NeuralOde ode(own_field(
      {.rate = [=](const Tensor&, const Tensor&, const Tensor& z) mutable { return dropout->forward(z); },
       .modules = {dropout}}));
  ode->eval();
  EXPECT_FALSE(dropout->is_training());
}

TEST_F(OwnFields, RefuseWhatIsNoModuleOrTensor) {
  const auto rate = [](const Tensor&, const Tensor&, const Tensor& z) { return -z; };
  EXPECT_EQ(message_of([&] { own_field({.rate = rate, .parameters = {Tensor{}}}); }),
            "`parameters` must be tensors, got an undefined one at place 0");
  EXPECT_EQ(message_of([&] { own_field({.rate = rate, .modules = {std::shared_ptr<torch::nn::Module>()}}); }),
            "`modules` must not be empty, got an empty one at place 0");
}

// Nothing to train

class EmptyModels : public OwnFields {
 protected:
  static NeuralOde empty() {
    return NeuralOde(own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) { return -z; }}));
  }
};

TEST_F(EmptyModels, AreNotSavedOrLoaded) {
  const std::string file = ::testing::TempDir() + "empty.safetensors";
  EXPECT_NE(message_of([&] { save_module(file, *empty()); }).find("there is nothing to save or load"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file));
  save_module(file, *torch::nn::Linear(2, 2));
  EXPECT_NE(message_of([&] { load_into(*empty(), file); }).find("there is nothing to save or load"),
            std::string::npos);
  std::filesystem::remove(file);
}

TEST_F(EmptyModels, AreNotFitted) {
  NeuralOde ode = empty(), frozen(decay(torch::ones({2})));
  const auto complaint = [&](NeuralOde& model) {
    return message_of([&] { fit(*model, [&](std::int64_t) { return model->loss(x, y); }, {.quiet = true}); });
  };
  EXPECT_NE(complaint(ode).find("has no parameters to train"), std::string::npos);
  EXPECT_NE(complaint(frozen).find("none of the 1 parameters of the model wants a gradient"),
            std::string::npos);
}

TEST_F(EmptyModels, AreNotFittedByALossOfAnotherModel) {
  torch::nn::Linear model(2, 2);
  EXPECT_NE(message_of([&] {
              fit(*model, [&](std::int64_t) { return x.square().mean(); }, {.quiet = true});
            }).find("the loss must depend on a parameter that wants a gradient"),
            std::string::npos);
}

TEST_F(EmptyModels, AreNotStepped) {
  FusedAdam adam(empty()->parameters(), torch::optim::AdamOptions(0.1));
  FusedAdamW adamw(empty()->parameters(), torch::optim::AdamWOptions(0.1));
  EXPECT_NE(message_of([&] { adam.step(); }).find("the optimiser has no parameters to train"),
            std::string::npos);
  EXPECT_NE(message_of([&] { adamw.step(); }).find("the optimiser has no parameters to train"),
            std::string::npos);
}

// Control

const std::string reads_x =
    "the field reads x, but is not declared as controlled; set `controlled = true` in its OwnField, or "
    "override "
    "`is_controlled()` in its FieldModule";

/// z' = x - z in a module, declared as controlled or not.
template <bool declared> struct Driven : FieldModule {
  Tensor rate(const Tensor&, const Tensor& x, const Tensor& z) override { return x - z; }
  bool is_controlled() const override { return declared; }
};

TEST_F(OwnFields, ThatReadAnInputMustSaySo) {
  const Tensor start = torch::ones({1, 1}, float64).requires_grad_();
  const auto drive = [](const Tensor&, const Tensor& u, const Tensor& z) { return u - z; };
  const auto slope = [&](const Field& field) {
    NeuralOde ode(field);
    return gradient(ode->forward(start).sum(), start).item<double>();
  };
  EXPECT_NEAR(slope(own_field({.rate = drive, .controlled = true})), 1, 1e-4);
  EXPECT_NEAR(slope(std::make_shared<Driven<true>>()), 1, 1e-4);
  EXPECT_EQ(message_of([&] { slope(own_field({.rate = drive})); }), reads_x);
  EXPECT_EQ(message_of([&] { slope(std::make_shared<Driven<false>>()); }), reads_x);
  EXPECT_EQ(message_of([&] {
              torch::NoGradGuard no_graph;
              NeuralOde(own_field({.rate = drive}))->forward(start);
            }),
            reads_x);
}

TEST_F(OwnFields, ThatReadAnInputInAnyWayMustSaySo) {
  using Reader = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;
  for (const Reader& rate :
       std::vector<Reader>{[](auto&, auto&u, auto&z) {
                             return torch::cat({u, z}, 1).narrow(1, 0, 2);
                           },
                           [](auto&, auto&u, auto&z) { return z * double(u.size(1)); },
                           [](auto&, auto&u, auto&z) { return z * u.mean(); },
                           [](auto&, auto&u, auto&z) {
                             return torch::stack({u, z}).sum(0);
                           },
                           [](auto&, auto&u, auto&z) { return torch::where(z > 0, u, z); },
                           [](auto&, auto&u, auto&z) { return z.matmul(u.t()).matmul(u); },
                           [](auto&, auto&u, auto&z) { return z + u[0]; }}) {
    EXPECT_EQ(message_of([&] { NeuralOde(own_field({.rate = rate}))->forward(x); }), reads_x);
  }
}

TEST_F(OwnFields, OfAFlowThatReadAConditionMustSaySo) {
  const auto drive = [](const Tensor&, const Tensor& u, const Tensor& z) { return u - z; };
  Flow flow(own_field({.rate = drive}), standard_normal(2));
  EXPECT_EQ(message_of([&] { flow->log_prob(x, x); }), reads_x);
  EXPECT_EQ(message_of([&] { flow->log_prob(x); }), reads_x);
}

TEST_F(OwnFields, ThatThrowForAnotherReasonKeepIt) {
  const Field broken = own_field({.rate = [](const Tensor&, const Tensor&, const Tensor&) -> Tensor {
    throw std::domain_error("pressure must be positive");
  }});
  const auto failure = failure_of([&] { NeuralOde(broken)->forward(x); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->reason, FailureReason::field_threw);
  EXPECT_NE(std::string(failure->what()).find("pressure must be positive"), std::string::npos);
}

TEST_F(OwnFields, OfAControlledFieldTakeAStateWithoutBatch) {
  const auto net = mlp({.features = {4, 3, 2}});
  NeuralOde ode(controlled(net)),
      added(controlled(mlp({.features = {2, 3, 2}}), {.entry = ControlEntry::addition}));
  const Tensor one = torch::randn({2});
  EXPECT_LT(distance(ode->forward(one), ode->forward(one.unsqueeze(0)).squeeze(0)), 1e-6);
  EXPECT_LT(distance(added->forward(one), added->forward(one.unsqueeze(0)).squeeze(0)), 1e-6);
  NeuralOde driven_ode(
      driven(mlp({.features = {3, 3, 2}}), {.value = [](const Tensor& at) { return at.view({1}); }}));
  EXPECT_LT(distance(driven_ode->forward(one), driven_ode->forward(one.unsqueeze(0)).squeeze(0)), 1e-6);
}

// Signals

TEST_F(OwnFields, DrivenByASignalShowItsWeightsToTorch) {
  const Tensor height = torch::ones({1}).requires_grad_();
  const Field field = driven(mlp({.features = {3, 3, 2}}),
                             {.value = [=](const Tensor&) { return height; }, .parameters = {height}});
  EXPECT_TRUE(field->named_parameters()["signal_0"].is_same(height));
  EXPECT_EQ(parameters_of(*field).size(), field->parameters().size());
  EXPECT_NE(message_of([&] { field->clone(); }).find("cannot be cloned"), std::string::npos);
}

// Types

TEST_F(OwnFields, OfMixedTypesNameTheLayerAndBoth) {
  const std::string sentence = " has Float, got Double; convert the model or what it is given with `to()`";
  NeuralOde plain(autonomous(mlp({.features = {2, 4, 2}})));
  EXPECT_EQ(message_of([&] { plain->forward(x.to(float64)); }), "layer 0 (Linear)" + sentence);
  NeuralOde galerkin(depth_varying(mlp({.features = {2, 4, 2}, .basis = fourier()})));
  EXPECT_EQ(message_of([&] { galerkin->forward(x.to(float64)); }), "layer 0 (DepthLinear)" + sentence);
  NeuralOde own(with_network(mlp({.features = {2, 4, 2}})));
  EXPECT_EQ(message_of([&] { own->forward(x.to(float64)); }), "layer 0 (Linear)" + sentence);
}

TEST_F(OwnFields, ThatForgetThatDepthIsFloat64AreTold) {
  const auto net = mlp({.features = {3, 4, 2}});
  torch::nn::Linear layer(3, 2);
  const auto with_depth = [](const Tensor& s, const Tensor& z) {
    return torch::cat({z, s.expand({z.size(0), 1})}, 1);
  };
  NeuralOde deep(own_field({.rate = [=](const Tensor& s, const Tensor&,
                                        const Tensor& z) { return net->forward(s, with_depth(s, z)); },
                            .modules = {net}}));
  EXPECT_NE(message_of([&] { deep->forward(x); }).find("layer 0 (Linear) has Float, got Double"),
            std::string::npos);
  NeuralOde plain(
      own_field({.rate = [=](const Tensor& s, const Tensor&,
                             const Tensor& z) mutable { return layer->forward(with_depth(s, z)); },
                 .modules = {layer}}));
  EXPECT_NE(message_of([&] { plain->forward(x); }).find("depth is Double: `s.to(z.options())` converts it"),
            std::string::npos);
}

TEST_F(OwnFields, WithAPlainModuleOfAnotherTypeNameBothTypes) {
  torch::nn::Linear layer(2, 2);
  NeuralOde ode(own_field(
      {.rate = [=](const Tensor&, const Tensor&, const Tensor& z) mutable { return layer->forward(z); },
       .modules = {layer}}));
  const std::string message = message_of([&] { ode->forward(x.to(float64)); });
  EXPECT_NE(message.find("a parameter of the field, of shape [2, 2], has Float, the state Double"),
            std::string::npos)
      << message;
}

// Modules

struct Damped : FieldModule {
  explicit Damped(std::int64_t hidden_)
      : hidden(hidden_),
        net(register_module("net", mlp({.features = {2, hidden, 2}}))),
        damping(register_parameter("damping", torch::ones({1}))) {}
  Tensor rate(const Tensor& s, const Tensor&, const Tensor& z) override {
    return net->forward(s, z) - damping * z;
  }
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override {
    return filled(std::make_shared<Damped>(hidden), device);
  }
  std::int64_t hidden;
  DepthSequential net;
  Tensor damping;
};

TEST_F(OwnFields, AsModulesAreCloned) {
  NeuralOde ode(std::make_shared<Damped>(5));
  ode->to(float64);
  const Tensor z = x.to(float64), before = ode->forward(z).detach();
  const auto copy = std::dynamic_pointer_cast<NeuralOdeImpl>(ode->clone());
  EXPECT_TRUE(torch::equal(copy->forward(z), before));
  const torch::NoGradGuard no_graph;
  for (Tensor parameter : copy->parameters()) parameter.zero_();
  EXPECT_TRUE(torch::equal(ode->forward(z), before));
  EXPECT_FALSE(torch::equal(copy->forward(z), before));
}

TEST_F(OwnFields, AsModulesThatCannotBeClonedSayWhatToWrite) {
  const std::string message = message_of([] { std::make_shared<Driven<true>>()->clone(); });
  EXPECT_NE(message.find("override clone() with `return filled(std::make_shared<"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace fathom::testing
