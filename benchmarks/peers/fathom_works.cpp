/// fathom with libtorch on a work of the comparison, with the protocol of turns.hpp: `fathom_works WORK.json ENTRY THREADS`.
/// Entries: fathom, fathom-adjoint, fathom-tensor. With `ONCE` as fourth argument a turn is one iteration, for counting instructions.
/// With `TRAIN ITERATIONS`, the program writes the parameters that so many iterations lead to, as JSON.
#include <ATen/Parallel.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numbers>

#include "fathom/fathom.hpp"
#include "turns.hpp"

namespace {

using namespace fathom;
using nlohmann::json;

constexpr double learning_rate = 1e-7;  // serve.py says why
constexpr double training_rate = 1e-2;  // where weights are trained

torch::ScalarType precision_of(const json& work) {
  return work["precision"] == "float64" ? torch::kFloat64 : torch::kFloat32;
}

Tensor tensor_of(const json& named, torch::ScalarType type) {
  const auto values = named["data"].get<std::vector<double>>();
  const auto shape = named["shape"].get<std::vector<std::int64_t>>();
  return torch::tensor(values, torch::kFloat64).reshape(shape).to(type);
}

std::vector<Tensor> tensors_of(const json& work) {
  std::vector<Tensor> tensors;
  for (const json& each : work["parameters"]) tensors.push_back(tensor_of(each, precision_of(work)));
  return tensors;
}

void set_parameters(torch::nn::Module& module, const std::vector<Tensor>& values) {
  const torch::NoGradGuard no_graph;
  const auto parameters = module.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].set_data(values.at(i).clone());
}

Solver solver_of(const json& work, const std::string& entry) {
  return {.steps = steps_of(work), .fused = entry != "fathom-tensor"};
}

Sensitivity sensitivity_of(const std::string& entry) {
  if (entry == "fathom-adjoint") return Adjoint{};
  return Discrete{};
}

/// One work made ready to iterate.
struct Runner {
  std::function<Tensor()> loss;
  std::function<SolveReport()> report;
  std::vector<Tensor> parameters;
};

DepthSequential network(const json& work) {
  const auto features = work["features"].get<std::vector<std::int64_t>>();
  const Activation activation = work["activation"] == "softplus" ? Activation::softplus : Activation::tanh;
  if (work["field"] != "galerkin") return mlp({.features = features, .activation = activation});
  return DepthSequential(DepthLinear(features[0], features[1], torchdyn_fourier(2)), torch::nn::Tanh(),
                         torch::nn::Linear(features[1], features[2]));
}

Runner flow(const json& work, const std::string& entry) {
  const Tensor x = tensor_of(work["x"], precision_of(work));
  Flow model(autonomous(network(work)), standard_normal(x.size(1)),
             FlowOptions{.solver = solver_of(work, entry), .sensitivity = sensitivity_of(entry)});
  set_parameters(*model, tensors_of(work));
  return {[model, x]() mutable { return -model->log_prob(x).mean(); },
          [model]() mutable { return model->report(); }, model->parameters()};
}

Runner tracked(const json& work, const std::string& entry) {
  const Tensor x = tensor_of(work["x"], precision_of(work));
  const DepthBasis circle = own_basis("circle", 2, [](double s) {
    const double angle = 2 * std::numbers::pi * s;
    return std::vector{std::cos(angle), std::sin(angle)};
  });
  NeuralOde ode(depth_varying(network(work)), NeuralOdeOptions{.solver = solver_of(work, entry),
                                                               .sensitivity = sensitivity_of(entry),
                                                               .running_losses = {tracking(circle)}});
  set_parameters(*ode, tensors_of(work));
  return {[ode, x]() mutable { return ode->running_loss(x); }, [ode]() mutable { return ode->report(); },
          ode->parameters()};
}

Runner image(const json& work, const std::string& entry) {
  namespace nn = torch::nn;
  const Tensor x = tensor_of(work["x"], torch::kFloat32),
               y = tensor_of(work["y"], torch::kFloat32).to(torch::kLong);
  constexpr std::int64_t states = 32, hidden = 32;
  const auto conv3 = [](std::int64_t in, std::int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
  };
  const auto norm = [](std::int64_t channels) {
    return nn::InstanceNorm2d(nn::InstanceNorm2dOptions(channels).affine(true));
  };
  DepthSequential net(norm(states), conv3(states, hidden), nn::Softplus(), conv3(hidden, hidden),
                      nn::Softplus(), norm(hidden), nn::Conv2d(nn::Conv2dOptions(hidden, states, 1)));
  NeuralOde ode(autonomous(net),
                NeuralOdeOptions{.solver = solver_of(work, entry), .sensitivity = sensitivity_of(entry)});
  nn::Sequential model(conv3(1, states), ode, nn::Conv2d(nn::Conv2dOptions(states, 4, 1)),
                       nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(4)), nn::Flatten(),
                       nn::Linear(64, 10));
  set_parameters(*model, tensors_of(work));
  return {[model, x, y]() mutable { return torch::nn::functional::cross_entropy(model->forward(x), y); },
          [ode]() mutable { return ode->report(); }, model->parameters()};
}

Runner vectors(const json& work, const std::string& entry) {
  const auto type = precision_of(work);
  const Tensor x = tensor_of(work["x"], type);
  const double last = work["last"];
  NeuralOde ode(
      autonomous(network(work)),
      NeuralOdeOptions{.last = last, .solver = solver_of(work, entry), .sensitivity = sensitivity_of(entry)});
  torch::nn::Sequential model(ode);
  torch::nn::Linear head = nullptr;
  if (work["loss"] == "head") model->push_back(head = torch::nn::Linear(x.size(1), 1));
  set_parameters(*model, tensors_of(work));
  Runner runner{
      .loss = {}, .report = [ode]() mutable { return ode->report(); }, .parameters = model->parameters()};
  if (work["loss"] == "none") {
    runner.loss = [model, x]() mutable { return model->forward(x); };
    return runner;
  }
  const Tensor y = tensor_of(work["y"], type);
  if (work["loss"] == "head") {
    runner.loss = [ode, answer = Answer{.head = head}, x, y]() mutable { return ode->loss(x, y, answer); };
    return runner;
  }
  std::vector<double> depths;
  const std::int64_t points = work["points"];
  for (std::int64_t n = 0; n < points; ++n) depths.push_back(last * double(n) / double(points - 1));
  runner.loss = [ode, model, x, y, depths]() mutable {
    const Tensor states = ode->trajectory(x, depths);
    return torch::mse_loss(states, y.view_as(states));
  };
  return runner;
}

Runner runner_of(const json& work, const std::string& entry) {
  if (work["loss"] == "likelihood") return flow(work, entry);
  if (work["loss"] == "tracking") return tracked(work, entry);
  if (work["loss"] == "image") return image(work, entry);
  return vectors(work, entry);
}

void serve(const json& work, const std::string& entry, double turn_seconds) {
  Runner runner = runner_of(work, entry);
  const bool trains = work["trains"];
  FusedAdam optimizer(runner.parameters, torch::optim::AdamOptions(learning_rate));
  const auto iterate = [&] {
    if (!trains) {
      const torch::NoGradGuard no_graph;
      runner.loss();
      return 0.0;
    }
    for (Tensor& parameter : runner.parameters) parameter.mutable_grad().reset();
    const Tensor loss = runner.loss();
    fathom::backward(loss);
    optimizer.step();
    return loss.item<double>();
  };
  take_turns(runner.report().engine, turn_seconds, iterate, [&] { return runner.report().evaluations; });
}

/// Seven decimals are what the weights at the start have.
json rounded(const Tensor& tensor) {
  const Tensor numbers = tensor.detach().to(torch::kFloat64).contiguous();
  json data = json::array();
  for (std::int64_t n = 0; n < numbers.numel(); ++n)
    data.push_back(std::round(numbers.data_ptr<double>()[n] * 1e7) / 1e7);
  return {{"shape", tensor.sizes().vec()}, {"data", data}};
}

void train(const json& work, int iterations) {
  Runner runner = runner_of(work, "fathom");
  FusedAdam optimizer(runner.parameters, torch::optim::AdamOptions(training_rate));
  std::vector<double> losses;
  for (int n = 0; n < iterations; ++n) {
    optimizer.zero_grad();
    const Tensor loss = runner.loss();
    fathom::backward(loss);
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  json parameters = json::array();
  for (const Tensor& each : runner.parameters) parameters.push_back(rounded(each));
  std::cout << json{{"loss", {losses.front(), losses.back()}}, {"parameters", parameters}} << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 4 ? argv[4] : "";
  if (argc != (mode == "TRAIN" ? 6 : mode == "ONCE" ? 5 : 4)) {
    std::cerr << "usage: fathom_works WORK.json ENTRY THREADS [ONCE | TRAIN ITERATIONS]\n";
    return 2;
  }
  at::set_num_threads(std::stoi(argv[3]));
  std::ifstream file(argv[1]);
  const json work = json::parse(file);
  if (mode == "TRAIN")
    train(work, std::stoi(argv[5]));
  else
    serve(work, argv[2], mode == "ONCE" ? 0.0 : 0.03);
}
