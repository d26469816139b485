/// Kernels of the fused engine, on one tile, beside what they could have been built on. Counters: flop/s for products,
/// numbers a second for functions. Those of Eigen, Highway, oneDNN and libxsmm join that the build finds.
///
///   apt-get install libeigen3-dev libhwy-dev libdnnl-dev libxsmm-dev
///   build/release/benchmarks/kernels --benchmark_filter=product
#include <benchmark/benchmark.h>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "fathom/fused/kernels.hpp"
#include "fathom/fused/program.hpp"
#include "fathom/fused/weights.hpp"

#ifdef FATHOM_HAS_EIGEN
#include <Eigen/Core>
#endif
#ifdef FATHOM_HAS_HIGHWAY
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#endif
#ifdef FATHOM_HAS_XSMM
#include <libxsmm.h>
#endif
#ifdef FATHOM_HAS_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif

namespace {

using namespace fathom::fused;

constexpr std::int64_t width = 64;  // samples in a tile

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t n = 0; n < count; ++n) values[n] = 0.1f * float(std::sin(double(n)));
  return values;
}

void count_flops(benchmark::State& state, double flops) {
  state.counters["flop/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

/// A linear layer of inputs -> outputs on a tile, with its function.
struct Layer {
  Layer(std::int64_t inputs, std::int64_t outputs, FunctionKind kind)
      : weight(numbers(std::size_t(inputs * outputs))), bias(numbers(std::size_t(outputs))) {
    Builder build{std::int32_t(inputs)};
    const auto matrix = build.matrix(
        {.weight = 0, .bias = 1, .outputs = std::int32_t(outputs), .inputs = std::int32_t(inputs)});
    build.layer(build.state(), matrix, {kind});
    build.give(build.zeros(std::int32_t(inputs)));  // the layer alone is of interest
    program = std::move(build).finish();
    weights.emplace(program, Tensors<float>{weight, bias}, best_kernels<float>());
    weights->prepare(0, false, at);
    registers = numbers(std::size_t(program.register_rows * width));
    adjoints.resize(registers.size());
    rate.resize(std::size_t(program.state_rows * width));
    up = numbers(rate.size());
    gradient.resize(weights->gradient_size());
    views = weights->views(gradient, {});
    frame = {.width = std::int32_t(width),
             .banks = {registers.data(), nullptr, rate.data()},
             .matrices = at.matrices.data(),
             .adjoints = {adjoints.data(), nullptr, up.data()},
             .gradients = views.data()};
  }
  std::vector<float> weight, bias, registers, adjoints, rate, up, gradient;
  Program program;
  std::optional<Weights<float>> weights;
  AtDepth<float> at;
  std::vector<MatrixGradient<float>> views;
  Frame<float> frame;
};

void product_fathom(benchmark::State& state) {
  const std::int64_t inputs = state.range(0), outputs = state.range(1);
  Layer layer(inputs, outputs, FunctionKind::identity);
  const Code code = layer.program.code();
  for (auto _ : state) best_kernels<float>().evaluate(code, layer.frame);
  count_flops(state, 2.0 * double(inputs * outputs * width));
  state.SetLabel(best_kernels<float>().name);
}

#ifdef FATHOM_HAS_EIGEN
void product_eigen(benchmark::State& state) {
  const std::int64_t inputs = state.range(0), outputs = state.range(1);
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const RowMajor weight = RowMajor::Random(outputs, inputs), x = RowMajor::Random(inputs, width);
  const Eigen::VectorXf bias = Eigen::VectorXf::Random(outputs);
  RowMajor y(outputs, width);
  for (auto _ : state) {
    y.noalias() = weight * x;
    y.colwise() += bias;
    benchmark::DoNotOptimize(y.data());
  }
  count_flops(state, 2.0 * double(inputs * outputs * width));
}

#endif

#ifdef FATHOM_HAS_HIGHWAY
namespace hn = hwy::HWY_NAMESPACE;
const hn::ScalableTag<float> lanes;

/// `rows` outputs by two vectors of samples in registers, as in our own kernels; `weight` is (inputs, outputs).
template <std::size_t rows>
void highway_block(const float* weight, std::size_t outputs, const float* bias, const float* x,
                   std::size_t inputs, float* y) {
  using Vector = hn::Vec<decltype(lanes)>;
  const std::size_t step = hn::Lanes(lanes), all = std::size_t(width);
  for (std::size_t at = 0; at < all; at += 2 * step) {
    Vector first[rows], second[rows];
#pragma GCC unroll 8
    for (std::size_t o = 0; o < rows; ++o) first[o] = second[o] = hn::Set(lanes, bias[o]);
    for (std::size_t i = 0; i < inputs; ++i) {
      const Vector a = hn::LoadU(lanes, x + i * all + at), b = hn::LoadU(lanes, x + i * all + at + step);
#pragma GCC unroll 8
      for (std::size_t o = 0; o < rows; ++o) {
        const Vector factor = hn::Set(lanes, weight[i * outputs + o]);
        first[o] = hn::MulAdd(factor, a, first[o]);
        second[o] = hn::MulAdd(factor, b, second[o]);
      }
    }
#pragma GCC unroll 8
    for (std::size_t o = 0; o < rows; ++o) {
      hn::StoreU(first[o], lanes, y + o * all + at);
      hn::StoreU(second[o], lanes, y + o * all + at + step);
    }
  }
}

void product_highway(benchmark::State& state) {
  const std::size_t inputs = std::size_t(state.range(0)), outputs = std::size_t(state.range(1));
  const auto weight = numbers(inputs * outputs), bias = numbers(outputs),
             x = numbers(inputs * std::size_t(width));
  std::vector<float> y(outputs * std::size_t(width));
  for (auto _ : state) {
    std::size_t o = 0;
    const auto block = [&]<std::size_t rows>() {
      highway_block<rows>(weight.data() + o, outputs, bias.data() + o, x.data(), inputs,
                          y.data() + o * std::size_t(width));
      o += rows;
    };
    while (o + 6 <= outputs) block.template operator()<6>();
    while (o + 2 <= outputs) block.template operator()<2>();
    while (o < outputs) block.template operator()<1>();
    benchmark::DoNotOptimize(y.data());
  }
  count_flops(state, 2.0 * double(inputs * outputs) * double(width));
}

void tanh_highway(benchmark::State& state) {
  const auto x = numbers(64 * 64);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    for (std::size_t at = 0; at < x.size(); at += hn::Lanes(lanes))
      hn::StoreU(hn::Tanh(lanes, hn::LoadU(lanes, x.data() + at)), lanes, y.data() + at);
    benchmark::DoNotOptimize(y.data());
  }
  state.SetItemsProcessed(state.iterations() * std::int64_t(x.size()));
}
#endif

#ifdef FATHOM_HAS_XSMM
void product_xsmm(benchmark::State& state) {
  // Column-major there: y^T (width, outputs) = x^T weight^T.
  const std::int64_t inputs = state.range(0), outputs = state.range(1);
  const auto weight = numbers(std::size_t(inputs * outputs)), x = numbers(std::size_t(inputs * width));
  std::vector<float> y(std::size_t(outputs * width));
  const float beta = 0;
  const auto kernel = libxsmm_smmdispatch(int(width), int(outputs), int(inputs), nullptr, nullptr, nullptr,
                                          nullptr, &beta, nullptr, nullptr);
  if (!kernel) return state.SkipWithError("libxsmm has no kernel for this shape");
  for (auto _ : state) {
    kernel(x.data(), weight.data(), y.data());
    benchmark::DoNotOptimize(y.data());
  }
  count_flops(state, 2.0 * double(inputs * outputs * width));
}
#endif

#ifdef FATHOM_HAS_DNNL
void product_dnnl(benchmark::State& state) {
  const std::int64_t inputs = state.range(0), outputs = state.range(1);
  const auto weight = numbers(std::size_t(inputs * outputs)), x = numbers(std::size_t(inputs * width));
  std::vector<float> y(std::size_t(outputs * width));
  for (auto _ : state) {
    dnnl_sgemm('N', 'N', outputs, width, inputs, 1, weight.data(), inputs, x.data(), width, 0, y.data(),
               width);
    benchmark::DoNotOptimize(y.data());
  }
  count_flops(state, 2.0 * double(inputs * outputs * width));
}
#endif

void function_fathom(benchmark::State& state) {
  const Function function{FunctionKind(state.range(0))};
  const auto x = numbers(64 * 64);
  std::vector<float> y(x.size());
  for (auto _ : state) best_kernels<float>().apply(function, x.data(), y.data(), nullptr, x.size());
  state.SetItemsProcessed(state.iterations() * std::int64_t(x.size()));
}

#ifdef FATHOM_HAS_EIGEN
void tanh_eigen(benchmark::State& state) {
  const Eigen::ArrayXf x = Eigen::ArrayXf::Random(64 * 64);
  Eigen::ArrayXf y(x.size());
  for (auto _ : state) {
    y = x.tanh();
    benchmark::DoNotOptimize(y.data());
  }
  state.SetItemsProcessed(state.iterations() * x.size());
}
#endif

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({2, 32})->Args({32, 2})->Args({64, 64})->Args({512, 512});
}

BENCHMARK(product_fathom)->Apply(shapes);
#ifdef FATHOM_HAS_EIGEN
BENCHMARK(product_eigen)->Apply(shapes);
BENCHMARK(tanh_eigen);
#endif
#ifdef FATHOM_HAS_HIGHWAY
BENCHMARK(product_highway)->Apply(shapes);
BENCHMARK(tanh_highway);
#endif
#ifdef FATHOM_HAS_XSMM
BENCHMARK(product_xsmm)->Apply(shapes);
#endif
#ifdef FATHOM_HAS_DNNL
BENCHMARK(product_dnnl)->Apply(shapes);
#endif
BENCHMARK(function_fathom)
    ->Arg(int(FunctionKind::tanh))
    ->Arg(int(FunctionKind::softplus))
    ->Arg(int(FunctionKind::elu));

}  // namespace
