/// A field as data: z'(s) = f(s, z, u; theta) as a program of layers, with a list of its parameters.
///
///   const ProgramField field = network_field({.features = 2, .layers = {{32, Activation::tanh}, {2}}});
///   std::vector<float> parameters = initial_parameters<float>(field, /*seed=*/1);     // (parameter_count())
///
/// A field holds no numbers: parameters are the caller's, one array of all of them, one after the other in the order of `parameters()`, each
/// row by row. It is a value without state; threads may share it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "fathom/basis.hpp"
#include "fathom/support/activation.hpp"

namespace fathom {

namespace fused {
struct Program;
}

/// Where a parameter lies among the numbers of a field, and how it may begin.
struct Parameter {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  /// Fresh numbers are uniform in [-bound, bound].
  double bound = 0;
  /// Of a parameter on a basis, (functions, ...): such numbers times these coefficients, so that a fresh layer does not vary with depth.
  std::vector<double> coefficients = {};

  std::int64_t size() const;
  bool operator==(const Parameter&) const = default;
};

class ProgramField {
 public:
  /// `program` reads the parameters as its first tensors, then the inputs; `inputs`: features of each.
  ProgramField(std::shared_ptr<const fused::Program> program, std::vector<Parameter> parameters,
               std::vector<std::int64_t> inputs = {}, std::vector<double> break_points = {});

  std::int64_t features() const;        ///< of the state z
  std::int64_t running_losses() const;  ///< integrals along the way, such as the divergence's
  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::int64_t parameter_count() const;  ///< numbers of all parameters together
  /// Of each input u, one row a sample: a control.
  const std::vector<std::int64_t>& inputs() const { return inputs_; }
  /// Depths at which the field jumps; a solve has a step end there.
  const std::vector<double>& break_points() const { return break_points_; }
  const std::shared_ptr<const fused::Program>& program() const { return program_; }

  /// The same program and parameters? No, where two have functions of depth of the user's own, which nobody can compare.
  bool operator==(const ProgramField& other) const;

 private:
  std::shared_ptr<const fused::Program> program_;
  std::vector<Parameter> parameters_;
  std::vector<std::int64_t> inputs_;
  std::vector<double> break_points_;
};

/// f + g, and f * g feature by feature, of fields with the same state: a grey box is a known part and a network.
///
///   const ProgramField field = named("known", pendulum.field()) + named("friction", network_field({...}));
///
/// Parameters are those of f, then those of g, whose names must differ. Inputs are shared: input n of either is input n of the whole.
/// Throws InvalidArgument where the features differ, or one has running losses.
ProgramField operator+(const ProgramField& f, const ProgramField& g);
ProgramField operator*(const ProgramField& f, const ProgramField& g);

/// The same field; `layer.1.weight` is called `name.layer.1.weight`.
ProgramField named(const std::string& name, const ProgramField& field);

/// Functions of depth of the user's own; called by one thread at a time.
struct OwnBasis {
  std::int32_t size = 0;
  std::function<std::vector<double>(double s)> values;  ///< psi(s), (size)
  std::function<std::vector<double>(double s)> slopes;  ///< dpsi/ds, (size)
  std::vector<double> break_points = {};
  std::vector<double> constant =
      {};  ///< coefficients of the constant 1, for fresh parameters; empty: 1 and zeros
};

/// A signal that is known at some depths: u(s) is linear between them, and constant before and behind. `values`: (depths, features).
OwnBasis sampled(std::span<const double> depths, std::span<const double> values);

/// h -> activation(W h + b)
struct Layer {
  std::int64_t features = 0;  ///< of its answer
  Activation activation = Activation::identity;
  /// W and b vary with depth: sums over these functions of it.
  std::variant<std::monostate, Basis, OwnBasis> basis = {};
  bool reads_depth = false;  ///< s is one more feature of what it reads
};

/// Integrals along the way beside z.
enum class Running {
  path_length,     ///< int |f| ds
  kinetic_energy,  ///< int |f|^2 ds
  divergence,      ///< int tr df/dz ds, for densities; alone
  tracking         ///< int |z - target(s)|^2 ds
};

struct NetworkOptions {
  std::int64_t features = 0;       ///< of the state
  std::int64_t inputs = 0;         ///< of a control u that is read beside it: layers see [z, u]
  OwnBasis signal = {};            ///< u(s), the same for all samples, that is read beside [z, u]
  std::vector<Layer> layers = {};  ///< the last one has as many features as the state, divided by `order`
  std::int64_t order =
      1;  ///< equal blocks of the state: z_i' = z_{i+1}, and the network gives the last one's
  std::vector<Running> running = {};
  OwnBasis target = {};  ///< of `tracking`: as many functions as the state has features
};
/// Parameters are named layer.1.weight, layer.1.bias, layer.2.weight, ...: (outputs, inputs) and (outputs), on a basis with one more axis
/// in front. Throws InvalidArgument where layers do not fit together or have no kernel.
ProgramField network_field(const NetworkOptions& options);

/// Fresh numbers: uniform in +-1/sqrt(inputs of the layer). Number n of parameter p is random number n of stream p: the same on every
/// platform.
template <class T>
std::vector<T> initial_parameters(const std::vector<Parameter>& parameters, std::uint64_t seed);
template <class T> std::vector<T> initial_parameters(const ProgramField& field, std::uint64_t seed) {
  return initial_parameters<T>(field.parameters(), seed);
}

}  // namespace fathom
