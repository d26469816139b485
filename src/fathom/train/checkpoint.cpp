#include "fathom/train/checkpoint.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "fathom/file/safetensors.hpp"
#include "fathom/support/error.hpp"
#include "fathom/train/stored.hpp"

namespace fathom {

namespace {

constexpr int version = 1;
const std::string optimizer_prefix = "optimizer.";

std::vector<std::string> names_of(const torch::nn::Module& model) {
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) names.push_back(item.key());
  for (const auto& item : model.named_buffers()) names.push_back(item.key());
  return names;
}

void store(TensorFile& file, const std::string& prefix, const std::vector<std::string>& names,
           const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) file.tensors[prefix + names[i]] = stored(tensors[i]);
}

/// The tensors of one prefix, each like the model's; empty when the file has none of them.
std::vector<Tensor> restored_model(const TensorFile& file, const std::string& prefix,
                                   const torch::nn::Module& model, const std::filesystem::path& path) {
  const auto names = names_of(model);
  const auto own = tensors_of(model);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = file.tensors.find(prefix + names[i]);
    if (found == file.tensors.end()) return {};
    const Tensor tensor = restored(found->second);
    if (tensor.sizes() != own[i].sizes() || tensor.scalar_type() != own[i].scalar_type())
      throw Error(text("the checkpoint `", path.string(), "` is of another model: its `", names[i], "` is ",
                       tensor.scalar_type(), tensor.sizes(), ", this model's ", own[i].scalar_type(),
                       own[i].sizes()));
    tensors.push_back(tensor);
  }
  return tensors;
}

nlohmann::json counters_of(const TensorFile& file, const std::filesystem::path& path) {
  const auto found = file.metadata.find("fit");
  const auto counters =
      found == file.metadata.end() ? nlohmann::json() : nlohmann::json::parse(found->second, nullptr, false);
  if (!counters.is_object() || counters.value("version", 0) != version)
    throw Error(text("`", path.string(), "` is not a checkpoint of this version of fathom"));
  return counters;
}

}  // namespace

std::vector<Tensor> tensors_of(const torch::nn::Module& model) {
  std::vector<Tensor> tensors = model.parameters();
  for (const Tensor& buffer : model.buffers()) tensors.push_back(buffer);
  return tensors;
}

std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

void assign(const std::vector<Tensor>& to, const std::vector<Tensor>& from) {
  const torch::NoGradGuard no_graph;
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

void write_checkpoint(const std::filesystem::path& path, const FitState& state,
                      const torch::nn::Module& model) {
  const auto names = names_of(model);
  TensorFile file;
  store(file, "model.", names, tensors_of(model));
  store(file, "before.", names, state.before);
  store(file, "best.", names, state.best);
  for (const auto& [name, tensor] : state.optimizer) file.tensors[optimizer_prefix + name] = stored(tensor);
  file.tensors["random"] = stored(at::detail::getDefaultCPUGenerator().get_state());
  const nlohmann::json counters{
      {"version", version},
      {"iteration", state.iteration},
      {"seconds", state.seconds},
      {"caution", state.caution},
      {"failures", state.failures},
      {"failures_in_a_row", state.failures_in_a_row},
      {"best_iteration", state.best_iteration},
      {"best_figure", std::isfinite(state.best_figure) ? nlohmann::json(state.best_figure) : nullptr}};
  file.metadata["fit"] = counters.dump();
  write_safetensors(path, file);
}

FitState resume_from(const std::filesystem::path& path, torch::nn::Module& model) {
  const TensorFile file = read_safetensors(path);
  const nlohmann::json counters = counters_of(file, path);
  const auto now = restored_model(file, "model.", model, path);
  const bool whole = now.size() == tensors_of(model).size() && file.tensors.contains("random");
  if (!whole)
    throw Error(text("the checkpoint `", path.string(), "` is of another model: tensors are missing"));
  FitState state{.iteration = counters.value("iteration", std::int64_t(0)),
                 .seconds = counters.value("seconds", 0.0),
                 .caution = counters.value("caution", 1.0),
                 .failures = counters.value("failures", std::int64_t(0)),
                 .failures_in_a_row = counters.value("failures_in_a_row", std::int64_t(0)),
                 .best_iteration = counters.value("best_iteration", std::int64_t(0)),
                 .before = restored_model(file, "before.", model, path),
                 .best = restored_model(file, "best.", model, path)};
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with(optimizer_prefix))
      state.optimizer[name.substr(optimizer_prefix.size())] = restored(tensor);
  }
  if (counters.contains("best_figure") && counters["best_figure"].is_number())
    state.best_figure = counters["best_figure"].get<double>();
  assign(tensors_of(model), now);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(restored(file.tensors.at("random")));
  return state;
}

std::optional<std::int64_t> checkpoint_iteration(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  return counters_of(read_safetensors(path), path).value("iteration", std::int64_t(0));
}

}  // namespace fathom
