/// The small languages of the command line -> values: 'mlp 64 64', 'zero:2', 'galerkin:fourier:5+control', 'cosine:0.01'.
/// Each throws InvalidArgument that says what is known and names the nearest.
#pragma once

#include <string>

#include "fathom/file/model_spec.hpp"
#include "fathom/train/schedule.hpp"
#include "settings.hpp"

namespace fathom::app {

/// "mlp 64 64" -> {64, 64}
std::vector<std::int64_t> hidden_widths(const std::string& model);

/// "none", "zero:2", "input:8", "partial:4"
AugmentationSpec augmentation(const std::string& words);

/// "invariant", "concat", "galerkin:fourier:5", "stacked:4", "hyper:8", each alone or with "control", "control:addition"
struct FieldWords {
  DepthSpec depth = {};
  ControlKind control = ControlKind::none;
};
FieldWords field_words(const std::string& words);

/// "constant", "step:500:0.5", "cosine", "cosine:0.01"
Schedule schedule(const std::string& words, std::int64_t warm_up);

/// Everything of a model that does not come from the data.
void choose_model(ModelSpec& spec, const TrainSettings& settings);

}  // namespace fathom::app
