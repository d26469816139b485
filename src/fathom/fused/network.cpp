#include "fathom/fused/network.hpp"

#include "fathom/support/error.hpp"

namespace fathom::fused {

Network::Network(Builder& build, Rows input, std::int32_t directions)
    : build_(build), h_(input), tangents_(std::size_t(directions)) {}

void Network::linear(Matrix matrix, const Function& function, Place place) {
  if (matrix.inputs != h_.count)
    throw NoProgram{text("a layer needs ", matrix.inputs, " features where there are ", h_.count)};
  const std::int32_t number = build_.matrix(matrix);
  if (tangents_.empty()) {
    h_ = build_.layer(h_, number, function);
    return;
  }
  const bool is_linear = function.kind == FunctionKind::identity;
  if (is_linear && !tangents_.front())
    throw NoProgram{"the divergence of a first layer without a function has no kernel"};
  if (is_linear && place == Place::last) {
    h_ = build_.layer(h_, number, {});
    close_tangents(number);
    return;
  }
  std::optional<Rows> slope;
  if (is_linear) {
    h_ = build_.layer(h_, number, {});
  } else {
    slope = layer_with_slope(number, function);
  }
  carry_tangents(matrix, number, slope);
  if (place == Place::last) close_tangents();
}

Rows Network::layer_with_slope(std::int32_t number, const Function& function) {
  if (function.kind != FunctionKind::silu) {
    h_ = build_.layer(h_, number, function);
    return build_.slope(h_);
  }
  // silu(h) = h g with g = sigmoid(h), whose slope is g + h g': its own slope has no kernel.
  const Rows h = build_.layer(h_, number, {}), gate = build_.activated(h, {FunctionKind::sigmoid});
  h_ = build_.multiply(h, gate);
  return build_.add(gate, build_.multiply(h, build_.slope(gate)));
}

void Network::require_no_tangents(const char* what) const {
  if (!tangents_.empty()) throw NoProgram{text("the divergence of ", what, " has no kernel")};
}

void Network::activate(const Function& function) {
  require_no_tangents("an activation without a linear layer");
  h_ = build_.activated(h_, function);
}

void Network::append(Rows features) {
  require_no_tangents("an augmentation");
  h_ = build_.joined({h_, features});
}

void Network::prepend(Rows features) {
  require_no_tangents("an augmentation");
  h_ = build_.joined({features, h_});
}

void Network::append_depth(std::optional<Rows> of_samples) {
  h_ = build_.joined({h_, build_.depth(of_samples)});
  for (auto& tangent : tangents_) {
    if (tangent) tangent = build_.joined({*tangent, build_.zeros(1)});
  }
}

void Network::carry_tangents(Matrix matrix, std::int32_t number, const std::optional<Rows>& slope) {
  matrix.bias = -1;
  const std::int32_t without_bias = tangents_.front() ? build_.matrix(matrix) : number;
  for (std::size_t k = 0; k < tangents_.size(); ++k) {
    auto& tangent = tangents_[k];
    if (!tangent) {
      tangent = build_.column(*slope, number, std::int32_t(k));
      continue;
    }
    tangent = build_.layer(*tangent, without_bias, {});
    if (slope) tangent = build_.multiply(*tangent, *slope);
  }
}

void Network::close_tangents(std::optional<std::int32_t> last_matrix) {
  if (std::size_t(h_.count) < tangents_.size())
    throw NoProgram{"the divergence of a rate with fewer features than the state has no kernel"};
  std::vector<Rows> diagonal;
  for (std::size_t k = 0; k < tangents_.size(); ++k) {
    const std::int32_t row = std::int32_t(k);
    diagonal.push_back(last_matrix ? build_.row_dot(*tangents_[k], *last_matrix, row)
                                   : Builder::part(*tangents_[k], row, 1));
  }
  divergence_ = build_.sum(build_.joined(diagonal));
}

}  // namespace fathom::fused
