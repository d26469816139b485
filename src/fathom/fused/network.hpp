/// A network written into a program layer by layer, with the tangents t_k = dh/dz_k beside it where its divergence is wanted:
///   t -> function'(.) * (W t), starting from unit vectors; at the last layer  div f = sum_k (row k of W) t_k
///
///   Network net(build, build.state());
///   net.linear({.weight = 0, .bias = 1, .outputs = 32, .inputs = 2}, {FunctionKind::tanh});
///   net.linear({.weight = 2, .bias = 3, .outputs = 2, .inputs = 32});
///   build.give(net.output());
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fathom/fused/program.hpp"

namespace fathom::fused {

/// Thrown where a field turns out to have no program.
struct NoProgram {
  std::string reason;
};

class Network {
 public:
  /// `directions`: of the tangents, the first so many features of the input; 0 without divergence.
  Network(Builder& build, Rows input, std::int32_t directions = 0);

  enum class Place { inside, last };
  void linear(Matrix matrix, const Function& function = {}, Place place = Place::inside);
  /// A function without a linear layer before it.
  void activate(const Function& function);
  void append_depth(std::optional<Rows> of_samples = {});
  /// Further features of the next layer, behind those it has, or before them.
  void append(Rows features);
  void prepend(Rows features);

  Rows output() const { return h_; }
  /// After the last layer.
  Rows divergence() const { return divergence_; }

 private:
  void require_no_tangents(const char* what) const;
  /// function'(.) of a new layer with a function, for tangents.
  Rows layer_with_slope(std::int32_t number, const Function& function);
  void carry_tangents(Matrix matrix, std::int32_t number, const std::optional<Rows>& slope);
  /// The divergence, where the tangents have passed the last layer, or are about to pass a linear one: of that the diagonal will do.
  void close_tangents(std::optional<std::int32_t> last_matrix = {});

  Builder& build_;
  Rows h_;
  std::vector<std::optional<Rows>> tangents_;  // none before the first layer
  Rows divergence_ = {};
};

}  // namespace fathom::fused
