/// A model of the command line, or of a program that wants its models to be files: built from a specification, trained as
/// any torch module, saved and loaded.
///
///   Model model = build_model({.task = Task::regression, .inputs = {"a", "b"}, .targets = {"y"}});
///   fit(*model, [&](std::int64_t) { return torch::mse_loss(model->forward(x), y); });
///   save("model.safetensors", model, {{"loss", "0.01"}});
///   const Tensor answers = load("model.safetensors").model->predict(table);
#pragma once

#include <filesystem>
#include <vector>

#include "fathom/file/model_file.hpp"
#include "fathom/model/flow.hpp"
#include "fathom/model/neural_ode.hpp"

namespace fathom {

/// Its parameters have the names and shapes of layout(spec).
class ModelImpl : public torch::nn::Module {
 public:
  explicit ModelImpl(ModelSpec spec, const Sensitivity& sensitivity = Discrete{});

  const ModelSpec& spec() const { return spec_; }

  // For training: everything standardised, in the model's precision, with graph.

  /// (batch, inputs) -> scores (batch, labels), targets (batch, targets), columns of a series at the end of the span, or the
  /// logarithm of the density (batch).
  Tensor forward(const Tensor& x);
  /// The loss of that against `targets`, in one piece where the model has kernels; not for densities.
  Tensor loss(const Tensor& x, const Tensor& targets, AnswerLoss loss);
  /// (depths, batch, outputs): the answer at every depth, the first of which is the start.
  Tensor trajectory(const Tensor& x, const std::vector<double>& depths);
  /// Head of a state (..., features).
  Tensor answer(const Tensor& state);

  // For use: in the units of the data, float64, without graph.

  /// (batch, inputs) -> probabilities (batch, labels), targets (batch, targets) or the logarithm of the density (batch).
  Tensor predict(const Tensor& inputs);
  /// Series: (batch, columns) at times.front() -> (times, batch, columns).
  Tensor forecast(const Tensor& columns, const std::vector<double>& times);
  /// Density: (count, columns).
  Tensor sample(std::int64_t count);

  /// What is inside. A density has a flow, all others an ode.
  const Field& field() const { return field_; }
  NeuralOde& ode();
  Flow& flow();
  /// Of the last solve.
  SolveReport report() const;

  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

 private:
  Field build_field();

  ModelSpec spec_;
  Field field_;
  NeuralOde ode_ = nullptr;
  Flow flow_ = nullptr;
  torch::nn::Linear head_ = nullptr;
};

class Model : public torch::nn::ModuleHolder<ModelImpl> {
 public:
  using torch::nn::ModuleHolder<ModelImpl>::ModuleHolder;
  explicit Model(ModelSpec spec, const Sensitivity& sensitivity = Discrete{})
      : ModuleHolder(std::make_shared<ModelImpl>(std::move(spec), sensitivity)) {}
};

/// With fresh weights from torch's generator.
Model build_model(const ModelSpec& spec, const Sensitivity& sensitivity = Discrete{});

/// (value - mean) / deviation on the last axis, in float64; and back.
Tensor standardised(const Tensor& values, const Standardisation& scale);
Tensor unstandardised(const Tensor& values, const Standardisation& scale);

struct LoadedModel {
  Model model = nullptr;
  Facts facts = {};
};

/// The old file stays as it was when anything goes wrong; see file/model_file.hpp for what is refused.
void save(const std::filesystem::path& path, const Model& model, const Facts& facts = {});
LoadedModel load(const std::filesystem::path& path);

/// Any torch module: its parameters and buffers by name, as a plain safetensors file.
void save_module(const std::filesystem::path& path, const torch::nn::Module& module,
                 const std::map<std::string, std::string>& metadata = {});
/// From a safetensors file or a torch `state_dict` with the same names and shapes. The module is changed only if all fit.
void load_into(torch::nn::Module& module, const std::filesystem::path& path);

}  // namespace fathom
