/// The tensors of a torch `state_dict`, torch.save(module.state_dict(), "model.pt"): a zip archive with a pickle that says
/// what there is, and the raw numbers beside it. Only what a state_dict is made of is understood; nothing in the file is run.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "fathom/file/safetensors.hpp"

namespace fathom {

std::map<std::string, StoredTensor> parse_state_dict(std::string_view bytes,
                                                     const std::string& source = "the file");

/// From a safetensors file or a state_dict, whichever it is.
std::map<std::string, StoredTensor> read_tensors(const std::filesystem::path& path);

}  // namespace fathom
