/// Layers of a public description, written into a program: of a field, or of the head of a loss.
///
///   Layers layers(build, options.layers, /*inputs=*/2);
///   Network net(build, build.state());
///   layers.write(net);
///   layers.parameters();       // layer.1.weight, layer.1.bias, ...: tensors 0, 1, ... of the program
#pragma once

#include <vector>

#include "fathom/fused/network.hpp"
#include "fathom/program_field.hpp"

namespace fathom::session {

/// Of a state, an input, or all layers together: rows of a program are counted in 32 bits.
inline constexpr std::int64_t most_features = 1 << 24;

fused::Function function_of(Activation activation);

class Layers {
 public:
  /// `inputs`: features of what the first one reads, without depth.
  Layers(fused::Builder& build, const std::vector<Layer>& layers, std::int64_t inputs);

  /// Once. Throws InvalidArgument where a layer has no kernel.
  void write(fused::Network& net) const;
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<double>& break_points() const { return break_points_; }

 private:
  struct Shape {
    fused::Matrix matrix;
    fused::Function function;
    bool reads_depth = false;
  };
  std::vector<Shape> shapes_;
  std::vector<Parameter> parameters_;
  std::vector<double> break_points_;
};

/// Without a program: what such layers have to learn.
std::vector<Parameter> parameters_of(const std::vector<Layer>& layers, std::int64_t inputs);

}  // namespace fathom::session
