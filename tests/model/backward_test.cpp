/// `fathom::backward(loss)` is `loss.backward()`, without torch's engine where nobody would notice.
#include <functional>

#include "model/loss_cases.hpp"

namespace fathom::testing {
namespace {

/// What backward() leaves in the gradients of `variables`, called twice on new losses.
template <class Backward>
std::vector<Tensor> left_in(const std::vector<Tensor>& variables, const std::function<Tensor()>& loss,
                            Backward&& backward) {
  for (const Tensor& variable : variables) variable.mutable_grad() = Tensor();
  backward(loss());
  backward(loss());
  std::vector<Tensor> left;
  for (const Tensor& variable : variables)
    left.push_back(variable.grad().defined() ? variable.grad().clone() : Tensor());
  return left;
}

TEST(BackwardWithoutTorchsEngine, LeavesWhatTorchLeaves) {
  const auto by_torch = [](const Tensor& loss) { loss.backward(); };
  const auto directly = [](const Tensor& loss) { fathom::backward(loss); };
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Case c = random_case(seed, torch::kFloat32);
    if (seed % 4 == 0) c.x.set_requires_grad(false);
    if (seed % 4 == 1) c.variables.front().set_requires_grad(false);
    const auto whole = [&] { return c.ode->loss(c.x, c.y, c.answer); };
    const auto scaled = [&] { return 2 * whole(); };
    for (const std::function<Tensor()>& loss :
         {std::function<Tensor()>(whole), std::function<Tensor()>(scaled)}) {
      const auto expected = left_in(c.variables, loss, by_torch),
                 given = left_in(c.variables, loss, directly);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(given[i].defined(), expected[i].defined()) << c.description << ", variable " << i;
        if (!given[i].defined()) continue;
        ASSERT_TRUE(torch::equal(given[i], expected[i])) << c.description << ", variable " << i;
      }
    }
  }
}

TEST(BackwardWithoutTorchsEngine, CallsHooks) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  const Tensor x = torch::randn({5, 2}), y = torch::zeros({5, 2});
  int calls = 0;
  ode->parameters().back().register_hook([&](const Tensor&) { ++calls; });
  fathom::backward(ode->loss(x, y));
  EXPECT_EQ(calls, 1);
  NeuralOde other(autonomous(mlp({.features = {2, 4, 2}})));
  const Tensor loss = other->loss(x, y);
  loss.register_hook([&](const Tensor& gradient) { return ++calls, 3 * gradient; });
  fathom::backward(loss);
  EXPECT_EQ(calls, 2);
  const Tensor once = torch::autograd::grad({other->loss(x, y)}, {other->parameters().front()})[0];
  EXPECT_LT((other->parameters().front().grad() - 3 * once).abs().max().item<double>(), 1e-6);
}

TEST(BackwardWithoutTorchsEngine, LeavesALossTheGradientThatItRetains) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  const Tensor loss = ode->loss(torch::randn({5, 2}), torch::zeros({5, 2}));
  loss.retain_grad();
  fathom::backward(loss);
  ASSERT_TRUE(loss.grad().defined());
  EXPECT_EQ(loss.grad().item<double>(), 1);
}

#if TORCH_VERSION_MAJOR >= 2
TEST(BackwardWithoutTorchsEngine, CallsHooksThatWaitForAParametersGradient) {
  struct Counter : torch::autograd::PostAccumulateGradHook {
    explicit Counter(int& calls_) : calls(calls_) {}
    void operator()(const Tensor& parameter) override { calls += parameter.grad().defined() ? 1 : 0; }
    int& calls;
  };
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  int calls = 0;
  torch::autograd::impl::set_post_acc_grad_hooks(ode->parameters().back(), std::make_unique<Counter>(calls));
  fathom::backward(ode->loss(torch::randn({5, 2}), torch::zeros({5, 2})));
  EXPECT_EQ(calls, 1);
}
#endif

TEST(BackwardWithoutTorchsEngine, KeepsAParametersLayoutAndLeavesThoseAloneThatWereFrozenMeanwhile) {
  NeuralOde ode(autonomous(mlp({.features = {2, 4, 2}})));
  Tensor turned = ode->parameters().front(), frozen = ode->parameters().back();
  turned.set_data(turned.detach().t().contiguous().t());
  const Tensor loss = ode->loss(torch::randn({40, 2}), torch::zeros({40, 2}));
  frozen.set_requires_grad(false);
  fathom::backward(loss);
  EXPECT_EQ(turned.grad().strides(), turned.strides());
  EXPECT_FALSE(frozen.grad().defined());
}

TEST(BackwardWithoutTorchsEngine, RefusesWhatTorchRefuses) {
  NeuralOde ode(depth_varying(mlp({.features = {2, 4, 2}, .basis = fourier({.harmonics = 1})})));
  const Tensor x = torch::randn({5, 2}), y = torch::zeros({5, 2});
  const Tensor twice = ode->loss(x, y), changed = ode->loss(x, y);
  fathom::backward(twice);
  EXPECT_THROW(fathom::backward(twice), c10::Error);
  EXPECT_THROW(fathom::backward(torch::ones({})), c10::Error);
  {
    const torch::NoGradGuard no_graph;
    ode->parameters().front().add_(1);
    EXPECT_THROW(fathom::backward(ode->loss(x, y)), c10::Error);
  }
  EXPECT_THROW(fathom::backward(changed), c10::Error);
}

/// A model and its gradients, iteration after iteration.
class GradientsUsedAgain : public ::testing::Test {
 protected:
  GradientsUsedAgain() {
    torch::manual_seed(3);
    head_ = nn::Linear(2, 1);
    ode_ = NeuralOde(autonomous(mlp({.features = {2, 8, 8, 2}})));
    x_ = torch::randn({40, 2}), y_ = torch::randn({40, 1});
    parameters_ = ode_->parameters();
    parameters_.insert(parameters_.end(), {head_->weight, head_->bias});
  }

  Tensor loss() { return ode_->loss(x_, y_, {.head = head_}); }
  void forget_gradients() {
    for (Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  }
  /// By torch, of a loss of its own.
  std::vector<Tensor> expected() { return torch::autograd::grad({loss()}, parameters_); }
  void expect_gradients(const std::vector<Tensor>& expected, const char* what) {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      EXPECT_TRUE(torch::equal(parameters_[i].grad(), expected[i])) << what << ", parameter " << i;
  }

  nn::Linear head_ = nullptr;
  NeuralOde ode_ = nullptr;
  Tensor x_, y_;
  std::vector<Tensor> parameters_;
};

TEST_F(GradientsUsedAgain, OnceTheirParametersLetGoOfThem) {
  backward(loss());
  std::vector<const void*> places;
  for (const Tensor& parameter : parameters_) places.push_back(parameter.grad().data_ptr());
  for (int iteration = 0; iteration < 3; ++iteration) {
    forget_gradients();
    std::vector<Tensor> others;  // would get the memory, were it free
    for (const Tensor& parameter : parameters_) others.push_back(torch::empty_like(parameter));
    {
      const torch::NoGradGuard no_graph;
      for (Tensor& parameter : parameters_) parameter.mul_(0.9);
    }
    backward(loss());
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      EXPECT_EQ(parameters_[i].grad().data_ptr(), places[i]) << "parameter " << i;
    expect_gradients(expected(), "in the memory of earlier ones");
  }
}

TEST_F(GradientsUsedAgain, NotWhileSomebodyHoldsThemOrTheirNumbers) {
  const std::vector<Tensor> first = expected();
  backward(loss());
  const Tensor held = parameters_[0].grad(), alias = parameters_[1].grad().view({-1});
  const Tensor detached = parameters_[2].grad().detach();
  const c10::weak_intrusive_ptr<c10::TensorImpl> weak(parameters_[3].grad().getIntrusivePtr());
  forget_gradients();
  x_ = 2 * x_;
  backward(loss());
  expect_gradients(expected(), "beside earlier ones");
  EXPECT_TRUE(torch::equal(held, first[0]));
  EXPECT_TRUE(torch::equal(alias, first[1].view({-1})));
  EXPECT_TRUE(torch::equal(detached, first[2]));
  EXPECT_NE(weak.lock().get(), parameters_[3].grad().unsafeGetTensorImpl());
}

TEST_F(GradientsUsedAgain, NotWhereTheyBecameSomethingElse) {
  backward(loss());
  std::vector<float> foreign(8, 5.0f);
  parameters_[0].grad().requires_grad_(true);
  parameters_[1].grad().resize_({3});
  parameters_[2].grad().t_();
  parameters_[3].grad().set_data(torch::from_blob(foreign.data(), {8}));
  parameters_[4].grad().unsafeGetTensorImpl()->storage().set_nbytes(4);
  forget_gradients();
  backward(loss());
  expect_gradients(expected(), "after earlier ones were changed");
  for (const Tensor& parameter : parameters_) EXPECT_FALSE(parameter.grad().requires_grad());
  EXPECT_EQ(foreign, std::vector<float>(8, 5.0f));
  forget_gradients();
  ode_->to(torch::kFloat64), head_->to(torch::kFloat64);
  x_ = x_.to(torch::kFloat64), y_ = y_.to(torch::kFloat64);
  backward(loss());
  expect_gradients(expected(), "in another precision");
}

TEST_F(GradientsUsedAgain, NotByTwoLossesAtOnce) {
  const std::vector<Tensor> once = expected();
  backward(loss());
  forget_gradients();
  const Tensor first = loss(), second = loss();
  backward(second);
  backward(first);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    EXPECT_TRUE(torch::allclose(parameters_[i].grad(), 2 * once[i])) << "parameter " << i;
}

/// Arithmetic in place lets a gradient hold the graph of a loss, and with it what the model keeps: both must be able to go.
TEST_F(GradientsUsedAgain, GoWithTheirModel) {
  backward(loss());
  parameters_[0].grad().add_(loss());
  ASSERT_TRUE(parameters_[0].grad().grad_fn());
  const c10::weak_intrusive_ptr<c10::TensorImpl> gradient(parameters_[0].grad().getIntrusivePtr());
  forget_gradients();
  EXPECT_FALSE(gradient.expired());  // kept for the next loss
  parameters_.clear();
  ode_ = nullptr;
  EXPECT_TRUE(gradient.expired());
}

TEST_F(GradientsUsedAgain, AddUpWhereTheyAreKept) {
  const std::vector<Tensor> once = expected();
  for (int iteration = 0; iteration < 3; ++iteration) backward(loss());
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    EXPECT_TRUE(torch::allclose(parameters_[i].grad(), 3 * once[i])) << "parameter " << i;
}

}  // namespace
}  // namespace fathom::testing
