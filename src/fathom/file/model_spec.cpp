#include "fathom/file/model_spec.hpp"

#include <algorithm>
#include <cmath>
namespace fathom {

template <> const NameTable<Task>& names<Task>() {
  static const NameTable<Task> table = {{Task::classification, "classification"},
                                        {Task::regression, "regression"},
                                        {Task::series, "series"},
                                        {Task::density, "density"}};
  return table;
}

template <> const NameTable<AugmentationKind>& names<AugmentationKind>() {
  static const NameTable<AugmentationKind> table = {{AugmentationKind::none, "none"},
                                                    {AugmentationKind::zero, "zero"},
                                                    {AugmentationKind::input, "input"},
                                                    {AugmentationKind::partial, "partial"}};
  return table;
}

template <> const NameTable<Velocities>& names<Velocities>() {
  static const NameTable<Velocities> table = {{Velocities::zero, "zero"}, {Velocities::learned, "learned"}};
  return table;
}

template <> const NameTable<DepthKind>& names<DepthKind>() {
  static const NameTable<DepthKind> table = {{DepthKind::invariant, "invariant"},
                                             {DepthKind::concat, "concat"},
                                             {DepthKind::galerkin, "galerkin"},
                                             {DepthKind::stacked, "stacked"},
                                             {DepthKind::hyper, "hyper"}};
  return table;
}

template <> const NameTable<ControlKind>& names<ControlKind>() {
  static const NameTable<ControlKind> table = {{ControlKind::none, "none"},
                                               {ControlKind::concatenation, "concatenation"},
                                               {ControlKind::addition, "addition"}};
  return table;
}

template <> const NameTable<HeadKind>& names<HeadKind>() {
  static const NameTable<HeadKind> table = {{HeadKind::none, "none"}, {HeadKind::linear, "linear"}};
  return table;
}

template <> const NameTable<Precision>& names<Precision>() {
  static const NameTable<Precision> table = {{Precision::float32, "float32"},
                                             {Precision::float64, "float64"}};
  return table;
}

std::int64_t ModelSpec::positions() const {
  switch (augmentation.kind) {
    case AugmentationKind::none: return input_features();
    case AugmentationKind::input: return augmentation.size;
    case AugmentationKind::zero:
    case AugmentationKind::partial: return input_features() + augmentation.size;
  }
  return 0;
}

std::int64_t ModelSpec::outputs() const {
  switch (task) {
    case Task::classification: return std::int64_t(labels.size());
    case Task::regression: return std::int64_t(targets.size());
    case Task::series:
    case Task::density: return input_features();
  }
  return 0;
}

namespace {

// No model that fits a machine comes near; sums and products of such sizes stay far inside 64 bits.
constexpr std::int64_t size_limit = 1 << 24;
constexpr std::int64_t step_limit = 10'000'000;

void check_size(const char* what, std::int64_t size, std::int64_t smallest) {
  require(size >= smallest && size <= size_limit, what, " must be from ", smallest, " to ", size_limit,
          ", got ", size);
}

void check_scale(const char* what, const Standardisation& scale, std::size_t columns) {
  const bool fits =
      scale.mean.size() == scale.deviation.size() && (scale.mean.empty() || scale.mean.size() == columns);
  require(fits, what, " needs a mean and a deviation for each of ", columns, " column(s), got ",
          scale.mean.size(), " and ", scale.deviation.size());
  for (std::size_t i = 0; i < scale.mean.size(); ++i) {
    require(std::isfinite(scale.mean[i]) && std::isfinite(scale.deviation[i]) && scale.deviation[i] > 0, what,
            " needs finite means and positive deviations, got ", scale.mean[i], " and ", scale.deviation[i],
            " for column ", i + 1);
  }
}

void check_columns(const ModelSpec& spec) {
  check_size("the number of input columns", spec.input_features(), 1);
  check_scale("the standardisation of inputs", spec.input_scale, spec.inputs.size());
  const bool has_targets = spec.task == Task::classification || spec.task == Task::regression;
  require(has_targets || spec.targets.empty(), "a ", name_of(spec.task), " model has no targets, got ",
          spec.targets.size());
  if (spec.task == Task::classification) {
    require(spec.labels.size() >= 2, "a classification needs at least 2 labels, got ", spec.labels.size());
    require(spec.targets.size() == 1, "a classification needs 1 target column, got ", spec.targets.size());
  } else {
    require(spec.labels.empty(), "a ", name_of(spec.task), " model has no labels, got ", spec.labels.size());
  }
  require(spec.task != Task::regression || !spec.targets.empty(),
          "a regression needs a target column, got none");
  check_size("the number of outputs", spec.outputs(), 1);
  check_scale("the standardisation of targets", spec.target_scale,
              spec.task == Task::regression ? spec.targets.size() : 0);
}

void check_augmentation(const ModelSpec& spec) {
  const AugmentationSpec& augmentation = spec.augmentation;
  if (augmentation.kind == AugmentationKind::none)
    require(augmentation.size == 0, "augmentation `none` has size 0, got ", augmentation.size);
  else
    check_size("the size of the augmentation", augmentation.size, 1);
  require(augmentation.velocities == Velocities::zero || spec.field.order > 1,
          "learned velocities need a field of order 2 or more, got order ", spec.field.order);
}

void check_field(const ModelSpec& spec) {
  const FieldSpec& field = spec.field;
  for (std::int64_t width : field.hidden) check_size("the width of a hidden layer", width, 1);
  require(field.hidden.size() <= 1000, "a field has at most 1000 hidden layers, got ", field.hidden.size());
  require(field.order >= 1 && field.order <= 16, "the order of a field must be from 1 to 16, got ",
          field.order);
  const DepthSpec& depth = field.depth;
  const bool sized = depth.kind != DepthKind::invariant && depth.kind != DepthKind::concat;
  // A basis of degree 0 is a constant; the others need something to stand on. Some are laid out by solving a system.
  const bool may_be_constant = depth.kind == DepthKind::galerkin &&
                               (depth.basis == BasisKind::fourier || depth.basis == BasisKind::chebyshev ||
                                depth.basis == BasisKind::legendre || depth.basis == BasisKind::polynomial);
  const std::int64_t smallest = sized && !may_be_constant ? 1 : 0;
  const std::int64_t largest = !sized ? 0 : depth.kind == DepthKind::galerkin ? 256 : 10000;
  require(depth.size >= smallest && depth.size <= largest, "the size of a field that is ",
          name_of(depth.kind), " in depth must be from ", smallest, " to ", largest, ", got ", depth.size);
  require(spec.task != Task::series || depth.kind == DepthKind::invariant,
          "windows of a series start at different times, so its field must not depend on time: make it "
          "invariant in depth, got ",
          name_of(depth.kind));
  const bool has_control = field.control != ControlKind::none;
  require(!has_control || spec.task == Task::classification || spec.task == Task::regression, "a ",
          name_of(spec.task),
          " model has no input besides its state to be controlled by; leave the control out");
  require(field.control != ControlKind::addition || spec.state_features() == spec.input_features(),
          "a control that is added needs a state of as many features as there are inputs, got ",
          spec.state_features(), " and ", spec.input_features(), "; concatenate it");
}

void check_solver(const ModelSpec& spec) {
  const SolverSpec& solver = spec.solver;
  const ode::ButcherTableau method = method_of(solver);
  require(solver.steps >= 0 && solver.steps <= step_limit, "a solver takes from 0 to ", step_limit,
          " fixed steps, got ", solver.steps);
  require(std::isfinite(solver.step_size) && solver.step_size >= 0,
          "the step size of a solver must be positive, got ", solver.step_size);
  require(solver.steps == 0 || solver.step_size == 0, "give the number of steps or their size, not both");
  const double length = spec.span.last - spec.span.first;
  require(std::isfinite(length) && length > 0, "the span of depth must go up, got ", spec.span.first, " to ",
          spec.span.last);
  require(solver.step_size == 0 || length / solver.step_size <= double(step_limit), "steps of size ",
          solver.step_size, " are more than ", step_limit, " over the span");
  if (solver.is_adaptive()) {
    require(method.adaptive(), "solver `", solver.method, "` has no error estimate; give it fixed steps");
    require(solver.relative_tolerance > 0 && solver.absolute_tolerance > 0 &&
                std::isfinite(solver.relative_tolerance) && std::isfinite(solver.absolute_tolerance),
            "tolerances must be positive, got ", solver.relative_tolerance, " and ",
            solver.absolute_tolerance);
  }
  require(solver.is_adaptive() || !solver.steps_per_sample,
          "fixed steps are the same for every sample; leave out the steps of each sample's own");
  if (spec.task == Task::series) {
    require(solver.steps == 0,
            "the solves of a series differ in length: give the size of fixed steps, not their number");
    require(std::isfinite(spec.time.origin) && std::isfinite(spec.time.unit) && spec.time.unit > 0,
            "the time of a series needs a finite origin and a positive unit, got ", spec.time.origin, " and ",
            spec.time.unit);
  }
}

void check_head(const ModelSpec& spec) {
  if (spec.task == Task::density) {
    const bool plain = spec.head == HeadKind::none && spec.augmentation.kind == AugmentationKind::none &&
                       spec.field.order == 1;
    require(plain, "a density keeps its features: no head, no augmentation, order 1");
    require(spec.span.first == 0, "the flow of a density begins at depth 0, got ", spec.span.first);
    return;
  }
  if (spec.head == HeadKind::linear) return;
  require(spec.outputs() <= spec.state_features(), "without a head the ", spec.outputs(),
          " output(s) must be among the features of the state, which has ", spec.state_features());
  require(spec.task != Task::series || spec.augmentation.kind != AugmentationKind::input,
          "a series behind an input layer needs a linear head to come back to its columns");
}

void add_layer(std::vector<TensorLayout>& all, const std::string& name, const Shape& front,
               const LayerSize& layer) {
  Shape weight = front, bias = front;
  weight.insert(weight.end(), {layer.outputs, layer.inputs});
  bias.push_back(layer.outputs);
  all.push_back({name + ".weight", weight});
  all.push_back({name + ".bias", bias});
}

}  // namespace

void check(const ModelSpec& spec) {
  check_columns(spec);
  check_augmentation(spec);
  check_field(spec);
  check_solver(spec);
  check_head(spec);
}

std::vector<LayerSize> field_layers(const ModelSpec& spec) {
  const bool concatenated = spec.field.control == ControlKind::concatenation;
  const std::int64_t depth = spec.field.depth.kind == DepthKind::concat ? 1 : 0;
  std::vector<LayerSize> layers;
  std::int64_t features = spec.state_features() + (concatenated ? spec.input_features() : 0);
  for (std::int64_t width : spec.field.hidden) {
    layers.push_back({features + depth, width});
    features = width;
  }
  layers.push_back({features + depth, spec.positions()});
  return layers;
}

DepthBasis basis_of(const ModelSpec& spec) {
  const DepthSpec& depth = spec.field.depth;
  const BasisKind kind = depth.kind == DepthKind::stacked ? BasisKind::piecewise_constant : depth.basis;
  return named_basis(kind, std::size_t(depth.size), spec.span);
}

ode::ButcherTableau method_of(const SolverSpec& solver) {
  std::vector<std::string> known;
  for (const auto& method : ode::all_methods()) {
    if (method.name == solver.method) return method;
    known.push_back(method.name);
  }
  throw InvalidArgument(text("unknown solver `", solver.method, "`", did_you_mean(solver.method, known)));
}

ode::Steps steps_of(const SolverSpec& solver) {
  if (solver.steps > 0) return ode::FixedSteps{.count = solver.steps};
  if (solver.step_size > 0) return ode::FixedSteps{.size = solver.step_size};
  return ode::AdaptiveSteps{.relative_tolerance = solver.relative_tolerance,
                            .absolute_tolerance = solver.absolute_tolerance};
}

std::vector<TensorLayout> layout(const ModelSpec& spec) {
  std::vector<TensorLayout> all;
  const std::int64_t inputs = spec.input_features();
  const bool has_input_layer = spec.augmentation.kind == AugmentationKind::input ||
                               spec.augmentation.kind == AugmentationKind::partial;
  if (has_input_layer) add_layer(all, "input", {}, {inputs, spec.augmentation.size});
  if (spec.augmentation.velocities == Velocities::learned)
    add_layer(all, "velocity", {}, {inputs, spec.state_features() - spec.positions()});
  const DepthSpec& depth = spec.field.depth;
  Shape front;
  if (depth.kind == DepthKind::galerkin)
    front = {std::int64_t(basis_size(depth.basis, std::size_t(depth.size)))};
  if (depth.kind == DepthKind::stacked) front = {depth.size};
  int number = 0;
  for (const LayerSize& layer : field_layers(spec)) {
    const std::string name = "field." + std::to_string(++number);
    if (depth.kind == DepthKind::hyper) {
      add_layer(all, name + ".first", {}, {1, depth.size});
      add_layer(all, name + ".second", {}, {depth.size, layer.outputs * (layer.inputs + 1)});
    } else {
      add_layer(all, name, front, layer);
    }
  }
  if (spec.head == HeadKind::linear) add_layer(all, "head", {}, {spec.state_features(), spec.outputs()});
  return all;
}

}  // namespace fathom
