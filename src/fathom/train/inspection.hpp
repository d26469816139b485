/// A look inside a trained model: its tensors, its weights over depth, and how its flow stretches and turns what it carries.
///   growth:     the largest real part of the eigenvalues of df/dz at (s, z(s)); above 0, neighbours part
///   frequency:  the largest imaginary part; neighbours turn around each other
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fathom/train/model.hpp"

namespace fathom {

/// One tensor of the model.
struct TensorFact {
  std::string name;
  Shape shape;
  std::int64_t numbers = 0;
};

/// |W(s)| (Frobenius) and |b(s)| of one layer of the field, at the depths of the inspection.
struct LayerCourse {
  std::string layer;
  bool varies = false;  ///< with depth
  std::vector<double> weight;
  std::vector<double> bias;
};

/// Over the samples, at one depth.
struct Stability {
  double depth = 0;
  double mean_growth = 0;
  double worst_growth = 0;
  double frequency = 0;
  double mean_speed = 0;  ///< |f|
};

struct Inspection {
  std::vector<TensorFact> tensors;
  std::int64_t numbers = 0;    ///< of all tensors
  std::vector<double> depths;  ///< evenly over the span
  std::vector<LayerCourse> layers;
  std::vector<Stability> stability;
  SolveReport report;  ///< of the solve of all samples over the span
};

struct InspectOptions {
  std::int64_t depths = 5;
  /// Eigenvalues are found for the first so many samples.
  std::int64_t samples = 256;
};

/// `inputs`: (samples, inputs) in the units of the data; those of a series are states at the start of the span.
Inspection inspect(Model& model, const Tensor& inputs, const InspectOptions& options = {});

/// Inputs as they might be, where there are no data: normal with the standardisation's mean and deviation.
Tensor typical_inputs(const ModelSpec& spec, std::int64_t count);

}  // namespace fathom
