/// Random problems for both engines, and what it means that these agree: same steps, same states, same gradients.
///
///   for (const Draw& draw : draws_of("plain", float64, Stepping::fixed)) expect_equal(random_problem(draw), 1e-12);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>

#include "fathom/field/lower.hpp"
#include "fathom/fused/kernels.hpp"
#include "fathom/model/trace.hpp"
#include "support/gradients.hpp"

namespace fathom::testing {

/// FATHOM_KERNELS names the instruction set under test. Where the processor lacks it nothing is tested, and ctest, which knows
/// the message, reports the test as skipped (cmake/Tests.cmake).
class NamedKernels : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("FATHOM_KERNELS");
    if (!name || !*name) return;
    ASSERT_TRUE((std::set<std::string>{"avx512", "avx2", "baseline"}.count(name))) << name;
    const auto available = fused::available_kernels<float>();
    const bool has_them = std::any_of(available.begin(), available.end(), [&](const auto* kernels) {
      return std::string(kernels->name) == name;
    });
    if (!has_them) GTEST_SKIP() << "this processor has no " << name;
  }
};
inline const auto* const named_kernels = ::testing::AddGlobalTestEnvironment(new NamedKernels);

/// Everything a fused solve can be asked for.
struct Problem {
  std::string description;
  VectorField field;
  Tensor z0, depths;
  Solver solver;
  Sensitivity sensitivity;
};

class Random {
 public:
  /// The seed is the whole sentence, so that problems that differ in one word have nothing in common.
  explicit Random(const std::string& sentence) {
    std::seed_seq seed(sentence.begin(), sentence.end());
    engine_.seed(seed);
  }
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

inline const std::vector<Activation> activations = {
    Activation::tanh, Activation::relu,    Activation::softplus, Activation::elu,
    Activation::silu, Activation::sigmoid, Activation::identity};
/// Whose divergence has a kernel behind a first layer; that of a layer without a function has none there.
inline const std::vector<Activation> traced_activations = {Activation::tanh,     Activation::relu,
                                                           Activation::softplus, Activation::elu,
                                                           Activation::silu,     Activation::sigmoid};

inline const std::vector<std::string> wrappers = {
    "plain",       "varying",   "concatenated",  "added",  "embedded",  "second order",
    "third order", "selective", "approximation", "scaled", "divergence"};

enum class Stepping { fixed, adaptive };

/// What is chosen of a random problem; the rest is drawn.
struct Draw {
  std::string wrapper;
  torch::ScalarType type;
  std::int64_t batch;
  std::int64_t features;
  std::size_t number;  ///< of those with this wrapper and type; activations take turns
  Stepping stepping = Stepping::fixed;
};

inline std::string sentence(const Draw& draw) {
  return text(draw.wrapper, ", ", draw.type, ", batch ", draw.batch, ", features ", draw.features, ", ",
              draw.stepping == Stepping::fixed ? "fixed" : "adaptive", " steps, number ", draw.number);
}

/// One sample, less and more than fill a vector or a tile, and several tiles; each with one feature and with a few.
inline std::vector<Draw> draws_of(const std::string& wrapper, torch::ScalarType type, Stepping stepping) {
  const bool is_single = type == torch::kFloat32;
  const std::int64_t lanes =
      is_single ? fused::best_kernels<float>().lanes : fused::best_kernels<double>().lanes;
  const std::int64_t tile = is_single ? 64 : 32;  // of small batches, see docs/fused.md
  std::vector<Draw> draws;
  for (const std::int64_t batch :
       std::set<std::int64_t>{1, 2, lanes - 1, lanes + 1, tile - 1, tile + 1, 130}) {
    const std::int64_t few = 2 + Random(text(wrapper, batch, type)).below(4);
    for (const std::int64_t features : {std::int64_t(1), few})
      draws.push_back({wrapper, type, batch, features, draws.size(), stepping});
  }
  return draws;
}

inline DepthBasis random_basis(Random& random) {
  switch (random.below(5)) {
    case 0: return fourier({.harmonics = 2});
    case 1: return chebyshev({.degree = 3});
    case 2: return piecewise_constant({.pieces = 3});
    case 3: return piecewise_linear({.pieces = 2});
    default: return gaussian_radial({.centres = 4});
  }
}

using Tableau = ode::ButcherTableau (*)();
/// Methods whose weights are so large, and cancel, that in single precision either engine is 1e-5 off by rounding alone and
/// that the number of adaptive steps is chance. For them there is a test of its own, in fused_layers_test.cpp.
inline const std::vector<Tableau> methods_of_large_weights = {tsit5, dop853};

inline Solver random_solver(Random& random, const Draw& draw) {
  const bool is_single = draw.type == torch::kFloat32, is_fixed = draw.stepping == Stepping::fixed;
  std::vector<Tableau> methods = {dopri5, bosh3, fehlberg45, cash_karp54, heun2};
  if (is_fixed) methods = {euler, midpoint, heun3, rk4, rk4_38, ralston2, dopri5, bosh3};
  if (!is_single)
    methods.insert(methods.end(), methods_of_large_weights.begin(), methods_of_large_weights.end());
  Solver solver{.method = random.one_of(methods)(), .steps = FixedSteps{.count = 1 + random.below(6)}};
  if (is_fixed) return solver;
  AdaptiveSteps steps{.relative_tolerance = 1e-3, .absolute_tolerance = is_single ? 2e-3 : 1e-4};
  if (random.coin()) steps.norm = ErrorNorm::per_sample;
  if (random.coin()) steps.control = pi_control();
  solver.steps = steps;
  return solver;
}

/// Writes the field of a random problem, wrapper by wrapper.
class RandomField {
 public:
  RandomField(Random& random, const Draw& draw) : random_(random), draw_(draw) {
    const std::string& wrapper = draw.wrapper;
    features = draw.features;
    if (wrapper == "second order") features *= 2;
    if (wrapper == "third order") features *= 3;
    if (wrapper == "selective") features += 2;
    if (wrapper == "approximation") features += 1;
    controls = wrapper == "added" ? features : 1 + random.below(3);
    field = make();
    field->to(draw.type);
  }

  std::int64_t features, controls;
  Field field;

 private:
  enum class Varies { never, perhaps };

  MlpOptions options(std::int64_t inputs, std::int64_t outputs, Varies varies) {
    MlpOptions options{.features = {inputs}};
    for (std::int64_t n = random_.below(3); n >= 0; --n) options.features.push_back(1 + random_.below(20));
    options.features.push_back(outputs);
    options.activation = activations[draw_.number % activations.size()];
    if (random_.below(4) == 0) options.last_activation = random_.one_of(activations);
    if (varies == Varies::perhaps) {
      options.depth =
          random_.one_of<DepthInput>({DepthInput::none, DepthInput::first_layer, DepthInput::every_layer});
      if (random_.coin()) options.basis = random_basis(random_);
    }
    return options;
  }

  DepthSequential network(std::int64_t inputs, std::int64_t outputs, Varies varies) {
    return mlp(options(inputs, outputs, varies));
  }

  Field make() {
    const std::string& wrapper = draw_.wrapper;
    const std::int64_t d = features, u = controls;
    if (wrapper == "plain") return autonomous(network(d, d, Varies::never));
    if (wrapper == "varying") return depth_varying(network(d, d, Varies::perhaps));
    if (wrapper == "concatenated") return controlled(network(d + u, d, Varies::perhaps));
    if (wrapper == "added")
      return controlled(network(d, d, Varies::perhaps), {.entry = ControlEntry::addition});
    if (wrapper == "embedded") {
      const std::int64_t embedded = 1 + random_.below(3);
      return controlled(network(d + embedded, d, Varies::perhaps),
                        {.embedding = network(u, embedded, Varies::perhaps).ptr()});
    }
    if (wrapper == "second order") return higher_order(depth_varying(network(d, d / 2, Varies::perhaps)), 2);
    if (wrapper == "third order") return higher_order(controlled(network(d + u, d / 3, Varies::never)), 3);
    if (wrapper == "selective") {
      return higher_order(depth_varying(network(d, d - 1, Varies::perhaps)), SelectiveOrder{.states = 2});
    }
    if (wrapper == "approximation") return approximation(network(1, d - 1, Varies::perhaps), 1);
    if (wrapper == "scaled") {
      MlpOptions layers = options(d + u, d, Varies::perhaps);
      layers.basis.reset();  // has no kernel for a depth of each sample
      return controlled(mlp(layers));
    }
    MlpOptions layers = options(d + u, d, Varies::perhaps);
    layers.activation = traced_activations[draw_.number % traced_activations.size()];
    return controlled(mlp(layers));
  }

  Random& random_;
  const Draw& draw_;
};

/// Integrals of all losses that have kernels, beside the state.
inline void add_losses(Problem& problem, LowerOptions& lowering, const Field& field, std::int64_t features) {
  lowering.losses = {path_length(), kinetic_energy()};
  if (!lowering.scale.defined()) {  // a target over depth has no kernel for a depth of each sample
    lowering.losses.push_back(tracking(own_basis("target", std::size_t(features), [=](double s) {
      return std::vector<double>(std::size_t(features), std::sin(3 * s));
    })));
  }
  problem.field.running_terms = std::int64_t(lowering.losses.size());
  problem.field.running_loss = [lowering, field](const Tensor& s, const Tensor& z, const Tensor& given_rate) {
    const bool is_scaled = lowering.scale.defined();
    const Tensor depth = is_scaled ? lowering.scale.to(torch::kFloat64) * s : s;
    const Tensor rate = is_scaled ? field->rate(depth, lowering.control, z) : given_rate;
    std::vector<Tensor> values;
    for (const RunningLoss& loss : lowering.losses) values.push_back(loss(depth, lowering.control, z, rate));
    const Tensor joined = torch::stack(values, -1);
    return is_scaled ? joined * lowering.scale.unsqueeze(1) : joined;
  };
}

inline Problem random_problem(const Draw& draw) {
  Random random(sentence(draw));
  torch::manual_seed(std::uint64_t(random.below(1 << 30)));
  const RandomField made(random, draw);
  const Field field = made.field;
  const auto wanting = torch::TensorOptions(draw.type).requires_grad(true);
  Problem problem{.description = sentence(draw)};
  VectorField& f = problem.field;
  f.parameters = field->parameters();
  LowerOptions lowering{.divergence = draw.wrapper == "divergence"};
  if (field->is_controlled()) lowering.control = torch::randn({draw.batch, made.controls}, wanting);
  if (draw.wrapper == "scaled") lowering.scale = torch::rand({draw.batch}, wanting);
  for (const Tensor& input : {lowering.control, lowering.scale}) {
    if (input.defined()) f.parameters.push_back(input);
  }
  f.rate = [=](const Tensor& s, const Tensor& z) {
    const Tensor& scale = lowering.scale;
    if (!scale.defined()) return field->rate(s, lowering.control, z);
    return field->rate(scale.to(torch::kFloat64) * s, lowering.control, z) * scale.unsqueeze(1);
  };
  f.break_points = field->break_points();
  if (lowering.divergence) {
    f.running_loss = [=](const Tensor& s, const Tensor& z, const Tensor&) {
      return mlp_divergence(field, s, lowering.control, z);
    };
  } else if (random.coin()) {
    add_losses(problem, lowering, field, made.features);
  }
  problem.z0 = torch::randn({draw.batch, made.features}, wanting);
  f.lowered = lower(field, problem.z0, lowering);
  problem.solver = random_solver(random, draw);
  problem.depths = variables({0.0, 0.0, 0.3, 0.55, 0.55, 1.0});
  if (random.below(4) == 0) problem.depths = variables({1.0, 0.7, 0.2, 0.0});
  return problem;
}

/// Of a given field, by a few steps of dopri5.
inline Problem problem_of(const std::string& description, const Field& field, const Tensor& z0) {
  field->to(z0.scalar_type());
  Problem problem{.description = description};
  problem.field.parameters = field->parameters();
  problem.field.rate = [=](const Tensor& s, const Tensor& z) { return field->rate(s, {}, z); };
  problem.z0 = z0.detach().requires_grad_();
  problem.field.lowered = lower(field, problem.z0);
  problem.depths = variables({0.0, 0.35, 1.0});
  problem.solver = fixed(dopri5(), 4);
  return problem;
}

struct Answers {
  Solution solution;
  std::vector<Tensor> gradients;  ///< of z0, depths and the parameters
};

enum class Engine { tensor, fused };

inline Solution solution_by(Engine engine, Problem problem) {
  problem.solver.fused = engine == Engine::fused;
  return solve(problem.field, problem.z0, problem.depths, problem.solver, problem.sensitivity);
}

inline Answers answers_by(Engine engine, const Problem& problem) {
  const Solution solution = solution_by(engine, problem);
  torch::manual_seed(99);
  const auto weighted_sum = [](const Tensor& values) {
    return (values * torch::randn(values.sizes(), float64).to(values.scalar_type())).sum();
  };
  Tensor loss = weighted_sum(solution.states);
  if (solution.running_loss.defined()) loss = loss + weighted_sum(solution.running_loss);
  std::vector<Tensor> variables = {problem.z0, problem.depths};
  for (const Tensor& parameter : problem.field.parameters) variables.push_back(parameter);
  auto gradients = torch::autograd::grad({loss}, variables, {}, {}, false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = torch::zeros_like(variables[i]);
  }
  return {solution, gradients};
}

inline Answers answers_with_threads(const Problem& problem, int threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  const Answers given = answers_by(Engine::fused, problem);
  at::set_num_threads(before);
  return given;
}

inline void expect_same_steps(const Problem& problem, const Solution& fused, const Solution& tensor) {
  EXPECT_EQ(fused.report().accepted, tensor.report().accepted) << problem.description;
  EXPECT_EQ(fused.report().rejected, tensor.report().rejected) << problem.description;
  EXPECT_EQ(fused.report().evaluations, tensor.report().evaluations) << problem.description;
  ASSERT_EQ(fused.grid.size(), tensor.grid.size()) << problem.description;
  // An error estimate is a difference of nearly equal numbers: its last digits, and with them the steps, differ. Of an order
  // above 3, where the error may be far below the tolerance, single precision leaves hardly a digit.
  const bool is_single = problem.z0.scalar_type() == torch::kFloat32;
  const double difference = !is_single ? 1e-5 : problem.solver.method->order <= 3 ? 1e-3 : 0.1;
  for (std::size_t n = 0; n < fused.grid.size(); ++n)
    EXPECT_NEAR(fused.grid[n], tensor.grid[n], difference) << problem.description;
}

/// Both engines take as many steps, and on the very same steps give the same numbers.
inline void expect_equal(const Problem& problem, double tolerance) {
  ASSERT_NE(problem.field.lowered.program, nullptr)
      << problem.description << ": " << problem.field.lowered.reason;
  const Answers fused = answers_by(Engine::fused, problem);
  ASSERT_EQ(fused.solution.report().engine, "fused") << fused.solution.report().not_fused;
  {
    const torch::NoGradGuard no_graph;
    expect_same_steps(problem, fused.solution, solution_by(Engine::tensor, problem));
  }
  Problem along = problem;
  const auto* adjoint = std::get_if<Adjoint>(&problem.sensitivity);
  const bool adapts_backwards = adjoint && !adjoint->solver;
  if (std::holds_alternative<AdaptiveSteps>(problem.solver.steps) && !adapts_backwards)
    along.solver.steps = steps_along(fused.solution.grid);
  const Answers tensor = answers_by(Engine::tensor, along);
  ASSERT_EQ(tensor.solution.report().engine, "tensor");
  const auto distance_of = [](const Tensor& given, const Tensor& expected) {
    const double scale = std::max(1.0, expected.abs().max().item<double>());
    return (given - expected).abs().max().item<double>() / scale;
  };
  const std::string what = text(problem.description, ", ", problem.solver.method->name);
  EXPECT_LT(distance_of(fused.solution.states, tensor.solution.states), tolerance) << what;
  if (tensor.solution.running_loss.defined()) {
    EXPECT_LT(distance_of(fused.solution.running_loss, tensor.solution.running_loss), tolerance) << what;
  }
  // A depth's gradient is the slope of the interpolant, the sum of weights 18 times as large for dop853 as for dopri5.
  const double of_depths = problem.solver.method->name == "dop853" ? 10 * tolerance : tolerance;
  for (std::size_t i = 0; i < fused.gradients.size(); ++i) {
    EXPECT_LT(distance_of(fused.gradients[i], tensor.gradients[i]), i == 1 ? of_depths : tolerance)
        << what << ", gradient " << i << "\n"
        << tensor.gradients[i].flatten().slice(0, 0, 5) << fused.gradients[i].flatten().slice(0, 0, 5);
  }
}

}  // namespace fathom::testing
