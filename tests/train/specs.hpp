/// One specification for every kind of model that a file can hold.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fathom/file/model_spec.hpp"

namespace fathom {

inline std::vector<std::pair<std::string, ModelSpec>> testing_specs() {
  const ModelSpec classes{.task = Task::classification,
                          .inputs = {"a", "b", "c"},
                          .targets = {"kind"},
                          .labels = {"x", "y", "z"},
                          .input_scale = {.mean = {1, 2, 3}, .deviation = {1, 2, 0.5}},
                          .field = {.hidden = {8}}};
  const ModelSpec numbers{.task = Task::regression,
                          .inputs = {"a", "b"},
                          .targets = {"u", "v"},
                          .target_scale = {.mean = {1, -1}, .deviation = {3, 2}},
                          .field = {.hidden = {7, 5}},
                          .precision = Precision::float64};
  const ModelSpec series{.task = Task::series,
                         .inputs = {"p", "q"},
                         .input_scale = {.mean = {1, 0}, .deviation = {2, 1}},
                         .time = {.column = "t", .origin = 3, .unit = 0.25},
                         .field = {.hidden = {9}},
                         .span = {.first = 0, .last = 2},
                         .solver = {.relative_tolerance = 1e-6, .absolute_tolerance = 1e-6},
                         .head = HeadKind::none,
                         .precision = Precision::float64};
  const ModelSpec density{.task = Task::density,
                          .inputs = {"a", "b", "c"},
                          .input_scale = {.mean = {1, 2, 3}, .deviation = {1, 2, 0.5}},
                          .field = {.hidden = {8, 6}, .activation = Activation::softplus},
                          .head = HeadKind::none};
  const auto with = [](ModelSpec spec, auto change) {
    change(spec);
    return spec;
  };
  using Spec = ModelSpec;
  return {
      {"classification", classes},
      {"zero_concat",
       with(classes,
            [](Spec& s) {
              s.augmentation = {AugmentationKind::zero, 2}, s.field.depth.kind = DepthKind::concat;
            })},
      {"input_layer",
       with(classes,
            [](Spec& s) {
              s.augmentation = {AugmentationKind::input, 5}, s.field.activation = Activation::silu;
            })},
      {"partial_controlled",
       with(classes,
            [](Spec& s) {
              s.augmentation = {AugmentationKind::partial, 1}, s.field.control = ControlKind::concatenation;
            })},
      {"added_control", with(classes, [](Spec& s) { s.field.control = ControlKind::addition; })},
      {"hyper", with(classes,
                     [](Spec& s) {
                       s.field.depth = {DepthKind::hyper, BasisKind::fourier, 4};
                     })},
      {"regression", numbers},
      {"galerkin", with(numbers,
                        [](Spec& s) {
                          s.field.depth = {DepthKind::galerkin, BasisKind::chebyshev, 3};
                        })},
      {"piecewise", with(numbers,
                         [](Spec& s) {
                           s.field.depth = {DepthKind::galerkin, BasisKind::piecewise_linear, 4};
                           s.solver = {.method = "rk4", .step_size = 0.05};
                         })},
      {"stacked", with(numbers,
                       [](Spec& s) {
                         s.field.depth = {DepthKind::stacked, BasisKind::fourier, 3},
                         s.field.activation = Activation::elu;
                       })},
      {"no_head",
       with(numbers, [](Spec& s) { s.head = HeadKind::none, s.solver = {.method = "rk4", .steps = 7}; })},
      {"second_order",
       with(numbers,
            [](Spec& s) {
              s.field.order = 2, s.augmentation = {AugmentationKind::zero, 1, Velocities::learned};
            })},
      {"third_order",
       with(numbers, [](Spec& s) { s.field.order = 3, s.field.control = ControlKind::concatenation; })},
      {"series", series},
      {"latent_series", with(series,
                             [](Spec& s) {
                               s.augmentation = {AugmentationKind::input, 4}, s.head = HeadKind::linear;
                             })},
      {"series_of_fixed_steps",
       with(series, [](Spec& s) { s.solver = {.method = "rk4", .step_size = 0.05}; })},
      {"apart", with(classes, [](Spec& s) { s.solver.steps_per_sample = true; })},
      {"series_apart", with(series, [](Spec& s) { s.solver.steps_per_sample = true; })},
      {"density_apart", with(density, [](Spec& s) { s.solver.steps_per_sample = true; })},
      {"density", density},
      {"varying_density", with(density,
                               [](Spec& s) {
                                 s.field.depth = {DepthKind::galerkin, BasisKind::fourier, 1},
                                 s.field.activation = Activation::tanh;
                               })},
      {"concat_density", with(density, [](Spec& s) { s.field.depth.kind = DepthKind::concat; })},
      {"silu_density", with(density, [](Spec& s) { s.field.activation = Activation::silu; })},
  };
}

}  // namespace fathom
