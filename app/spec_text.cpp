#include "spec_text.hpp"

#include <charconv>
#include <sstream>

#include "fathom/support/error.hpp"

namespace fathom::app {

namespace {

Words split(const std::string& words, char at) {
  Words parts;
  std::istringstream in(words);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

template <class Number> Number number(const std::string& what, const std::string& word) {
  Number value{};
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  require(failed == std::errc() && end == word.data() + word.size(), "`", what, "` needs a ",
          std::is_integral_v<Number> ? "whole number" : "number", " where it has `", word, "`");
  return value;
}

void require_parts(const std::string& words, const Words& parts, std::size_t count, const char* form) {
  require(parts.size() == count, "`", words, "` must have the form `", form, "`");
}

DepthSpec depth_words(const std::string& words, const Words& parts) {
  const DepthKind kind = value_named<DepthKind>("field", parts[0]);
  switch (kind) {
    case DepthKind::invariant:
    case DepthKind::concat: require_parts(words, parts, 1, parts[0].c_str()); return {.kind = kind};
    case DepthKind::galerkin:
      require_parts(words, parts, 3, "galerkin:BASIS:SIZE");
      return {.kind = kind,
              .basis = value_named<BasisKind>("basis", parts[1]),
              .size = number<std::int64_t>(words, parts[2])};
    case DepthKind::stacked: require_parts(words, parts, 2, "stacked:PIECES"); break;
    case DepthKind::hyper: require_parts(words, parts, 2, "hyper:WIDTH"); break;
  }
  return {.kind = kind, .size = number<std::int64_t>(words, parts[1])};
}

}  // namespace

std::vector<std::int64_t> hidden_widths(const std::string& model) {
  std::istringstream in(model);
  std::string word;
  in >> word;
  require(word == "mlp", "the model must be `mlp` and its hidden widths, for example `mlp 64 64`, got `",
          model, "`");
  std::vector<std::int64_t> widths;
  while (in >> word) {
    widths.push_back(number<std::int64_t>(model, word));
    require(widths.back() >= 1, "a hidden layer needs a width of at least 1, got `", model, "`");
  }
  return widths;
}

AugmentationSpec augmentation(const std::string& words) {
  const Words parts = split(words, ':');
  require(!parts.empty(), "the augmentation is none, zero:N, input:N or partial:N, got nothing");
  const AugmentationKind kind = value_named<AugmentationKind>("augmentation", parts[0]);
  if (kind == AugmentationKind::none) {
    require_parts(words, parts, 1, "none");
    return {};
  }
  require_parts(words, parts, 2, (parts[0] + ":N").c_str());
  return {.kind = kind, .size = number<std::int64_t>(words, parts[1])};
}

FieldWords field_words(const std::string& words) {
  FieldWords result;
  bool has_depth = false;
  for (const std::string& word : split(words, '+')) {
    const Words parts = split(word, ':');
    require(!parts.empty(), "the field `", words, "` has an empty part");
    if (parts[0] == "control") {
      require(result.control == ControlKind::none, "the field `", words, "` has two controls");
      require(parts.size() <= 2, "`", word, "` must have the form `control` or `control:addition`");
      result.control =
          parts.size() == 1 ? ControlKind::concatenation : value_named<ControlKind>("control", parts[1]);
    } else {
      require(!has_depth, "the field `", words, "` depends on depth in two ways; choose one");
      has_depth = true;
      result.depth = depth_words(word, parts);
    }
  }
  return result;
}

Schedule schedule(const std::string& words, std::int64_t warm_up) {
  Schedule result{.warm_up = warm_up};
  const Words parts = split(words, ':');
  const std::string kind = parts.empty() ? "" : parts[0];
  if (kind == "step") {
    require_parts(words, parts, 3, "step:EVERY:FACTOR");
    result.decay =
        StepDecay{.every = number<std::int64_t>(words, parts[1]), .factor = number<double>(words, parts[2])};
  } else if (kind == "cosine") {
    require(parts.size() <= 2, "`", words, "` must have the form `cosine` or `cosine:FLOOR`");
    result.decay = CosineDecay{.floor = parts.size() == 2 ? number<double>(words, parts[1]) : 0};
  } else {
    require(words == "constant", "unknown schedule `", words, "`",
            did_you_mean(kind, {"constant", "step", "cosine"}),
            " (known: constant, step:EVERY:FACTOR, cosine, cosine:FLOOR)");
  }
  check(result);
  return result;
}

void choose_model(ModelSpec& spec, const TrainSettings& settings) {
  const FieldWords words = field_words(settings.field);
  spec.augmentation = augmentation(settings.augment);
  spec.augmentation.velocities = value_named<Velocities>("velocities", settings.velocities);
  spec.field = {.hidden = hidden_widths(settings.model),
                .activation = value_named<Activation>("activation", settings.activation),
                .depth = words.depth,
                .control = words.control,
                .order = settings.order};
  spec.solver = {.method = settings.solver,
                 .relative_tolerance = settings.rtol,
                 .absolute_tolerance = settings.atol > 0 ? settings.atol : settings.rtol,
                 .steps = settings.steps,
                 .step_size = settings.step_size,
                 .steps_per_sample = settings.steps_per_sample};
  const bool answers = spec.task == Task::classification || spec.task == Task::regression;
  const bool hidden_series = spec.task == Task::series && spec.augmentation.kind == AugmentationKind::input;
  if (settings.head == "auto")
    spec.head = answers || hidden_series ? HeadKind::linear : HeadKind::none;
  else
    spec.head = value_named<HeadKind>("head", settings.head);
  if (spec.task != Task::series) spec.span = {.first = 0, .last = settings.depth};
  spec.precision = value_named<Precision>("precision", settings.precision);
}

}  // namespace fathom::app
