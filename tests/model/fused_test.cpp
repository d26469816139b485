/// The fused engine against the tensor engine, which stays its reference: same steps, same states, same gradients, over
/// random fields, batches, methods and losses; and what each reports of itself.
#include <gtest/gtest.h>

#include <random>

#include "fathom/field/lower.hpp"
#include "fathom/model/trace.hpp"
#include "support/gradients.hpp"

namespace fathom::testing {
namespace {

/// One random problem: everything a fused solve can be asked for.
struct Problem {
  std::string description;
  VectorField field;
  Tensor z0, depths;
  Solver solver;
  Sensitivity sensitivity;
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  template <class T> const T& one_of(const std::vector<T>& all) {
    return all[std::size_t(below(std::int64_t(all.size())))];
  }
  std::int64_t below(std::int64_t count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(engine_);
  }
  bool coin() { return below(2) == 1; }

 private:
  std::mt19937_64 engine_;
};

const std::vector<Activation> activations = {Activation::tanh,    Activation::relu, Activation::softplus,
                                             Activation::elu,     Activation::silu, Activation::sigmoid,
                                             Activation::identity};

DepthBasis random_basis(Random& random) {
  switch (random.below(5)) {
    case 0: return fourier({.harmonics = 2});
    case 1: return chebyshev({.degree = 3});
    case 2: return piecewise_constant({.pieces = 3});
    case 3: return piecewise_linear({.pieces = 2});
    default: return gaussian_radial({.centres = 4});
  }
}

MlpOptions random_network(Random& random, std::int64_t inputs, std::int64_t outputs, bool varies) {
  MlpOptions options{.features = {inputs}};
  for (std::int64_t n = random.below(3); n >= 0; --n) options.features.push_back(1 + random.below(20));
  options.features.push_back(outputs);
  options.activation = random.one_of(activations);
  if (random.below(4) == 0) options.last_activation = random.one_of(activations);
  if (varies) {
    options.depth =
        random.one_of<DepthInput>({DepthInput::none, DepthInput::first_layer, DepthInput::every_layer});
    if (random.coin()) options.basis = random_basis(random);
  }
  return options;
}

const std::vector<std::string> wrappers = {"plain",         "varying",      "concatenated", "added",
                                           "embedded",      "second order", "third order",  "selective",
                                           "approximation", "scaled",       "divergence"};

Solver random_solver(Random& random) {
  using Method = ode::ButcherTableau (*)();
  const std::vector<Method> adaptive_methods = {dopri5, tsit5, bosh3, fehlberg45, cash_karp54, dop853, heun2};
  const std::vector<Method> fixed_methods = {euler, midpoint, heun3, rk4, rk4_38, ralston2, dopri5};
  if (random.below(3) == 0) return fixed(random.one_of(fixed_methods)(), 1 + random.below(6));
  Solver solver{.method = random.one_of(adaptive_methods)()};
  AdaptiveSteps steps{.relative_tolerance = 1e-4, .absolute_tolerance = 1e-5};
  if (random.coin()) steps.norm = ErrorNorm::per_sample;
  if (random.coin()) steps.control = pi_control();
  solver.steps = steps;
  return solver;
}

Problem random_problem(std::uint64_t seed, const std::string& wrapper, torch::ScalarType type) {
  Random random(seed);
  torch::manual_seed(seed);
  const auto wanting = torch::TensorOptions(type).requires_grad(true);
  const std::int64_t batch = random.one_of<std::int64_t>({1, 2, 3, 7, 8, 9, 17, 63, 64, 65, 130});
  std::int64_t features = 1 + random.below(5);
  if (wrapper == "second order") features *= 2;
  if (wrapper == "third order") features *= 3;
  if (wrapper == "selective") features += 2;
  if (wrapper == "approximation") features += 1;
  const std::int64_t controls = wrapper == "added" ? features : 1 + random.below(3);
  Tensor control, scale;
  Field field;
  const auto network = [&](std::int64_t inputs, std::int64_t outputs, bool varies) {
    return mlp(random_network(random, inputs, outputs, varies));
  };
  if (wrapper == "plain") field = autonomous(network(features, features, false));
  if (wrapper == "varying") field = depth_varying(network(features, features, true));
  if (wrapper == "concatenated") field = controlled(network(features + controls, features, random.coin()));
  if (wrapper == "added") {
    field = controlled(network(features, features, random.coin()), {.entry = ControlEntry::addition});
  }
  if (wrapper == "embedded") {
    const std::int64_t embedded = 1 + random.below(3);
    field = controlled(network(features + embedded, features, random.coin()),
                       {.embedding = network(controls, embedded, random.coin()).ptr()});
  }
  if (wrapper == "second order")
    field = higher_order(depth_varying(network(features, features / 2, random.coin())), 2);
  if (wrapper == "third order") {
    field = higher_order(controlled(network(features + controls, features / 3, false)), 3);
  }
  if (wrapper == "selective") {
    field = higher_order(depth_varying(network(features, features - 1, random.coin())),
                         SelectiveOrder{.states = 2});
  }
  if (wrapper == "approximation") field = approximation(network(1, features - 1, random.coin()), 1);
  if (wrapper == "scaled") {
    MlpOptions options = random_network(random, features, features, true);
    options.basis.reset();
    field = depth_varying(mlp(options));
    scale = torch::rand({batch}, type).requires_grad_();
  }
  if (wrapper == "divergence") {
    MlpOptions options = random_network(random, features + controls, features, random.coin());
    options.activation = random.one_of<Activation>(
        {Activation::tanh, Activation::softplus, Activation::elu, Activation::sigmoid});
    options.last_activation = Activation::identity;
    field = controlled(mlp(options));
  }
  field->to(type);
  if (field->is_controlled()) control = torch::randn({batch, controls}, wanting);

  Problem problem;
  problem.description =
      text("seed ", seed, ", ", wrapper, ", batch ", batch, ", features ", features, ", ", type);
  VectorField& f = problem.field;
  f.parameters = field->parameters();
  for (const Tensor& input : {control, scale}) {
    if (input.defined()) f.parameters.push_back(input);
  }
  f.rate = [=](const Tensor& s, const Tensor& z) {
    if (!scale.defined()) return field->rate(s, control, z);
    return field->rate(scale.to(torch::kFloat64) * s, control, z) * scale.unsqueeze(1);
  };
  if (!scale.defined()) f.break_points = field->break_points();
  LowerOptions lowering{.control = control, .scale = scale};
  if (wrapper == "divergence") {
    lowering.divergence = true;
    f.running_loss = [=](const Tensor& s, const Tensor& z, const Tensor&) {
      return mlp_divergence(field, s, control, z);
    };
  } else if (!scale.defined() && random.coin()) {
    const DepthBasis target = own_basis("target", std::size_t(features), [=](double s) {
      return std::vector<double>(std::size_t(features), std::sin(3 * s));
    });
    lowering.losses = {path_length(), kinetic_energy(), tracking(target)};
    f.running_terms = 3;
    f.running_loss = [=](const Tensor& s, const Tensor& z, const Tensor& rate) {
      std::vector<Tensor> values;
      for (const RunningLoss& loss : lowering.losses) values.push_back(loss(s, control, z, rate));
      return torch::stack(values, -1);
    };
  }
  problem.z0 = torch::randn({batch, features}, wanting);
  f.lowered = lower(field, problem.z0, lowering);
  problem.depths = variables({0.0, 0.0, 0.3, 0.55, 0.55, 1.0});
  if (random.below(4) == 0) problem.depths = variables({1.0, 0.7, 0.2, 0.0});
  problem.solver = random_solver(random);
  return problem;
}

struct Answer {
  Solution solution;
  std::vector<Tensor> gradients;
};

Answer answer(Problem problem, bool fused) {
  problem.solver.fused = fused;
  const Solution solution =
      solve(problem.field, problem.z0, problem.depths, problem.solver, problem.sensitivity);
  torch::manual_seed(99);
  Tensor loss = (solution.states * torch::randn_like(solution.states)).sum();
  if (solution.running_loss.defined()) {
    loss = loss + (solution.running_loss * torch::randn_like(solution.running_loss)).sum();
  }
  std::vector<Tensor> variables = {problem.z0, problem.depths};
  for (const Tensor& parameter : problem.field.parameters) variables.push_back(parameter);
  auto gradients = torch::autograd::grad({loss}, variables, {}, {}, false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = torch::zeros_like(variables[i]);
  }
  return {solution, gradients};
}

Answer answer_with_threads(const Problem& problem, int threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  const Answer given = answer(problem, true);
  at::set_num_threads(before);
  return given;
}

void expect_equal(const Problem& problem, double tolerance) {
  ASSERT_NE(problem.field.lowered.program, nullptr)
      << problem.description << ": " << problem.field.lowered.reason;
  const Answer fused = answer(problem, true);
  Answer tensor = answer(problem, false);
  ASSERT_EQ(fused.solution.report().engine, "fused") << fused.solution.report().not_fused;
  ASSERT_EQ(tensor.solution.report().engine, "tensor");
  EXPECT_EQ(fused.solution.report().accepted, tensor.solution.report().accepted) << problem.description;
  EXPECT_EQ(fused.solution.report().rejected, tensor.solution.report().rejected) << problem.description;
  EXPECT_EQ(fused.solution.report().evaluations, tensor.solution.report().evaluations) << problem.description;
  const bool adapts = std::holds_alternative<AdaptiveSteps>(problem.solver.steps);
  if (adapts && std::holds_alternative<Discrete>(problem.sensitivity)) {
    // An error estimate is a difference of nearly equal numbers: its last digits, and with them the steps, differ. The rest
    // is compared on the very same steps.
    ASSERT_EQ(fused.solution.grid.size(), tensor.solution.grid.size());
    for (std::size_t n = 0; n < fused.solution.grid.size(); ++n) {
      EXPECT_NEAR(fused.solution.grid[n], tensor.solution.grid[n], 1e-5) << problem.description;
    }
    Problem again = problem;
    again.solver.steps = steps_along(fused.solution.grid);
    tensor = answer(again, false);
  }
  const auto close = [&](const Tensor& given, const Tensor& expected) {
    const double scale = std::max(1.0, expected.abs().max().item<double>());
    return (given - expected).abs().max().item<double>() / scale;
  };
  EXPECT_LT(close(fused.solution.states, tensor.solution.states), tolerance) << problem.description;
  if (tensor.solution.running_loss.defined()) {
    EXPECT_LT(close(fused.solution.running_loss, tensor.solution.running_loss), tolerance)
        << problem.description;
  }
  for (std::size_t i = 0; i < fused.gradients.size(); ++i) {
    EXPECT_LT(close(fused.gradients[i], tensor.gradients[i]), tolerance)
        << problem.description << ", " << problem.solver.method->name << ", gradient " << i << "\n"
        << tensor.gradients[i].flatten().slice(0, 0, 5) << fused.gradients[i].flatten().slice(0, 0, 5);
  }
}

class EveryWrapper : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryWrapper, GivesTheSameInDoublePrecisionByDiscrete) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    expect_equal(random_problem(seed, GetParam(), torch::kFloat64), 1e-12);
    if (HasFailure()) return;
  }
}

TEST_P(EveryWrapper, GivesTheSameInSinglePrecisionByDiscrete) {
  for (std::uint64_t seed = 100; seed < 115; ++seed) {
    Problem problem = random_problem(seed, GetParam(), torch::kFloat32);
    // With error control a rounding may move a step; on a fixed grid only arithmetic differs.
    if (!std::holds_alternative<FixedSteps>(problem.solver.steps)) problem.solver = fixed(dopri5(), 4);
    expect_equal(problem, 1e-5);
    if (HasFailure()) return;
  }
}

TEST_P(EveryWrapper, GivesTheSameByAdjoint) {
  for (std::uint64_t seed = 200; seed < 210; ++seed) {
    Problem problem = random_problem(seed, GetParam(), torch::kFloat64);
    problem.sensitivity = Adjoint{};
    expect_equal(problem, std::holds_alternative<FixedSteps>(problem.solver.steps) ? 1e-12 : 1e-7);
    if (HasFailure()) return;
  }
}

TEST_P(EveryWrapper, GivesTheSameFromCheckpoints) {
  for (std::uint64_t seed = 300; seed < 306; ++seed) {
    Problem problem = random_problem(seed, GetParam(), torch::kFloat64);
    problem.solver = fixed(rk4(), 7);
    const std::vector<Tensor> expected = answer(problem, true).gradients;
    for (const Discrete& how : {Discrete{.checkpoint_every = 3}, Discrete{.memory_budget = 1}}) {
      problem.sensitivity = how;
      const std::vector<Tensor> given = answer(problem, true).gradients;
      for (std::size_t i = 0; i < given.size(); ++i) ASSERT_LT(distance(given[i], expected[i]), 1e-13) << i;
    }
  }
}

TEST_P(EveryWrapper, GivesTheSameWithAnyNumberOfThreads) {
  const Problem problem = random_problem(400, GetParam(), torch::kFloat64);
  const Answer one = answer_with_threads(problem, 1), three = answer_with_threads(problem, 3);
  EXPECT_EQ(one.solution.report().accepted, three.solution.report().accepted);
  EXPECT_EQ(one.solution.grid, three.solution.grid);
  EXPECT_TRUE(torch::equal(one.solution.states, three.solution.states));
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    EXPECT_LT(distance(three.gradients[i], one.gradients[i]), 1e-13) << i;
  }
}

std::string spelled(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Random, EveryWrapper, ::testing::ValuesIn(wrappers), spelled);

/// 64 x 64 weights on a basis: about ten steps of dopri5 have room to be prepared at once.
Problem wide_varying_problem(torch::ScalarType type) {
  torch::manual_seed(7);
  Field field = depth_varying(mlp({.features = {3, 64, 64, 3}, .basis = chebyshev({.degree = 2})}));
  field->to(type);
  Problem problem;
  problem.description = "wide, varying";
  problem.field.parameters = field->parameters();
  problem.field.rate = [=](const Tensor& s, const Tensor& z) { return field->rate(s, {}, z); };
  problem.z0 = torch::randn({130, 3}, torch::TensorOptions(type).requires_grad(true));
  problem.field.lowered = lower(field, problem.z0, {});
  problem.depths = variables({0.0, 0.35, 1.0});
  problem.solver = fixed(dopri5(), 25);
  return problem;
}

TEST(FusedEngine, WalksBackInGroupsOfStepsWhereManyWeightsVary) {
  Problem problem = wide_varying_problem(torch::kFloat64);
  for (const Discrete& how : {Discrete{}, Discrete{.checkpoint_every = 13}, Discrete{.memory_budget = 1}}) {
    problem.sensitivity = how;
    expect_equal(problem, 1e-12);
  }
}

TEST(FusedEngine, SumsGradientsOfVaryingWeightsOverThreads) {
  const Problem problem = wide_varying_problem(torch::kFloat32);
  const Answer one = answer_with_threads(problem, 1), three = answer_with_threads(problem, 3);
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    EXPECT_LT(distance(three.gradients[i], one.gradients[i]), 1e-6) << i;
  }
}

TEST(FusedEngine, StopsEarlyAsTheTensorEngineDoes) {
  Problem problem = random_problem(7, "plain", torch::kFloat64);
  std::int64_t seen = 0;
  problem.solver = fixed(rk4(), 10);
  problem.solver.observer = [&](const StepEvent&, const Tensor& state) {
    EXPECT_EQ(state.sizes(), problem.z0.sizes());
    return ++seen == 4 ? Next::stop : Next::proceed;
  };
  const Answer fused = answer(problem, true);
  seen = 0;
  const Answer tensor = answer(problem, false);
  EXPECT_EQ(fused.solution.depths, tensor.solution.depths);
  EXPECT_TRUE(fused.solution.report().stopped);
  EXPECT_LT(distance(fused.solution.states, tensor.solution.states), 1e-13);
  for (std::size_t i = 0; i < fused.gradients.size(); ++i) {
    EXPECT_LT(distance(fused.gradients[i], tensor.gradients[i]), 1e-12) << i;
  }
}

TEST(FusedEngine, SaysWhichValueWasNotFiniteAsTheTensorEngineDoes) {
  const auto net = mlp({.features = {2, 3, 2}});
  NeuralOde ode(autonomous(net));
  const torch::NoGradGuard no_graph;
  net->parameters()[0].fill_(std::numeric_limits<float>::quiet_NaN());
  const Tensor x = torch::ones({5, 2});
  const auto fused = failure_of([&] { ode->forward(x); });
  ode->options().solver.fused = false;
  const auto tensor = failure_of([&] { ode->forward(x); });
  ASSERT_TRUE(fused && tensor);
  EXPECT_EQ(fused->reason, FailureReason::non_finite);
  EXPECT_EQ(fused->site.component, tensor->site.component);
  EXPECT_EQ(std::string(fused->what()), std::string(tensor->what()));
}

TEST(FusedEngine, GivesUnusedParametersZeros) {
  Problem problem = random_problem(3, "plain", torch::kFloat64);
  problem.field.parameters.push_back(
      torch::ones({3}, torch::TensorOptions(torch::kFloat64).requires_grad(true)));
  EXPECT_EQ(answer(problem, true).gradients.back().abs().sum().item<double>(), 0.0);
}

TEST(FusedEngine, AddsTheGradientsOfAWeightThatIsUsedTwice) {
  torch::nn::Linear shared(2, 2);
  shared->to(torch::kFloat64);
  DepthSequential net(shared, torch::nn::Tanh(), shared);
  const Field field = autonomous(net);
  const auto gradient_by = [&](bool fused) {
    NeuralOde ode(field, NeuralOdeOptions{.solver = {.fused = fused}});
    const Tensor x = torch::linspace(-1, 1, 6, torch::kFloat64).view({3, 2});
    const Tensor loss = ode->forward(x).square().sum();
    return torch::autograd::grad({loss}, {shared->weight})[0];
  };
  EXPECT_LT(distance(gradient_by(true), gradient_by(false)), 1e-12);
}

struct Unlowered {
  std::string reason;
  std::function<NeuralOde()> make;
  std::vector<std::int64_t> shape = {4, 2};
};

TEST(FusedEngine, NamesWhatItCannotRunAndTheTensorEngineRuns) {
  struct OddLinearImpl : torch::nn::LinearImpl {
    using LinearImpl::LinearImpl;
    Tensor forward(const Tensor& h) { return 2 * LinearImpl::forward(h); }
  };
  const auto with = [](Field field, NeuralOdeOptions options = {}) {
    return NeuralOde(std::move(field), options);
  };
  const std::vector<Unlowered> cases = {
      {"layer 1 (Dropout) has no kernel",
       [&] { return with(autonomous(DepthSequential(torch::nn::Linear(2, 2), torch::nn::Dropout(0.0)))); }},
      {"OddLinear",
       [&] { return with(autonomous(DepthSequential(torch::nn::ModuleHolder<OddLinearImpl>(2, 2)))); }},
      {"the state is not of shape (batch, features)",
       [&] {
         return with(
             autonomous(DepthSequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 2, 3).padding(1)))));
       },
       {4, 2, 5, 5}},
      {"the field is a function of the user's",
       [&] {
         return with(own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) { return -z; }}));
       }},
      {"a running loss is a function of the user's",
       [&] {
         NeuralOdeOptions options;
         options.running_losses = {
             [](const Tensor&, const Tensor&, const Tensor& z, const Tensor&) { return z.square().sum(1); }};
         return with(autonomous(mlp({.features = {2, 3, 2}})), options);
       }},
      {"it is switched off",
       [&] {
         return with(autonomous(mlp({.features = {2, 3, 2}})), NeuralOdeOptions{.solver = {.fused = false}});
       }},
      {"Unrolled is a graph of tensors",
       [&] {
         return with(autonomous(mlp({.features = {2, 3, 2}})), NeuralOdeOptions{.sensitivity = Unrolled{}});
       }},
  };
  for (const Unlowered& each : cases) {
    NeuralOde ode = each.make();
    ode->forward(torch::ones(each.shape, torch::TensorOptions().requires_grad(true))).sum().backward();
    EXPECT_EQ(ode->report().engine, "tensor") << each.reason;
    EXPECT_NE(ode->report().not_fused.find(each.reason), std::string::npos) << ode->report().not_fused;
  }
}

}  // namespace
}  // namespace fathom::testing
