/// Model files for the tests of the runtime: two with known answers, and any with weights at random.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "fathom/random.hpp"
#include "fathom/runtime/model.hpp"
#include "fathom/support/error.hpp"

namespace fathom::runtime {

using Numbers = std::vector<double>;

inline void set(ModelFile& file, const std::string& name, const Shape& shape, const Numbers& values) {
  file.tensors[name] = stored_tensor<double>(shape, values);
}

/// z' = A z without hidden layers.
inline ModelFile linear_series(const Numbers& matrix) {
  ModelFile file;
  file.spec = {.task = Task::series,
               .inputs = {"x", "v"},
               .input_scale = {.mean = {10, 0}, .deviation = {2, 2}},
               .time = {.column = "t", .origin = 5, .unit = 2},
               .field = {.hidden = {}},
               .solver = {.method = "dop853", .relative_tolerance = 1e-12, .absolute_tolerance = 1e-12},
               .head = HeadKind::none,
               .precision = Precision::float64};
  set(file, "field.1.weight", {2, 2}, matrix);
  set(file, "field.1.bias", {2}, {0, 0});
  return file;
}

/// One input, z' = -z, two labels with scores z and 0.
inline ModelFile decay_classifier() {
  ModelFile file;
  file.spec = {.task = Task::classification,
               .inputs = {"x"},
               .targets = {"kind"},
               .labels = {"high", "low"},
               .field = {.hidden = {}},
               .solver = {.relative_tolerance = 1e-10, .absolute_tolerance = 1e-10},
               .precision = Precision::float64};
  set(file, "field.1.weight", {1, 1}, {-1});
  set(file, "field.1.bias", {1}, {0});
  set(file, "head.weight", {2, 1}, {1, 0});
  set(file, "head.bias", {2}, {0, 0});
  return file;
}

inline std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "no complaint";
}

/// Weights are uniform in +-1/sqrt(inputs).
inline ModelFile random_model(const ModelSpec& spec) {
  ModelFile file{.spec = spec};
  for (const TensorLayout& tensor : layout(spec)) {
    const Random random(1, file.tensors.size());
    std::int64_t size = 1;
    for (const std::int64_t length : tensor.shape) size *= length;
    Numbers values;
    for (std::int64_t n = 0; n < size; ++n)
      values.push_back((2 * random.uniform(std::uint64_t(n)) - 1) / std::sqrt(double(tensor.shape.back())));
    file.tensors[tensor.name] =
        spec.precision == Precision::float32
            ? stored_tensor<float>(tensor.shape, std::vector<float>(values.begin(), values.end()))
            : stored_tensor<double>(tensor.shape, values);
  }
  return file;
}

/// Of every task, precision and way in which a field may depend on depth and inputs.
inline std::vector<ModelFile> models_of_every_task() {
  ModelSpec classes{.inputs = {"a", "b"}, .targets = {"kind"}, .labels = {"x", "y", "z"}};
  classes.input_scale = {.mean = {1, 2}, .deviation = {2, 3}};
  classes.field.control = ControlKind::concatenation;
  ModelSpec regression{.task = Task::regression, .inputs = {"a"}, .targets = {"p", "q"}};
  regression.target_scale = {.mean = {5, 6}, .deviation = {7, 8}};
  regression.augmentation = {.kind = AugmentationKind::partial, .size = 3};
  regression.field.depth = {.kind = DepthKind::galerkin, .basis = BasisKind::fourier, .size = 2};
  regression.precision = Precision::float64;
  ModelSpec series{.task = Task::series, .inputs = {"u", "v"}};
  series.time = {.column = "t", .origin = 1, .unit = 2};
  series.field.depth = {.kind = DepthKind::concat};
  ModelSpec density{.task = Task::density, .inputs = {"x", "y"}};
  density.input_scale = {.mean = {1, 2}, .deviation = {2, 3}};
  density.head = HeadKind::none;
  density.precision = Precision::float64;
  ModelSpec stacked{.task = Task::regression, .inputs = {"a", "b"}, .targets = {"p"}};
  stacked.field.depth = {.kind = DepthKind::stacked, .size = 3};
  stacked.solver = {.method = "rk4", .steps = 6};
  std::vector<ModelFile> files;
  for (const ModelSpec& spec : {classes, regression, series, density, stacked})
    files.push_back(random_model(spec));
  return files;
}

/// Of the model's task: predictions, or a forecast at `times`.
inline Numbers answers_of(const Model& model, const Numbers& rows, const Numbers& times) {
  return model.spec().task == Task::series ? model.forecast(rows, times) : model.predict(rows);
}
inline void answers_into(const Model& model, const Numbers& rows, const Numbers& times, Numbers& answers,
                         Workspace& workspace) {
  if (model.spec().task == Task::series) return model.forecast_into(rows, times, answers, workspace);
  model.predict_into(rows, answers, workspace);
}
inline Numbers some_rows(const Model& model, std::size_t rows, double phase = 0) {
  Numbers numbers;
  for (std::size_t n = 0; n < rows * model.spec().inputs.size(); ++n)
    numbers.push_back(std::sin(double(n) + phase));
  return numbers;
}

}  // namespace fathom::runtime
