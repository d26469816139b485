/// One row through a model, as a control loop sees it: the bare solve of the fused engine, predict() that sets all up anew, and
/// predict_into() in a kept workspace; in a tight loop, and once a millisecond with the thread asleep between.
///
///   build/release/benchmarks/one_row            # microseconds
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <thread>

#include "fathom/fused/engine.hpp"
#include "fathom/random.hpp"
#include "fathom/runtime/model.hpp"
#include "fathom/runtime/program.hpp"

namespace {

using namespace fathom;
using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

/// features -> hidden -> features behind an input layer and a head, classes of 3 labels from 4 columns.
ModelFile network(std::int64_t features, std::int64_t hidden) {
  ModelFile file;
  file.spec.inputs = {"a", "b", "c", "d"};
  file.spec.targets = {"kind"};
  file.spec.labels = {"x", "y", "z"};
  file.spec.field.hidden = {hidden};
  if (features != 4) file.spec.augmentation = {.kind = AugmentationKind::input, .size = features};
  for (const TensorLayout& tensor : layout(file.spec)) {
    const Random random(1, file.tensors.size());
    std::size_t size = 1;
    for (const std::int64_t length : tensor.shape) size *= std::size_t(length);
    std::vector<float> values(size);
    for (std::size_t n = 0; n < size; ++n)
      values[n] = float((2 * random.uniform(n) - 1) / std::sqrt(double(tensor.shape.back())));
    file.tensors[tensor.name] = stored_tensor<float>(tensor.shape, values);
  }
  return file;
}

const std::vector<double> row = {0.1, -0.2, 0.3, -0.4};

/// Of that row.
std::vector<float> start_of(const ModelFile& file) {
  if (!file.tensors.contains("input.weight")) return {row.begin(), row.end()};
  const auto weight = file.tensors.at("input.weight").numbers<double>(),
             bias = file.tensors.at("input.bias").numbers<double>();
  std::vector<float> start;
  for (std::size_t i = 0; i < bias.size(); ++i) {
    double sum = bias[i];
    for (std::size_t c = 0; c < row.size(); ++c) sum += weight[i * row.size() + c] * row[c];
    start.push_back(float(sum));
  }
  return start;
}

/// The least that such a solve can cost: problem, engine and step control are there already, and so is the state.
class BareSolve {
 public:
  explicit BareSolve(const ModelFile& file)
      : parameters_(runtime::field_parameters<float>(file)),
        plan_{.method = method_of(file.spec.solver), .steps = steps_of(file.spec.solver)},
        options_{.method = plan_.method, .adaptive = std::get<ode::AdaptiveSteps>(plan_.steps)},
        start_(start_of(file)),
        saved_(2 * start_.size()),
        problem_(runtime::program_of(file.spec, runtime::Carries::state), tensors(file), 1, 1),
        engine_(problem_, options_, start_.data(), saved_.data()) {}

  ode::SolveReport operator()() {
    engine_.begin_again(options_, start_.data());
    return ode::integrate(engine_, plan_, depths_, walks_);
  }

 private:
  fused::Tensors<float> tensors(const ModelFile& file) const {
    fused::Tensors<float> all;
    std::size_t place = 0;
    const ProgramField field = runtime::field_of(file.spec, runtime::Carries::state);
    for (const Parameter& parameter : field.parameters()) {
      all.push_back(std::span(parameters_).subspan(place, std::size_t(parameter.size())));
      place += all.back().size();
    }
    return all;
  }

  std::vector<float> parameters_;
  ode::Plan plan_;
  fused::EngineOptions options_;
  std::vector<float> start_, saved_;
  std::vector<double> depths_ = {0, 1};
  fused::Problem<float> problem_;
  fused::Engine<float> engine_;
  ode::Walks walks_;
};

struct Times {
  double median = 0, largest = 0;
};

Times times_of(std::vector<double>& each) {
  std::sort(each.begin(), each.end());
  return {each[each.size() / 2], each.back()};
}

using Call = std::pair<const char*, std::function<void()>>;

/// Of calls one after the other. They take turns, and the least of many rounds counts, since others use the machine too.
std::vector<double> tight(const std::vector<Call>& calls) {
  constexpr int rounds = 200, repetitions = 100;
  std::vector<double> least(calls.size(), INFINITY);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t n = 0; n < calls.size(); ++n) {
      const Clock::time_point began = Clock::now();
      for (int again = 0; again < repetitions; ++again) calls[n].second();
      least[n] = std::min(least[n], microseconds(Clock::now() - began) / repetitions);
    }
  }
  return least;
}

/// Of calls at 1 kHz, each after a sleep.
Times awoken(const std::function<void()>& call) {
  std::vector<double> each;
  Clock::time_point next = Clock::now();
  for (int n = 0; n < 3000; ++n) {
    std::this_thread::sleep_until(next += std::chrono::milliseconds(1));
    const Clock::time_point began = Clock::now();
    call();
    each.push_back(microseconds(Clock::now() - began));
  }
  return times_of(each);
}

void measure(const char* name, std::int64_t features, std::int64_t hidden) {
  const ModelFile file = network(features, hidden);
  const runtime::Model model(file);
  BareSolve bare(file);
  runtime::Workspace workspace(model);
  std::vector<double> answers(3);
  const std::vector<Call> calls = {{"bare solve", [&] { bare(); }},
                                   {"predict()", [&] { model.predict(row); }},
                                   {"predict_into()", [&] { model.predict_into(row, answers, workspace); }}};
  model.predict_into(row, answers, workspace);
  std::printf("%s: %lld evaluations; bare: %lld\n", name,
              static_cast<long long>(workspace.report().evaluations),
              static_cast<long long>(bare().evaluations));
  const std::vector<double> least = tight(calls);
  for (std::size_t n = 0; n < calls.size(); ++n) {
    const Times slept = awoken(calls[n].second);
    std::printf("%-8s %-15s %8.2f  %5.2fx   1 kHz: median %8.2f, largest %8.2f\n", name, calls[n].first,
                least[n], least[n] / least.front(), slept.median, slept.largest);
  }
}

}  // namespace

int main() {
  measure("4-32-4", 4, 32);
  measure("256x256", 256, 256);
}
