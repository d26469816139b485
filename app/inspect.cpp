/// `fathom inspect MODEL`: what is inside a trained model.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "fathom/train/inspection.hpp"
#include "model_table.hpp"

namespace fathom::app {

namespace {

using Json = nlohmann::ordered_json;

struct Request {
  std::string model;
  std::string data;
  bool json = false;
};

constexpr std::int64_t typical_rows = 64;

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

std::string purpose(const ModelSpec& spec) {
  switch (spec.task) {
    case Task::classification:
      return text("classification of `", spec.targets.front(), "`: ", joined(spec.labels));
    case Task::regression: return text("regression of ", joined(spec.targets));
    case Task::series:
      return text("series over `", spec.time.column, "`, one unit of depth is ", spec.time.unit);
    case Task::density: return "density of the inputs, a flow to the standard normal";
  }
  return {};
}

std::string start(const ModelSpec& spec) {
  const AugmentationSpec& augmentation = spec.augmentation;
  std::string z = "x";
  if (augmentation.kind == AugmentationKind::zero) z = text("x, ", augmentation.size, " zero(s)");
  if (augmentation.kind == AugmentationKind::input) z = "W x + b";
  if (augmentation.kind == AugmentationKind::partial) z = "x, W x + b";
  if (spec.field.order > 1) z += text(", ", name_of(augmentation.velocities), " velocities");
  return text("z(0) = [", z, "], ", spec.state_features(), " features");
}

std::string field(const ModelSpec& spec) {
  const FieldSpec& field = spec.field;
  std::ostringstream out;
  out << "mlp";
  for (std::int64_t width : field.hidden) out << " " << width;
  out << " " << name_of(field.activation) << ", " << name_of(field.depth.kind);
  if (field.depth.kind == DepthKind::galerkin) out << " on " << name_of(field.depth.basis);
  if (field.depth.size > 0) out << " of size " << field.depth.size;
  if (field.control != ControlKind::none) out << ", controlled by x (" << name_of(field.control) << ")";
  if (field.order > 1) out << ", of order " << field.order;
  return out.str();
}

std::string solver(const ModelSpec& spec) {
  const SolverSpec& solver = spec.solver;
  std::string steps = text("tolerances ", solver.relative_tolerance, " and ", solver.absolute_tolerance);
  if (solver.steps > 0) steps = text(solver.steps, " equal steps");
  if (solver.step_size > 0) steps = text("steps of ", solver.step_size);
  if (solver.steps_per_sample) steps += ", steps of each sample's own";
  return text(solver.method, ", ", steps, ", depth ", spec.span.first, " to ", spec.span.last);
}

void print_architecture(const LoadedModel& loaded) {
  const ModelSpec& spec = loaded.model->spec();
  const auto line = [](const char* what, const std::string& value) {
    std::cout << std::left << std::setw(12) << what << value << "\n";
  };
  line("task", purpose(spec));
  line("inputs", joined(spec.inputs) + (spec.input_scale.mean.empty() ? "" : " (standardised)"));
  line("start", start(spec));
  line("field", field(spec));
  line("solver", solver(spec));
  line("head", spec.head == HeadKind::linear ? text("linear, ", spec.state_features(), " -> ", spec.outputs())
                                             : text("the first ", spec.outputs(), " feature(s)"));
  line("precision", name_of(spec.precision));
  if (!loaded.facts.empty()) std::cout << "\ntraining\n";
  for (const auto& [fact, value] : loaded.facts)
    std::cout << "  " << std::left << std::setw(26) << fact << value << "\n";
}

void print_tensors(const Inspection& found) {
  std::cout << "\n"
            << std::left << std::setw(24) << "tensor" << std::setw(20) << "shape" << std::right
            << std::setw(10) << "numbers\n";
  for (const TensorFact& tensor : found.tensors) {
    std::cout << std::left << std::setw(24) << tensor.name << std::setw(20) << shape_text(tensor.shape)
              << std::right << std::setw(9) << tensor.numbers << "\n";
  }
  std::cout << std::left << std::setw(44) << "total" << std::right << std::setw(9) << found.numbers << "\n";
}

/// A row of numbers below the depths.
void print_row(const std::string& title, const std::vector<double>& values) {
  std::cout << std::left << std::setw(28) << title << std::right;
  for (double value : values) std::cout << std::setw(11) << std::setprecision(4) << value;
  std::cout << "\n";
}

void print_over_depth(const Inspection& found, const std::string& samples) {
  std::cout << "\ntheta(s) and stability over depth, for " << samples << "\n";
  print_row("depth", found.depths);
  for (const LayerCourse& layer : found.layers) {
    if (!layer.varies) continue;
    print_row("|W| of " + layer.layer, layer.weight);
    print_row("|b| of " + layer.layer, layer.bias);
  }
  const auto column = [&](double Stability::*figure) {
    std::vector<double> values;
    for (const Stability& at : found.stability) values.push_back(at.*figure);
    return values;
  };
  print_row("growth, mean", column(&Stability::mean_growth));
  print_row("growth, worst", column(&Stability::worst_growth));
  print_row("frequency, largest", column(&Stability::frequency));
  print_row("speed |f|, mean", column(&Stability::mean_speed));
  std::cout << "growth: largest real part of the eigenvalues of df/dz; frequency: largest imaginary part\n"
            << "\ncost of one solve: " << found.report.brief() << "\n";
}

Json to_json(const LoadedModel& loaded, const Inspection& found, const std::string& samples) {
  Json document{{"specification", Json::parse(fathom::to_json(loaded.model->spec()))},
                {"facts", loaded.facts}};
  document["tensors"] = Json::array();
  for (const TensorFact& tensor : found.tensors)
    document["tensors"].push_back(
        {{"name", tensor.name}, {"shape", tensor.shape}, {"numbers", tensor.numbers}});
  document["numbers"] = found.numbers;
  document["samples"] = samples;
  document["evaluations"] = found.report.evaluations;
  document["accepted"] = found.report.accepted;
  document["rejected"] = found.report.rejected;
  document["depths"] = found.depths;
  document["layers"] = Json::array();
  for (const LayerCourse& layer : found.layers) {
    document["layers"].push_back({{"layer", layer.layer},
                                  {"varies", layer.varies},
                                  {"weight_norm", layer.weight},
                                  {"bias_norm", layer.bias}});
  }
  document["stability"] = Json::array();
  for (const Stability& at : found.stability) {
    document["stability"].push_back({{"depth", at.depth},
                                     {"mean_growth", at.mean_growth},
                                     {"worst_growth", at.worst_growth},
                                     {"frequency", at.frequency},
                                     {"mean_speed", at.mean_speed}});
  }
  return document;
}

void run(const Request& request) {
  LoadedModel loaded = load(request.model);
  const ModelSpec& spec = loaded.model->spec();
  torch::manual_seed(0);
  const Tensor inputs = request.data.empty() ? typical_inputs(spec, typical_rows)
                                             : tensor_of(read_for_model(request.data, spec), spec.inputs);
  const std::string samples = request.data.empty()
                                  ? text(inputs.size(0), " normal inputs; give --data for real ones")
                                  : text("the ", inputs.size(0), " row(s) of ", request.data);
  const Inspection found = inspect(loaded.model, inputs);
  if (request.json) {
    std::cout << to_json(loaded, found, samples).dump(2) << "\n";
    return;
  }
  print_architecture(loaded);
  print_tensors(found);
  print_over_depth(found, samples);
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command =
      app.add_subcommand("inspect", "What is inside a trained model, and how stable its flow is");
  command->add_option("model", request->model, "A model.safetensors of `fathom train`")->required();
  command->add_option("--data", request->data,
                      "Table whose rows are carried along the flow; default: normal inputs");
  command->add_flag("--json", request->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  fathom inspect runs/iris/model.safetensors\n"
      "  fathom inspect runs/iris/model.safetensors --data iris.csv\n"
      "  fathom inspect runs/iris/model.safetensors --json | jq .stability");
  command->callback([request] { run(*request); });
}

}  // namespace fathom::app
