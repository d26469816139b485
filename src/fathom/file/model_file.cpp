#include "fathom/file/model_file.hpp"

#include <algorithm>

#include "fathom/support/whole_file.hpp"

namespace fathom {

namespace {

constexpr const char* spec_key = "fathom.model";

}  // namespace

void check_tensors(const ModelSpec& spec, const std::map<std::string, StoredTensor>& tensors) {
  std::vector<std::string> known;
  for (const auto& [name, shape] : layout(spec)) {
    known.push_back(name);
    const auto found = tensors.find(name);
    if (found == tensors.end())
      throw Error(text("tensor `", name, "` of shape ", shape_text(shape), " is missing"));
    if (found->second.shape != shape)
      throw Error(text("tensor `", name, "` must have shape ", shape_text(shape), ", got ",
                       shape_text(found->second.shape)));
    const DataType type = found->second.type;
    const bool is_real =
        type == DataType::f32 || type == DataType::f64 || type == DataType::f16 || type == DataType::bf16;
    if (!is_real)
      throw Error(text("tensor `", name, "` must hold floating-point numbers, got ", name_of(type)));
  }
  if (tensors.size() == known.size()) return;
  for (const auto& [name, tensor] : tensors) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(text("tensor `", name, "` is not one of the model's", did_you_mean(name, known)));
  }
}

std::string to_bytes(const ModelFile& model) {
  check_tensors(model.spec, model.tensors);
  TensorFile file{.tensors = model.tensors, .metadata = model.facts};
  file.metadata[spec_key] = to_json(model.spec);
  return to_bytes(file);
}

void write_model_file(const std::filesystem::path& path, const ModelFile& model) {
  write_atomically(path, to_bytes(model));
}

ModelFile parse_model_file(std::string_view bytes, const std::string& source) {
  TensorFile file = parse_safetensors(bytes, source);
  const auto found = file.metadata.find(spec_key);
  if (found == file.metadata.end())
    throw Error(text(
        source,
        " has tensors but no description of a model, like a file saved by save_module(): weights alone; ",
        "build_model() + save() writes a model file, and so does `fathom train`"));
  try {
    ModelFile model{.spec = model_spec_from_json(found->second), .tensors = std::move(file.tensors)};
    check_tensors(model.spec, model.tensors);
    file.metadata.erase(found);
    model.facts = std::move(file.metadata);
    return model;
  } catch (const Error& error) { throw Error(text(source, " cannot be used: ", error.what())); }
}

ModelFile read_model_file(const std::filesystem::path& path) {
  return parse_model_file(read_whole(path), "`" + path.string() + "`");
}

}  // namespace fathom
