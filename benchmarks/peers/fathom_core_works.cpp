/// fathom's Session and Adam on a work of the comparison, with no torch in the process; the protocol is that of turns.hpp:
/// `fathom_core_works WORK.json ENTRY THREADS`. Entries: fathom-core, fathom-core-adjoint. With `ONCE` as fourth argument a turn is one
/// iteration, for counting instructions.
#include <cmath>
#include <fathom/adam.hpp>
#include <fathom/session.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numbers>

#include "turns.hpp"

namespace {

using namespace fathom;
using nlohmann::json;

constexpr double learning_rate = 1e-7;  // serve.py says why

/// torchdyn's Fourier layers: cos(n s), sin(n s) with n = linspace(0, m, m), here m = 2.
OwnBasis torchdyn_fourier() {
  return {.size = 4,
          .values =
              [](double s) {
                return std::vector{1.0, std::cos(2 * s), 0.0, std::sin(2 * s)};
              },
          .slopes =
              [](double s) {
                return std::vector{0.0, -2 * std::sin(2 * s), 0.0, 2 * std::cos(2 * s)};
              }};
}

OwnBasis circle() {
  const double turn = 2 * std::numbers::pi;
  return {.size = 2,
          .values =
              [=](double s) {
                return std::vector{std::cos(turn * s), std::sin(turn * s)};
              },
          .slopes =
              [=](double s) {
                return std::vector{-turn * std::sin(turn * s), turn * std::cos(turn * s)};
              }};
}

ProgramField field_of(const json& work) {
  if (work["field"] == "image") throw std::runtime_error("the core has no convolutions");
  const auto features = work["features"].get<std::vector<std::int64_t>>();
  const Activation activation = work["activation"] == "softplus" ? Activation::softplus : Activation::tanh;
  NetworkOptions options{.features = features.front()};
  options.layers.resize(features.size() - 1);
  for (std::size_t layer = 0; layer < options.layers.size(); ++layer) {
    options.layers[layer].features = features[layer + 1];
    if (layer + 1 < options.layers.size()) options.layers[layer].activation = activation;
  }
  if (work["field"] == "galerkin") options.layers.front().basis = torchdyn_fourier();
  if (work["loss"] == "likelihood") options.running = {Running::divergence};
  if (work["loss"] == "tracking") {
    options.running = {Running::tracking};
    options.target = circle();
  }
  return network_field(options);
}

template <class T> std::vector<T> numbers_of(const json& named) {
  return named["data"].get<std::vector<T>>();
}

template <class T> struct Problem {
  explicit Problem(const json& work) : start(numbers_of<T>(work["x"])), features(work["x"]["shape"][1]) {
    for (const json& each : work["parameters"]) {
      const auto values = numbers_of<T>(each);
      parameters.insert(parameters.end(), values.begin(), values.end());
    }
    if (work.contains("y")) targets = numbers_of<T>(work["y"]);
    const double last = work["last"];
    const int points = work["points"];
    for (int n = 0; n < points; ++n) depths.push_back(last * n / (points - 1));
  }

  std::vector<T> start, parameters, targets;  // parameters: of the field, then of the head
  std::int64_t features;
  std::vector<double> depths;
};

template <class T> Loss<T> loss_of(const json& work, const Problem<T>& problem, std::span<const T> head) {
  if (work["loss"] == "head")
    return {.head = {{1}}, .head_parameters = head, .targets = view_of(problem.targets, 1)};
  if (work["loss"] == "points") return {.targets = view_of(problem.targets, problem.features)};
  static constexpr double weight_of_tracking[] = {1}, weight_of_divergence[] = {-1};
  if (work["loss"] == "tracking")
    return {.function = LossFunction::none, .running_weights = weight_of_tracking};
  return {.function = LossFunction::normal_likelihood, .running_weights = weight_of_divergence};
}

template <class T> void serve(const json& work, const std::string& entry, int threads, double turn_seconds) {
  Problem<T> problem(work);
  const bool trains = work["trains"];
  const auto derivative = entry == "fathom-core-adjoint" ? Derivative::adjoint : Derivative::discrete;
  Session<T> session(
      field_of(work),
      {.steps = steps_of(work), .derivative = trains ? derivative : Derivative::none, .threads = threads});
  const auto evaluations = [&] { return session.report().evaluations; };
  const std::size_t own = std::size_t(session.field().parameter_count());
  const std::span<T> all(problem.parameters), field = all.first(own), head = all.subspan(own);
  const Data<T> data{.start = view_of(problem.start, problem.features), .parameters = field};
  if (!trains) {
    std::vector<T> states(problem.depths.size() * problem.start.size());
    const View<T> saved = view_of(states, std::int64_t(problem.start.size()));
    take_turns(
        "core", turn_seconds,
        [&] {
          session.solve(data, problem.depths, saved);
          return 0.0;
        },
        evaluations);
    return;
  }

  std::vector<T> slope(all.size());
  const Loss<T> loss = loss_of<T>(work, problem, head);
  const Gradient<T> gradient{.parameters = std::span(slope).first(own),
                             .head = std::span(slope).subspan(own)};
  Adam<T> adam({.rate = learning_rate});
  take_turns(
      "core", turn_seconds,
      [&] {
        const double value = session.loss(data, problem.depths, loss, &gradient);
        adam.step(all, slope);
        return value;
      },
      evaluations);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: fathom_core_works WORK.json ENTRY THREADS [ONCE]\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  const json work = json::parse(file);
  const double turn_seconds = argc == 5 ? 0.0 : 0.03;
  const int threads = std::stoi(argv[3]);
  if (work["precision"] == "float64")
    serve<double>(work, argv[2], threads, turn_seconds);
  else
    serve<float>(work, argv[2], threads, turn_seconds);
}
