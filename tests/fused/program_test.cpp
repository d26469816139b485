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
  build.give_loss(4, build.cross_entropy(rate, build.zeros(1)));
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
  bool has_registers = true, has_passing = true;
  std::vector<T> argument_gradient, input_gradient, weight_gradient;
  double depth_gradient = 0;

  double run(const std::vector<std::vector<T>>& tensors, const std::vector<T>& argument,
             const std::vector<T>& inputs, double depth, const std::vector<T>& seed) {
    Tensors<T> spans;
    for (const auto& tensor : tensors) spans.emplace_back(tensor.data(), tensor.size());
    const Weights<T> weights(program, spans, best_kernels<T>());
    AtDepth<T> at;
    weights.prepare(depth, true, at);
    const std::size_t w = std::size_t(width);
    const std::size_t kept = w * std::size_t(program.register_rows);
    Buffer<T> registers(kept + w * std::size_t(program.passing_rows)), adjoints(registers.size());
    std::vector<T> bank = inputs, rate(w * std::size_t(program.state_rows)), up = seed;
    std::copy(argument.begin(), argument.end(), registers.data());
    std::fill_n(adjoints.data(), adjoints.size(), T(777));  // nobody may rely on zeros
    input_gradient.assign(inputs.size(), 0);
    weight_gradient.assign(weights.gradient_size(), 0);
    std::vector<T> stage_gradient(weights.stage_gradient_size()), by_depth(w);
    const auto views = weights.views(weight_gradient, stage_gradient);
    Frame<T> frame{.width = width,
                   .banks = {registers.data(), bank.data(), rate.data(), registers.data() + kept},
                   .matrices = at.matrices.data(),
                   .signals = at.signals.data(),
                   .depth = depth,
                   .has_registers = has_registers,
                   .has_passing = has_passing,
                   .adjoints = {adjoints.data(), input_gradient.data(), up.data(), adjoints.data() + kept},
                   .gradients = views.data(),
                   .signal_slopes = at.signal_slopes.data(),
                   .depth_adjoint = by_depth.data()};
    kernels.evaluate(program.code(), frame);
    double loss = 0;
    for (std::size_t n = 0; n < rate.size(); ++n) loss += double(seed[n]) * double(rate[n]);
    if (!has_registers)
      std::fill(registers.data() + argument.size(), registers.data() + registers.size(), T(777));
    if (!has_passing) std::fill(registers.data() + kept, registers.data() + registers.size(), T(777));
    kernels.pull_back(program.code(), frame);
    weights.spread({&at, stage_gradient.data()}, std::span<T>(weight_gradient));
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
      trial.has_registers = false;
      trial.run(tensors, argument, inputs, depth, seed);
      EXPECT_EQ(trial.argument_gradient, by_argument) << "registers found again";
      EXPECT_EQ(trial.input_gradient, by_input) << "registers found again";
      EXPECT_EQ(trial.weight_gradient, by_weight) << "registers found again";
      trial.has_registers = true;
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

/// Three first layers on two rows of the state: one that only the next layer reads, one that a loss reads as well, and one that is a
/// part of a larger block, which has to stay together.
Program with_first_layers(bool passes) {
  Builder build(3, 5);
  const Rows z = Builder::part(build.state(), 1, 2);
  build.input(6, 2), build.input(7, 1);
  const std::int32_t first = build.matrix({.weight = 0, .bias = 1, .outputs = 4, .inputs = 2});
  const std::int32_t second = build.matrix({.weight = 2, .bias = 3, .outputs = 5, .inputs = 4});
  const std::int32_t last = build.matrix({.weight = 4, .bias = 5, .outputs = 3, .inputs = 5});
  const auto deep = [&](Rows hidden) {
    return build.layer(build.layer(hidden, second, {FunctionKind::sigmoid}), last, {FunctionKind::tanh});
  };
  const Rows alone = build.layer(z, first, {FunctionKind::tanh});
  const Rows shared = build.layer(z, first, {FunctionKind::elu, 0.7});
  const Rows part = build.layer(z, first, {FunctionKind::sigmoid});
  const Rows kept = build.layer(z, first, {FunctionKind::softplus});
  const Rows block = build.joined({part, Builder::part(build.state(), 0, 1)});
  build.give_loss(0, build.squares(shared));
  build.give_loss(1, build.squares(block));
  build.give_loss(2, build.norm(kept));
  for (std::int32_t index = 3; index < 5; ++index) build.give_loss(index, build.zeros(1));
  build.give(build.add(build.add(deep(alone), deep(shared)), build.layer(block, last, {})));
  return std::move(build).finish(passes);
}

template <class T> void expect_same_gradients_from_passing_rows() {
  const std::vector<std::size_t> sizes = {8, 4, 20, 5, 15, 3};
  for (const Kernels<T>* kernels : available_kernels<T>()) {
    for (std::int32_t width : {1, kernels->lanes, 3 * kernels->lanes}) {
      Numbers numbers;
      const auto some = [&](std::size_t count) {
        const std::vector<double> values = numbers.some(count);
        return std::vector<T>(values.begin(), values.end());
      };
      std::vector<std::vector<T>> tensors;
      for (std::size_t size : sizes) tensors.push_back(some(size));
      const std::size_t w = std::size_t(width);
      const std::vector<T> argument = some(8 * w), inputs = some(3 * w), seed = some(8 * w);
      Trial<T> kept(*kernels, width, with_first_layers(false));
      const double expected = kept.run(tensors, argument, inputs, 0.7, seed);
      for (const bool has_passing : {true, false}) {
        Trial<T> passing(*kernels, width, with_first_layers(true));
        passing.has_passing = has_passing;
        EXPECT_EQ(passing.program.passing_rows, 8) << "the two that are read as a whole";
        EXPECT_EQ(passing.program.register_rows + 8, kept.program.register_rows);
        EXPECT_EQ(passing.run(tensors, argument, inputs, 0.7, seed), expected);
        EXPECT_EQ(passing.argument_gradient, kept.argument_gradient) << kernels->name << " width " << width;
        EXPECT_EQ(passing.weight_gradient, kept.weight_gradient) << kernels->name << " width " << width;
      }
    }
  }
}

TEST(Programs, FindPassingRowsAgain) {
  expect_same_gradients_from_passing_rows<float>();
  expect_same_gradients_from_passing_rows<double>();
}

/// state -> (a layer) -> hidden -> outputs, with a running loss that reads the state as well, or the outputs before they become
/// the rate.
struct PairShape {
  FunctionKind kind;
  std::int32_t inputs, hidden, outputs;
  bool on_a_layer, shares_state, is_read_again;

  std::int32_t features() const { return std::max(inputs, outputs); }
  std::vector<std::size_t> tensor_sizes() const {
    const auto size = [](std::int32_t rows, std::int32_t columns) {
      return std::size_t(rows) * std::size_t(columns);
    };
    return {size(hidden, inputs), size(hidden, 1),      size(outputs, hidden),
            size(outputs, 1),     size(inputs, inputs), size(inputs, 1)};
  }
  Program program() const {
    Builder build(features(), 1);
    Rows in = Builder::part(build.state(), 0, inputs);
    if (on_a_layer) {
      const std::int32_t lowest = build.matrix({.weight = 4, .bias = 5, .outputs = inputs, .inputs = inputs});
      in = build.layer(in, lowest, {FunctionKind::sigmoid});
    }
    const std::int32_t below = build.matrix({.weight = 0, .bias = 1, .outputs = hidden, .inputs = inputs});
    const std::int32_t above = build.matrix({.weight = 2, .bias = 3, .outputs = outputs, .inputs = hidden});
    const Rows out = build.layer(build.layer(in, below, {kind, 0.7}), above, {});
    build.give_loss(0, is_read_again  ? build.squares(out)
                       : shares_state ? build.squares(build.state())
                                      : build.zeros(1));
    const Rows whole = outputs == features() ? out : build.joined({out, build.zeros(features() - outputs)});
    build.give(is_read_again ? build.add(whole, build.state()) : whole);
    return std::move(build).finish();
  }
};

/// What a program gives in each precision, from the same numbers.
template <class T>
Trial<T> trial_of(const PairShape& shape, const Kernels<T>& kernels, std::int32_t width, bool has_registers) {
  Numbers numbers;
  const auto some = [&](std::size_t count) {
    std::vector<T> values;
    for (double value : numbers.some(count)) values.push_back(T(float(value)));
    return values;
  };
  Trial<T> trial(kernels, width, shape.program());
  trial.has_registers = has_registers;
  std::vector<std::vector<T>> tensors;
  for (std::size_t size : shape.tensor_sizes()) tensors.push_back(some(size));
  const std::size_t numbers_a_row = std::size_t(width), rows = std::size_t(shape.features()) + 1;
  const auto argument = some(rows * numbers_a_row), seed = some(rows * numbers_a_row);
  trial.run(tensors, argument, {}, 0, seed);
  return trial;
}

TEST(Pairs, OfEveryShapeHaveTheGradientsOfTheirLayers) {
  std::vector<PairShape> shapes;
  for (std::int32_t inputs = 1; inputs <= 5; ++inputs) {
    for (std::int32_t outputs = 1; outputs <= 5; ++outputs) {
      for (FunctionKind kind : {FunctionKind::tanh, FunctionKind::relu, FunctionKind::sigmoid,
                                FunctionKind::elu, FunctionKind::softplus, FunctionKind::identity}) {
        const std::int32_t n = std::int32_t(shapes.size());
        shapes.push_back({kind, inputs, 1 + n * 37 % 150, outputs, n % 3 == 0, n % 2 == 0, n % 5 < 2});
      }
    }
  }
  const Kernels<double>& reference = *available_kernels<double>().back();
  std::size_t pairs = 0;
  for (const PairShape& shape : shapes) {
    for (const Op& op : shape.program().ops) pairs += op.is_pair_with_next;
    const double tolerance = std::max(2e-5, 5e-7 * shape.hidden);  // rounding of sums over hidden rows
    for (const Kernels<float>* kernels : available_kernels<float>()) {
      for (std::int32_t width : {1, kernels->lanes, 3 * kernels->lanes}) {
        const Trial<double> expected = trial_of(shape, reference, width, true);
        for (bool has_registers : {true, false}) {
          const Trial<float> given = trial_of(shape, *kernels, width, has_registers);
          const auto expect_near = [&](const std::vector<float>& a, const std::vector<double>& b,
                                       const char* what) {
            ASSERT_EQ(a.size(), b.size());
            for (std::size_t n = 0; n < a.size(); ++n) {
              ASSERT_NEAR(a[n], b[n], tolerance * (1 + std::abs(b[n])))
                  << kernels->name << " " << what << " " << n << ": " << shape.inputs << " " << shape.hidden
                  << " " << shape.outputs << " kind " << int(shape.kind) << " width " << width << " "
                  << has_registers;
            }
          };
          expect_near(given.argument_gradient, expected.argument_gradient, "argument");
          expect_near(given.weight_gradient, expected.weight_gradient, "weight");
        }
      }
    }
  }
  EXPECT_GE(pairs, 4u * 4 * 4) << "those with at most four rows at both ends, for four functions";
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

TEST(Tiles, CoverEveryBatch) {
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
  }
}

template <class T>
void expect_turned_over(const Kernels<T>& kernels, std::int32_t features, std::int32_t count,
                        std::int32_t padding) {
  const std::int32_t width = count + padding;
  const T guard = -7;
  std::vector<T> samples(std::size_t(count * features)), rows(std::size_t(width * features) + 1, guard),
      back(samples.size() + 1, guard);
  for (std::size_t n = 0; n < samples.size(); ++n) samples[n] = T(n + 1);
  kernels.pack(rows.data(), samples.data(), features, count, width);
  for (std::int32_t i = 0; i < width; ++i) {
    for (std::int32_t r = 0; r < features; ++r) {
      const std::int32_t sample = std::min(i, count - 1);  // padding repeats the last one
      ASSERT_EQ(rows[std::size_t(r * width + i)], samples[std::size_t(sample * features + r)])
          << kernels.name << ", " << features << " features, " << count << " samples";
    }
  }
  EXPECT_EQ(rows.back(), guard);
  kernels.unpack(back.data(), rows.data(), features, count, width);
  EXPECT_EQ(back.back(), guard);
  back.pop_back();
  EXPECT_EQ(samples, back);
}

TEST(Kernels, TurnSamplesIntoRowsAndBack) {
  for (const std::int32_t features : {0, 1, 2, 3, 4, 5, 64}) {
    for (const std::int32_t count : {1, 2, 15, 16, 17, 200}) {
      for (const std::int32_t padding : {0, 13}) {
        for (const auto* kernels : available_kernels<float>())
          expect_turned_over(*kernels, features, count, padding);
        for (const auto* kernels : available_kernels<double>())
          expect_turned_over(*kernels, features, count, padding);
      }
    }
  }
}

}  // namespace
}  // namespace fathom::fused
