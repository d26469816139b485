/// Torch modules to files and back.
#include "fathom/file/state_dict.hpp"
#include "fathom/support/error.hpp"
#include "fathom/train/model.hpp"
#include "fathom/train/stored.hpp"

namespace fathom {

namespace {

std::map<std::string, Tensor> tensors_by_name(const torch::nn::Module& module) {
  std::map<std::string, Tensor> tensors;
  for (const auto& entry : module.named_parameters()) tensors.emplace(entry.key(), entry.value());
  for (const auto& entry : module.named_buffers()) tensors.emplace(entry.key(), entry.value());
  return tensors;
}

/// A file without tensors would be no error by itself, but the weights that somebody expects in it are lost.
void check_not_empty(const torch::nn::Module& module) {
  require(
      !module.parameters().empty() || !module.buffers().empty(), "a module of type ", module.name(),
      " has no parameters and no buffers: there is nothing to save or load; register them, or give them to "
      "own_field() in `modules` or `parameters`");
}

std::map<std::string, StoredTensor> stored_tensors(const torch::nn::Module& module) {
  std::map<std::string, StoredTensor> all;
  for (const auto& [name, tensor] : tensors_by_name(module)) all.emplace(name, stored(tensor));
  return all;
}

/// Checks every tensor before the first is changed.
void put_into(torch::nn::Module& module, const std::map<std::string, StoredTensor>& tensors,
              const std::string& source) {
  const torch::NoGradGuard no_graph;
  const auto own = tensors_by_name(module);
  std::vector<std::string> known;
  for (const auto& [name, tensor] : own) {
    known.push_back(name);
    const auto found = tensors.find(name);
    if (found == tensors.end())
      throw Error(text(source, " has no tensor `", name, "` of shape ", shape_text(tensor.sizes().vec())));
    if (found->second.shape != tensor.sizes().vec())
      throw Error(text("tensor `", name, "` must have shape ", shape_text(tensor.sizes().vec()), ", got ",
                       shape_text(found->second.shape), " in ", source));
  }
  for (const auto& [name, tensor] : tensors) {
    if (!own.contains(name))
      throw Error(
          text(source, " has a tensor `", name, "` that the model has not", did_you_mean(name, known)));
  }
  std::map<std::string, Tensor> values;
  for (const auto& [name, tensor] : tensors) values.emplace(name, restored(tensor));
  for (const auto& [name, tensor] : own) Tensor(tensor).copy_(values.at(name));
}

}  // namespace

void save(const std::filesystem::path& path, const Model& model, const Facts& facts) {
  write_model_file(path, {.spec = model->spec(), .tensors = stored_tensors(*model), .facts = facts});
}

LoadedModel load(const std::filesystem::path& path) {
  ModelFile file = read_model_file(path);
  LoadedModel loaded{.model = build_model(file.spec), .facts = std::move(file.facts)};
  put_into(*loaded.model, file.tensors, "`" + path.string() + "`");
  return loaded;
}

void save_module(const std::filesystem::path& path, const torch::nn::Module& module,
                 const std::map<std::string, std::string>& metadata) {
  check_not_empty(module);
  write_safetensors(path, {.tensors = stored_tensors(module), .metadata = metadata});
}

void load_into(torch::nn::Module& module, const std::filesystem::path& path) {
  check_not_empty(module);
  put_into(module, read_tensors(path), "`" + path.string() + "`");
}

}  // namespace fathom
