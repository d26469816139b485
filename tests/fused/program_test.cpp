/// Programs on tiles: every operation forwards and backwards, for every instruction set of this processor and any width.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <span>

#include "fathom/fused/engine.hpp"
#include "fathom/fused/kernels.hpp"
#include "fathom/fused/program.hpp"
#include "fathom/fused/weights.hpp"
#include "fathom/support/error.hpp"

namespace fathom::fused {
namespace {

struct Numbers {
  std::mt19937_64 engine{17};
  std::vector<double> some(std::size_t count) {
    std::vector<double> values(count);
    for (double& value : values) value = std::uniform_real_distribution<double>(-1, 1)(engine);
    return values;
  }
};

/// A program that uses every operation at least once: three features, a control of two, a depth for each sample.
Program everything() {
  Builder build(3, 5);
  const Rows z = build.state(), u = build.input(6, 2), g = build.input(7, 1);
  const std::int32_t basis = build.basis({.size = 2,
                                          .values =
                                              [](double s) {
                                                return std::vector<double>{1, s * s};
                                              },
                                          .slopes =
                                              [](double s) {
                                                return std::vector<double>{0, 2 * s};
                                              }});
  const std::int32_t first = build.matrix({.weight = 0, .bias = 1, .outputs = 4, .inputs = 6});
  const std::int32_t varying =
      build.matrix({.weight = 2, .bias = 3, .outputs = 5, .inputs = 4, .basis = basis});
  const std::int32_t last = build.matrix({.weight = 4, .bias = 5, .outputs = 3, .inputs = 5});
  const Rows joined = build.joined({z, u, build.depth(g)});
  const Rows hidden = build.layer(joined, first, {FunctionKind::tanh});
  const Rows deeper = build.layer(hidden, varying, {FunctionKind::softplus, 1, 20});
  const Rows rate = build.layer(deeper, last, {});
  const Rows tangent = build.column(build.slope(hidden), first, 1);
  const Rows carried = build.multiply(build.layer(tangent, varying, {}), build.slope(deeper));
  const Rows trace =
      build.sum(build.joined({build.row_dot(carried, last, 1), build.row_dot(carried, last, 2)}));
  const Rows target = build.signal({.size = 3,
                                    .values =
                                        [](double s) {
                                          return std::vector<double>{s, 1, std::sin(s)};
                                        },
                                    .slopes =
                                        [](double s) {
                                          return std::vector<double>{1, 0, std::cos(s)};
                                        }});
  const Rows moved = build.scale(build.add(rate, z), g);
  build.give_loss(0, trace);
  build.give_loss(1, build.distance(z, target));
  build.give_loss(2, build.squares(rate));
  build.give_loss(3, build.norm(build.joined(
                         {build.activated(Builder::part(z, 1, 2), {FunctionKind::silu}), build.zeros(1)})));
  build.give_loss(4, build.surprise(rate, build.zeros(1)));
  build.give(moved);
  return std::move(build).finish();
}

/// The same shapes: layers that one other layer reads, whose functions are passed on the way, and layers that others read too.
Program chains() {
  Builder build(3, 5);
  const Rows z = build.state(), u = build.input(6, 2), g = build.input(7, 1);
  const auto constant = [](double) { return std::vector<double>{0.5, -2}; };
  const auto level = [](double) { return std::vector<double>{0, 0}; };
  const std::int32_t basis = build.basis({.size = 2, .values = constant, .slopes = level});
  const std::int32_t first = build.matrix({.weight = 0, .bias = 1, .outputs = 4, .inputs = 6});
  const std::int32_t varying =
      build.matrix({.weight = 2, .bias = 3, .outputs = 5, .inputs = 4, .basis = basis});
  const std::int32_t last = build.matrix({.weight = 4, .bias = 5, .outputs = 3, .inputs = 5});
  const Rows joined = build.joined({z, u, build.depth(g)});
  const auto chain = [&](Function one, Function other) {
    const Rows hidden = build.layer(joined, first, one), deeper = build.layer(hidden, varying, other);
    return std::array{hidden, deeper, build.layer(deeper, last, {})};
  };
  const auto alone = chain({FunctionKind::elu, 0.7}, {FunctionKind::silu});
  const auto shared = chain({FunctionKind::tanh}, {FunctionKind::sigmoid});
  build.give_loss(0, build.squares(shared[0]));
  build.give_loss(1, build.sum(Builder::part(shared[1], 1, 2)));
  for (std::int32_t index = 2; index < 5; ++index) build.give_loss(index, build.zeros(1));
  build.give(build.add(alone[2], shared[2]));
  return std::move(build).finish();
}

const std::vector<std::size_t> tensor_sizes = {24, 4, 40, 10, 15, 3};

/// Runs a program on one tile and gives sum(seed * rate), and its gradients.
template <class T> struct Trial {
  Trial(const Kernels<T>& kernels_, std::int32_t width_, Program program_ = everything())
      : kernels(kernels_), width(width_), program(std::move(program_)) {}

  const Kernels<T>& kernels;
  std::int32_t width;
  Program program;
  std::vector<T> argument_gradient, input_gradient, weight_gradient;
  double depth_gradient = 0;

  double run(const std::vector<std::vector<T>>& tensors, const std::vector<T>& argument,
             const std::vector<T>& inputs, double depth, const std::vector<T>& seed) {
    Tensors<T> spans;
    for (const auto& tensor : tensors) spans.emplace_back(tensor.data(), tensor.size());
    const Weights<T> weights(program, spans);
    AtDepth<T> at;
    weights.prepare(depth, true, at);
    const std::size_t w = std::size_t(width);
    Buffer<T> registers(w * std::size_t(program.register_rows)), adjoints(registers.size());
    std::vector<T> bank = inputs, rate(w * std::size_t(program.state_rows)), up = seed;
    std::copy(argument.begin(), argument.end(), registers.data());
    std::fill_n(adjoints.data(), adjoints.size(), T(777));  // nobody may rely on zeros
    input_gradient.assign(inputs.size(), 0);
    weight_gradient.assign(weights.gradient_size(), 0);
    std::vector<T> stage_gradient(weights.stage_gradient_size()), by_depth(w);
    const auto views = weights.views(weight_gradient, stage_gradient);
    Frame<T> frame{.width = width,
                   .banks = {registers.data(), bank.data(), rate.data()},
                   .matrices = at.matrices.data(),
                   .signals = at.signals.data(),
                   .depth = depth,
                   .adjoints = {adjoints.data(), input_gradient.data(), up.data()},
                   .gradients = views.data(),
                   .signal_slopes = at.signal_slopes.data(),
                   .depth_adjoint = by_depth.data()};
    kernels.evaluate(program.code(), frame);
    double loss = 0;
    for (std::size_t n = 0; n < rate.size(); ++n) loss += double(seed[n]) * double(rate[n]);
    kernels.pull_back(program.code(), frame);
    weights.spread(at, stage_gradient, std::span<T>(weight_gradient));
    depth_gradient = weights.along_depth(at, stage_gradient);
    for (T part : by_depth) depth_gradient += double(part);
    argument_gradient.assign(adjoints.data(), adjoints.data() + argument.size());
    return loss;
  }
};

void expect_gradients_of_finite_differences(const Program& program) {
  for (const Kernels<double>* kernels : available_kernels<double>()) {
    for (std::int32_t width : {1, kernels->lanes, 3 * kernels->lanes}) {
      Numbers numbers;
      Trial<double> trial(*kernels, width, program);
      const std::size_t w = std::size_t(width);
      std::vector<std::vector<double>> tensors;
      for (std::size_t size : tensor_sizes) tensors.push_back(numbers.some(size));
      std::vector<double> argument = numbers.some(8 * w), inputs = numbers.some(3 * w);
      const std::vector<double> seed = numbers.some(8 * w);
      double depth = 0.7;
      trial.run(tensors, argument, inputs, depth, seed);
      const auto by_argument = trial.argument_gradient, by_input = trial.input_gradient,
                 by_weight = trial.weight_gradient;
      const double by_depth = trial.depth_gradient;
      constexpr double h = 1e-5;
      const auto check = [&](double& variable, double expected, const char* what) {
        const double middle = variable;
        variable = middle + h;
        const double above = trial.run(tensors, argument, inputs, depth, seed);
        variable = middle - h;
        const double below = trial.run(tensors, argument, inputs, depth, seed);
        variable = middle;
        ASSERT_NEAR((above - below) / (2 * h), expected, 2e-8 * w)
            << kernels->name << " width " << width << " " << what;
      };
      for (std::size_t n = 0; n < argument.size(); ++n) check(argument[n], by_argument[n], "argument");
      for (std::size_t n = 0; n < inputs.size(); ++n) check(inputs[n], by_input[n], "input");
      std::size_t begin = 0;
      for (auto& tensor : tensors) {
        for (std::size_t n = 0; n < tensor.size(); ++n) check(tensor[n], by_weight[begin + n], "weight");
        begin += tensor.size();
      }
      check(depth, by_depth, "depth");
    }
  }
}

TEST(Programs, HaveTheGradientsOfFiniteDifferences) { expect_gradients_of_finite_differences(everything()); }

TEST(Programs, PassTheFunctionOfALayerThatOneOtherReads) {
  const Program program = chains();
  std::vector<FunctionKind> passed;
  for (const Op& op : program.ops) {
    if (op.function_is_passed) passed.push_back(op.function.kind);
  }
  EXPECT_EQ(passed, (std::vector{FunctionKind::elu, FunctionKind::silu}));
  expect_gradients_of_finite_differences(program);
}

TEST(Programs, GiveTheSameOnEveryInstructionSetAndWidth) {
  const auto loss = [](const Kernels<float>& kernels, std::int32_t width) {
    Numbers numbers;
    std::vector<std::vector<float>> tensors;
    for (std::size_t size : tensor_sizes) {
      const auto values = numbers.some(size);
      tensors.emplace_back(values.begin(), values.end());
    }
    // The same sample in every place of the tile.
    const auto spread = [&](std::size_t rows) {
      std::vector<float> all;
      for (double value : numbers.some(rows)) all.insert(all.end(), std::size_t(width), float(value));
      return all;
    };
    Trial<float> trial(kernels, width);
    const auto argument = spread(8), inputs = spread(3), seed = spread(8);
    return trial.run(tensors, argument, inputs, 0.3, seed) / width;
  };
  const double expected = loss(*available_kernels<float>().front(), 1);
  for (const Kernels<float>* kernels : available_kernels<float>()) {
    for (std::int32_t width : {1, kernels->lanes, 2 * kernels->lanes, 5 * kernels->lanes}) {
      EXPECT_NEAR(loss(*kernels, width), expected, 2e-6) << kernels->name << " width " << width;
    }
  }
}

TEST(Programs, RefuseRowsThatDoNotFit) {
  Builder build(2);
  const std::int32_t matrix = build.matrix({.weight = 0, .outputs = 3, .inputs = 5});
  EXPECT_THROW(build.layer(build.state(), matrix, {}), InvalidArgument);
  EXPECT_THROW(build.give(build.zeros(3)), InvalidArgument);
}

TEST(Tiles, CoverEveryBatchAndPadWithTheLastSample) {
  for (std::int64_t batch : {1, 2, 7, 8, 9, 63, 64, 65, 200}) {
    const Tiles tiles(batch, 8, 64);
    std::int64_t samples = 0;
    for (std::int64_t tile = 0; tile < tiles.count(); ++tile) {
      EXPECT_EQ(tiles.first_sample(tile), samples);
      samples += tiles.samples(tile);
      EXPECT_GE(tiles.width(tile), tiles.samples(tile));
      EXPECT_TRUE(batch == 1 || tiles.width(tile) % 8 == 0);
    }
    EXPECT_EQ(samples, batch);
    std::vector<float> states(std::size_t(batch * 3)), back(states.size());
    for (std::size_t n = 0; n < states.size(); ++n) states[n] = float(n);
    for (std::int64_t tile = 0; tile < tiles.count(); ++tile) {
      std::vector<float> rows(std::size_t(tiles.width(tile)) * 3);
      tiles.pack(tile, states.data(), 3, rows.data());
      EXPECT_EQ(rows[std::size_t(tiles.width(tile)) - 1], rows[std::size_t(tiles.samples(tile)) - 1]);
      tiles.unpack(tile, rows.data(), 3, back.data());
    }
    EXPECT_EQ(states, back);
  }
}

}  // namespace
}  // namespace fathom::fused
