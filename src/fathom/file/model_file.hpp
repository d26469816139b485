/// A trained model as one safetensors file: its tensors, its specification, and what is worth knowing of its training.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "fathom/file/model_spec.hpp"

namespace fathom {

/// For people: {"iterations", "2000"}, {"accuracy", "0.97"}.
using Facts = std::map<std::string, std::string>;

struct ModelFile {
  ModelSpec spec = {};
  std::map<std::string, StoredTensor> tensors = {};  ///< those of layout(spec)
  Facts facts = {};
};

/// Throws Error with one sentence when the file is damaged, of a newer version, not a model, or has not the tensors that its
/// specification needs.
ModelFile read_model_file(const std::filesystem::path& path);
ModelFile parse_model_file(std::string_view bytes, const std::string& source = "the file");

void write_model_file(const std::filesystem::path& path, const ModelFile& model);
std::string to_bytes(const ModelFile& model);

/// Throws Error unless the tensors have the names and shapes of the specification.
void check_tensors(const ModelSpec& spec, const std::map<std::string, StoredTensor>& tensors);

}  // namespace fathom
