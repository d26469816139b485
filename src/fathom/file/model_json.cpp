/// A model's specification as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "fathom/file/model_spec.hpp"

namespace fathom {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int version = 1;
constexpr int depth_limit = 8;

/// One object of the document: takes out what is known and complains about the rest.
class Section {
 public:
  Section(const Json& object, std::string name) : object_(object), name_(std::move(name)) {
    if (!object_.is_object()) throw Error(text("the model's ", name_, " must be an object"));
  }

  /// Leaves `value` as it is where the key is missing.
  template <class T> void read(const char* key, T& value) {
    const Json* found = find(key);
    if (!found) return;
    // nlohmann rounds a number to the type asked for without a word, even where it does not fit.
    if constexpr (std::is_same_v<T, std::int64_t>) {
      if (!is_whole(*found)) throw wrong(key);
    }
    if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
      for (const Json& each : *found) {
        if (!is_whole(each)) throw wrong(key);
      }
    }
    try {
      value = found->get<T>();
    } catch (const Json::exception&) { throw wrong(key); }
  }

  template <class Enum> void read_name(const char* key, Enum& value) {
    std::string name;
    read(key, name);
    if (object_.contains(key)) value = value_named<Enum>(text("`", key, "` of the model"), name);
  }

  std::optional<Section> part(const char* key) {
    const Json* found = find(key);
    if (!found) return {};
    return Section(*found, text("`", key, "`"));
  }

  const Json* find(const char* key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        throw Error(text("unknown key `", key, "` in the model's ", name_, did_you_mean(key, known_)));
    }
  }

 private:
  static bool is_whole(const Json& value) {
    const bool fits = !value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t(INT64_MAX);
    return value.is_number_integer() && fits;
  }
  Error wrong(const char* key) const {
    return Error(text("`", key, "` in the model's ", name_, " is of the wrong type"));
  }

  const Json& object_;
  std::string name_;
  std::vector<std::string> known_;
};

void read_scale(Section& document, const char* key, Standardisation& scale) {
  if (auto section = document.part(key)) {
    section->read("mean", scale.mean);
    section->read("deviation", scale.deviation);
    section->finish();
  }
}

void read_field(Section& document, FieldSpec& field) {
  auto section = document.part("field");
  if (!section) return;
  section->read("hidden", field.hidden);
  section->read_name("activation", field.activation);
  section->read_name("control", field.control);
  section->read("order", field.order);
  if (auto depth = section->part("depth")) {
    depth->read_name("kind", field.depth.kind);
    depth->read_name("basis", field.depth.basis);
    depth->read("size", field.depth.size);
    depth->finish();
  }
  section->finish();
}

void read_augmentation(Section& document, AugmentationSpec& augmentation) {
  if (auto section = document.part("augmentation")) {
    section->read_name("kind", augmentation.kind);
    section->read("size", augmentation.size);
    section->read_name("velocities", augmentation.velocities);
    section->finish();
  }
}

void read_solver(Section& document, SolverSpec& solver) {
  if (auto section = document.part("solver")) {
    section->read("method", solver.method);
    section->read("relative_tolerance", solver.relative_tolerance);
    section->read("absolute_tolerance", solver.absolute_tolerance);
    section->read("steps", solver.steps);
    section->read("step_size", solver.step_size);
    section->read("steps_per_sample", solver.steps_per_sample);
    section->finish();
  }
}

void read_time_and_span(Section& document, ModelSpec& spec) {
  if (auto section = document.part("time")) {
    section->read("column", spec.time.column);
    section->read("origin", spec.time.origin);
    section->read("unit", spec.time.unit);
    section->finish();
  }
  std::vector<double> span = {spec.span.first, spec.span.last};
  document.read("span", span);
  require(span.size() == 2, "the model's `span` must have 2 numbers, got ", span.size());
  spec.span = {span[0], span[1]};
}

void check_version(Section& document) {
  std::int64_t given = 0;
  document.read("version", given);
  if (given > version)
    throw Error(text("the model is of version ", given, ", this fathom reads up to ", version,
                     "; use a newer fathom"));
  if (given < 1) throw Error("the model has no version number");
}

Json parsed(std::string_view json) {
  const auto watch = [](int depth, Json::parse_event_t, Json&) {
    if (depth > depth_limit) throw Error("the model's description is nested too deeply");
    return true;
  };
  try {
    return Json::parse(json.begin(), json.end(), watch);
  } catch (const Json::exception&) { throw Error("the model's description is not JSON"); }
}

OrderedJson json_of(const Standardisation& scale) {
  return {{"mean", scale.mean}, {"deviation", scale.deviation}};
}

}  // namespace

std::string to_json(const ModelSpec& spec) {
  check(spec);
  OrderedJson document{{"version", version}, {"task", name_of(spec.task)}, {"inputs", spec.inputs}};
  document["targets"] = spec.targets;
  document["labels"] = spec.labels;
  document["input_scale"] = json_of(spec.input_scale);
  document["target_scale"] = json_of(spec.target_scale);
  if (spec.task == Task::series)
    document["time"] = {{"column", spec.time.column}, {"origin", spec.time.origin}, {"unit", spec.time.unit}};
  document["augmentation"] = {{"kind", name_of(spec.augmentation.kind)},
                              {"size", spec.augmentation.size},
                              {"velocities", name_of(spec.augmentation.velocities)}};
  document["field"] = {{"hidden", spec.field.hidden},
                       {"activation", name_of(spec.field.activation)},
                       {"depth",
                        {{"kind", name_of(spec.field.depth.kind)},
                         {"basis", name_of(spec.field.depth.basis)},
                         {"size", spec.field.depth.size}}},
                       {"control", name_of(spec.field.control)},
                       {"order", spec.field.order}};
  document["span"] = OrderedJson::array({spec.span.first, spec.span.last});
  document["solver"] = {{"method", spec.solver.method},
                        {"relative_tolerance", spec.solver.relative_tolerance},
                        {"absolute_tolerance", spec.solver.absolute_tolerance},
                        {"steps", spec.solver.steps},
                        {"step_size", spec.solver.step_size}};
  // Only where it counts, so that programs of an earlier version read all other files.
  if (spec.solver.steps_per_sample) document["solver"]["steps_per_sample"] = true;
  document["head"] = name_of(spec.head);
  document["precision"] = name_of(spec.precision);
  try {
    return document.dump(2);
  } catch (const Json::exception&) { throw InvalidArgument("names of columns and labels must be UTF-8"); }
}

ModelSpec model_spec_from_json(std::string_view json) {
  const Json tree = parsed(json);
  Section document(tree, "description");
  check_version(document);
  ModelSpec spec;
  document.read_name("task", spec.task);
  document.read("inputs", spec.inputs);
  document.read("targets", spec.targets);
  document.read("labels", spec.labels);
  read_scale(document, "input_scale", spec.input_scale);
  read_scale(document, "target_scale", spec.target_scale);
  read_augmentation(document, spec.augmentation);
  read_field(document, spec.field);
  read_time_and_span(document, spec);
  read_solver(document, spec.solver);
  document.read_name("head", spec.head);
  document.read_name("precision", spec.precision);
  document.finish();
  check(spec);
  return spec;
}

}  // namespace fathom
