/// Everything about a trained model of the command line that is not a tensor: what it reads, how it computes, what it
/// answers. Saved as JSON in the metadata of its file.
///   z(0) = start(x),   z' = f(s, x, z) for s in span,   answer = head(z(S))
/// x and regression targets are standardised column by column, (value - mean) / deviation; so are the states of a series and
/// the samples of a density.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fathom/depth/named_basis.hpp"
#include "fathom/file/safetensors.hpp"
#include "fathom/ode/methods.hpp"
#include "fathom/ode/steps.hpp"
#include "fathom/support/activation.hpp"

namespace fathom {

enum class Task {
  classification,  ///< answer: a score for each label, softmax of which are probabilities
  regression,      ///< answer: the targets
  series,          ///< the flow of the inputs in time; answer: the inputs at later times
  density          ///< p(inputs), a flow to the standard normal
};
template <> const NameTable<Task>& names<Task>();

/// Mean and deviation of each column; both empty: as it is.
struct Standardisation {
  std::vector<double> mean = {};
  std::vector<double> deviation = {};
  bool operator==(const Standardisation&) const = default;
};

/// What starts beside the inputs.                                                                    (M5, M6, M6b)
enum class AugmentationKind {
  none,    ///< z(0) = x
  zero,    ///< z(0) = [x, 0]: `size` zeros
  input,   ///< z(0) = W x + b: `size` features
  partial  ///< z(0) = [x, W x + b]: `size` features more
};
template <> const NameTable<AugmentationKind>& names<AugmentationKind>();

/// Where the velocities (and higher derivatives) of a field of higher order start.                   (M7)
enum class Velocities { zero, learned };
template <> const NameTable<Velocities>& names<Velocities>();

struct AugmentationSpec {
  AugmentationKind kind = AugmentationKind::none;
  std::int64_t size = 0;
  Velocities velocities = Velocities::zero;
  bool operator==(const AugmentationSpec&) const = default;
};

/// How the layers of the field depend on depth.
enum class DepthKind {
  invariant,
  concat,    ///< depth is one more input of every layer                                             (M2)
  galerkin,  ///< weights on a basis, `basis` and `size`                                             (M3)
  stacked,   ///< constant weights on each of `size` pieces                                          (M4)
  hyper      ///< weights from a network of depth with `size` hidden features                        (M4b)
};
template <> const NameTable<DepthKind>& names<DepthKind>();

struct DepthSpec {
  DepthKind kind = DepthKind::invariant;
  BasisKind basis = BasisKind::fourier;
  std::int64_t size = 0;
  bool operator==(const DepthSpec&) const = default;
};

/// How x enters the field.                                                                           (M8)
enum class ControlKind { none, concatenation, addition };
template <> const NameTable<ControlKind>& names<ControlKind>();

struct FieldSpec {
  std::vector<std::int64_t> hidden = {32};
  Activation activation = Activation::tanh;
  DepthSpec depth = {};
  ControlKind control = ControlKind::none;
  std::int64_t order = 1;  ///< state: order blocks, z_i' = z_{i+1}                                 (M7)
  bool operator==(const FieldSpec&) const = default;
};

struct SolverSpec {
  std::string method = "dopri5";  ///< a name of ode::all_methods()
  double relative_tolerance = 1e-4;
  double absolute_tolerance = 1e-4;
  std::int64_t steps = 0;  ///< equal steps over the span ...
  double step_size = 0;    ///< ... or steps of this size; neither: adapted to the tolerances
  /// Adaptive steps of each row's own: its answer does not depend on the rows that it comes with. In a file only where it is true.
  bool steps_per_sample = false;
  bool is_adaptive() const { return steps == 0 && step_size == 0; }
  bool operator==(const SolverSpec&) const = default;
};

/// What is made of z(S).
enum class HeadKind {
  none,   ///< its first features
  linear  ///< W z + b
};
template <> const NameTable<HeadKind>& names<HeadKind>();

enum class Precision { float32, float64 };
template <> const NameTable<Precision>& names<Precision>();

/// Depth of a series: s = (time - origin) / unit.
struct TimeSpec {
  std::string column = "time";
  double origin = 0;
  double unit = 1;
  bool operator==(const TimeSpec&) const = default;
};

struct ModelSpec {
  Task task = Task::classification;
  std::vector<std::string> inputs = {};  ///< columns; of a series and a density: all there are
  std::vector<std::string> targets =
      {};  ///< classification: the label's column; regression: one or more; else none
  std::vector<std::string> labels =
      {};  ///< classification: names of the classes, in the order of their scores
  Standardisation input_scale = {};
  Standardisation target_scale = {};  ///< regression
  TimeSpec time = {};                 ///< series
  AugmentationSpec augmentation = {};
  FieldSpec field = {};
  DepthSpan span = {};  ///< of depth; of a series: where its depths lay in training
  SolverSpec solver = {};
  HeadKind head = HeadKind::linear;
  Precision precision = Precision::float32;

  std::int64_t input_features() const { return std::int64_t(inputs.size()); }
  std::int64_t positions() const;  ///< features before velocities are added
  std::int64_t state_features() const { return positions() * field.order; }
  std::int64_t outputs() const;  ///< labels, targets, or the columns of a series or density
};

/// Throws InvalidArgument with one sentence unless the parts fit together.
void check(const ModelSpec& spec);

/// JSON text, and back; checked both ways.
std::string to_json(const ModelSpec& spec);
ModelSpec model_spec_from_json(std::string_view json);

/// Names and shapes of the tensors of such a model:
///   input.weight, input.bias, velocity.*, field.1.weight, field.1.bias, field.2.*, ..., head.weight, head.bias
/// A layer on a basis has one more axis in front; one of a hypernetwork has field.1.first.* and field.1.second.*.
struct TensorLayout {
  std::string name;
  Shape shape;
};
std::vector<TensorLayout> layout(const ModelSpec& spec);

/// A layer of the field: what goes in (depth included, if concatenated) and out.
struct LayerSize {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};
std::vector<LayerSize> field_layers(const ModelSpec& spec);

/// The basis of a galerkin or stacked field.
DepthBasis basis_of(const ModelSpec& spec);

ode::ButcherTableau method_of(const SolverSpec& solver);
ode::Steps steps_of(const SolverSpec& solver);

}  // namespace fathom
