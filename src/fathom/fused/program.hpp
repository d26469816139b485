/// A field as a short program over a tile of samples, and how its weights follow from the tensors it was made of.
///
///   Builder build(/*state=*/2);
///   const std::int32_t first = build.matrix({.weight = 0, .bias = 1, .outputs = 32, .inputs = 2});
///   const std::int32_t last = build.matrix({.weight = 2, .bias = 3, .outputs = 2, .inputs = 32});
///   const Rows hidden = build.layer(build.state(), first, {FunctionKind::tanh});
///   build.give(build.layer(hidden, last, {}));
///   const Program program = std::move(build).finish();
///
/// `weight` and `bias` are places in the list of tensors that the program is run with.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "fathom/basis.hpp"
#include "fathom/fused/code.hpp"

namespace fathom::fused {

/// Functions of depth with their slopes: a basis, or a signal.
struct DepthFunctions {
  std::int32_t size = 0;
  std::function<std::vector<double>(double s)> values;
  std::function<std::vector<double>(double s)> slopes;
  /// What they are, where they are of a known kind: then they are compared by it, and evaluated without the functions above.
  std::optional<Basis> data = {};

  /// (size), in memory that is used again.
  void read_values(double s, std::vector<double>& to) const;
  void read_slopes(double s, std::vector<double>& to) const;
};
DepthFunctions functions_of(const Basis& basis);

/// A weight (outputs, inputs), or with a basis (basis size, outputs, inputs) to be mixed at each depth; bias likewise.
struct Matrix {
  std::int32_t weight = -1;
  std::int32_t bias = -1;  ///< -1: none
  std::int32_t outputs = 0;
  std::int32_t inputs = 0;
  std::int32_t basis = -1;  ///< place among the program's bases, -1: constant in depth
};

/// A tensor (batch, features) that fills rows of the bank `inputs`.
struct SampleInput {
  std::int32_t tensor = -1;
  Rows rows = {};
};

struct Program {
  std::vector<Op> ops;
  std::vector<Rows> cleared;
  std::vector<Matrix> matrices;
  std::vector<DepthFunctions> bases;
  std::vector<DepthFunctions> signals;
  std::vector<SampleInput> inputs;
  std::int32_t state_rows =
      0;  ///< of the argument: features of z, then running losses, which no operation reads
  std::int32_t loss_rows = 0;
  std::int32_t register_rows = 0;
  std::int32_t passing_rows = 0;
  std::int32_t input_rows = 0;
  std::int32_t signal_size = 0;
  std::vector<Callbacks> callbacks = {};                          ///< of fields that the caller computes
  std::vector<std::shared_ptr<const void>> callback_owners = {};  ///< of what their contexts point to

  std::int32_t features() const { return state_rows - loss_rows; }
  bool varies_with_depth() const;  ///< or are all its evaluations alike?
  bool has_functions() const { return !bases.empty() || !signals.empty(); }  ///< of depth
  Code code() const;
};

/// Do both do the same with tensors of the same sizes? No, where they have functions of depth that are the user's own: nobody can
/// compare those.
bool are_alike(const Program& a, const Program& b);

/// Puts a program together. Every operation writes rows of its own; rows that only go into a larger block or into the
/// rate are written there at once.
class Builder {
 public:
  explicit Builder(std::int32_t features, std::int32_t losses = 0);

  Rows state() const { return {Bank::registers, 0, features_}; }
  Rows input(std::int32_t tensor, std::int32_t features);
  std::int32_t matrix(const Matrix& matrix);
  std::int32_t basis(DepthFunctions functions);

  Rows layer(Rows in, std::int32_t matrix, Function function);
  Rows activated(Rows in, Function function);
  Rows add(Rows first, Rows second);
  Rows multiply(Rows first, Rows second);
  Rows scale(Rows rows, Rows by);
  Rows joined(const std::vector<Rows>& parts);
  Rows zeros(std::int32_t count);
  Rows depth(std::optional<Rows> of_samples = {});
  Rows signal(DepthFunctions functions);
  Rows column(Rows slopes, std::int32_t matrix, std::int32_t place);
  Rows row_dot(Rows in, std::int32_t matrix, std::int32_t place);
  Rows sum(Rows in);
  Rows distance(Rows first, Rows second);
  Rows squares(Rows in);
  Rows norm(Rows in);
  Rows absolute(Rows first, Rows second);
  Rows huber(Rows first, Rows second, double threshold);
  /// Functions of the caller's, of the state and the rows `controls`. `parameters`: how many numbers, all of one tensor.
  Rows call(const Callbacks& callbacks, std::shared_ptr<const void> owner, Rows controls,
            std::int32_t parameters, std::int32_t tensor);
  Rows cross_entropy(Rows scores, Rows label);

  /// function' of the layer that gave `of`, for tangents.
  Rows slope(Rows of);

  static Rows part(Rows rows, std::int32_t begin, std::int32_t count) {
    return {rows.bank, rows.begin + begin, count};
  }

  /// The operations of a whole program once more, behind those that are here. Its rate, in rows of this one. `parameters`: place of its
  /// first parameter, of which it has `count`, in the list of tensors; `inputs`: place of its first input there.
  Rows include(const Program& other, std::int32_t parameters, std::int32_t count, std::int32_t inputs);

  /// The rate of the state, and of one running loss each.
  void give(Rows rate);
  void give_loss(std::int32_t place, Rows value);

  /// `passes_cheap_rows`: layers on few rows of the argument write to the bank `passing`.
  Program finish(bool passes_cheap_rows = false) &&;

 private:
  struct Renamed {
    Rows from;
    Rows to;
  };
  Rows fresh(std::int32_t count);
  void check_equal(Rows first, Rows second) const;
  Op& push(const Op& op);
  /// Lets the operation that gives `rows` write to `place`; copies them where that cannot be.
  void place(Rows rows, Rows place);
  Rows resolved(Rows rows) const;
  void resolve_names();

  std::int32_t features_;
  Program program_;
  std::vector<Renamed> renamed_;
};

}  // namespace fathom::fused
