#include "fathom/fused/network.hpp"

#include "fathom/support/error.hpp"

namespace fathom::fused {

Network::Network(Builder& build, Rows input, std::int32_t directions)
    : build_(build), h_(input), tangents_(std::size_t(directions)) {}

void Network::linear(Matrix matrix, const Function& function, Place place) {
  if (matrix.inputs != h_.count)
    throw NoProgram{text("a layer needs ", matrix.inputs, " features where there are ", h_.count)};
  const std::int32_t number = build_.matrix(matrix);
  h_ = build_.layer(h_, number, function);
  if (!tangents_.empty()) carry_tangents(matrix, number, function, place);
}

void Network::activate(const Function& function) {
  if (!tangents_.empty())
    throw NoProgram{"the divergence of an activation without a linear layer has no kernel"};
  h_ = build_.activated(h_, function);
}

void Network::append_depth(std::optional<Rows> of_samples) {
  h_ = build_.joined({h_, build_.depth(of_samples)});
  for (auto& tangent : tangents_) {
    if (tangent) tangent = build_.joined({*tangent, build_.zeros(1)});
  }
}

void Network::carry_tangents(Matrix matrix, std::int32_t number, const Function& function, Place place) {
  const bool is_linear = function.kind == FunctionKind::identity, is_last = place == Place::last;
  if (function.kind == FunctionKind::silu) throw NoProgram{"the divergence through SiLU has no kernel"};
  if (is_linear != is_last) throw NoProgram{"the divergence of layers in this order has no kernel"};
  if (is_last) {
    if (!tangents_.front()) throw NoProgram{"the divergence of a single layer has no kernel"};
    std::vector<Rows> diagonal;
    for (std::size_t k = 0; k < tangents_.size(); ++k) {
      diagonal.push_back(build_.row_dot(*tangents_[k], number, std::int32_t(k)));
    }
    divergence_ = build_.sum(build_.joined(diagonal));
    return;
  }
  const Rows slope = build_.slope(h_);
  matrix.bias = -1;
  const std::int32_t without_bias = tangents_.front() ? build_.matrix(matrix) : number;
  for (std::size_t k = 0; k < tangents_.size(); ++k) {
    auto& tangent = tangents_[k];
    tangent = tangent ? build_.multiply(build_.layer(*tangent, without_bias, {}), slope)
                      : build_.column(slope, number, std::int32_t(k));
  }
}

}  // namespace fathom::fused
