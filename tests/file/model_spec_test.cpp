/// A specification says the same after a trip through JSON, and nonsense is named.
#include "fathom/file/model_spec.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace fathom {
namespace {

ModelSpec iris() {
  return {.task = Task::classification,
          .inputs = {"sepal length", "sepal width", "petal \"length\""},
          .targets = {"species"},
          .labels = {"setosa", "versicolor", "virginica"},
          .input_scale = {.mean = {5.8, 3.0, 3.7}, .deviation = {0.8, 0.4, 1.7}},
          .augmentation = {.kind = AugmentationKind::zero, .size = 2},
          .field = {
              .hidden = {16, 8}, .activation = Activation::softplus, .control = ControlKind::concatenation}};
}

ModelSpec series() {
  return {.task = Task::series,
          .inputs = {"x", "y"},
          .time = {.column = "t", .origin = 3, .unit = 0.25},
          .augmentation = {.velocities = Velocities::learned},
          .field = {.order = 2},
          .span = {.first = -1, .last = 4},
          .solver = {.method = "rk4", .step_size = 0.1},
          .head = HeadKind::none,
          .precision = Precision::float64};
}

ModelSpec galerkin() {
  ModelSpec spec = iris();
  spec.field.depth = {.kind = DepthKind::galerkin, .basis = BasisKind::chebyshev, .size = 3};
  return spec;
}

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "no complaint";
}

TEST(ModelSpec, json_keeps_everything) {
  for (const ModelSpec& spec : {iris(), series(), galerkin()}) {
    const ModelSpec again = model_spec_from_json(to_json(spec));
    EXPECT_EQ(again.task, spec.task);
    EXPECT_EQ(again.inputs, spec.inputs);
    EXPECT_EQ(again.targets, spec.targets);
    EXPECT_EQ(again.labels, spec.labels);
    EXPECT_EQ(again.input_scale, spec.input_scale);
    EXPECT_EQ(again.target_scale, spec.target_scale);
    EXPECT_EQ(again.time, spec.time);
    EXPECT_EQ(again.augmentation, spec.augmentation);
    EXPECT_EQ(again.field, spec.field);
    EXPECT_EQ(again.span.first, spec.span.first);
    EXPECT_EQ(again.span.last, spec.span.last);
    EXPECT_EQ(again.solver, spec.solver);
    EXPECT_EQ(again.head, spec.head);
    EXPECT_EQ(again.precision, spec.precision);
    EXPECT_EQ(to_json(again), to_json(spec));
  }
}

TEST(ModelSpec, steps_of_each_sample_are_told_only_where_they_are_taken) {
  ModelSpec spec = iris();
  const std::string joint = to_json(spec);
  EXPECT_EQ(joint.find("steps_per_sample"), std::string::npos) << "earlier versions refuse unknown keys";
  EXPECT_FALSE(model_spec_from_json(joint).solver.steps_per_sample);
  spec.solver.steps_per_sample = true;
  EXPECT_TRUE(model_spec_from_json(to_json(spec)).solver.steps_per_sample);
  EXPECT_EQ(to_json(model_spec_from_json(to_json(spec))), to_json(spec));
}

TEST(ModelSpec, every_name_is_read_back) {
  for (const std::string& name : all_names<Activation>()) {
    ModelSpec spec = iris();
    spec.field.activation = value_named<Activation>("activation", name);
    EXPECT_EQ(model_spec_from_json(to_json(spec)).field.activation, spec.field.activation);
  }
  for (const std::string& name : all_names<BasisKind>()) {
    ModelSpec spec = iris();
    spec.field.depth = {
        .kind = DepthKind::galerkin, .basis = value_named<BasisKind>("basis", name), .size = 3};
    EXPECT_EQ(model_spec_from_json(to_json(spec)).field.depth, spec.field.depth);
    EXPECT_EQ(basis_of(spec).size, basis_size(spec.field.depth.basis, 3)) << name;
    EXPECT_EQ(std::size_t(layout(spec).front().shape.front()), basis_of(spec).size) << name;
  }
}

TEST(ModelSpec, layout_names_every_tensor_with_its_shape) {
  std::string all;
  for (const auto& [name, shape] : layout(iris())) all += name + shape_text(shape) + " ";
  EXPECT_EQ(
      all,
      "field.1.weight(16, 8) field.1.bias(16) field.2.weight(8, 16) field.2.bias(8) field.3.weight(5, 8) "
      "field.3.bias(5) head.weight(3, 5) head.bias(3) ");
  all.clear();
  for (const auto& [name, shape] : layout(series())) all += name + shape_text(shape) + " ";
  EXPECT_EQ(all,
            "velocity.weight(2, 2) velocity.bias(2) field.1.weight(32, 4) field.1.bias(32) "
            "field.2.weight(2, 32) field.2.bias(2) ");
  all.clear();
  for (const auto& [name, shape] : layout(galerkin())) all += name + shape_text(shape) + " ";
  EXPECT_EQ(all,
            "field.1.weight(4, 16, 8) field.1.bias(4, 16) field.2.weight(4, 8, 16) field.2.bias(4, 8) "
            "field.3.weight(4, 5, 8) field.3.bias(4, 5) head.weight(3, 5) head.bias(3) ");
}

TEST(ModelSpec, parts_that_do_not_fit_are_named) {
  const auto complains = [](const char* expected, ModelSpec spec,
                            const std::function<void(ModelSpec&)>& change) {
    change(spec);
    const std::string message = complaint([&] { check(spec); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  complains("at least 2 labels, got 1", iris(), [](ModelSpec& s) { s.labels = {"one"}; });
  complains("for each of 3 column(s), got 1 and 3", iris(), [](ModelSpec& s) { s.input_scale.mean = {1}; });
  complains("positive deviations", iris(), [](ModelSpec& s) { s.input_scale.deviation[1] = 0; });
  complains("hidden layer must be from 1", iris(), [](ModelSpec& s) { s.field.hidden = {-4}; });
  complains("hidden layer must be from 1", iris(),
            [](ModelSpec& s) { s.field.hidden = {std::int64_t(1) << 60}; });
  complains("got 5 and 3; concatenate it", iris(),
            [](ModelSpec& s) { s.field.control = ControlKind::addition; });
  complains("did you mean `dopri5`", iris(), [](ModelSpec& s) { s.solver.method = "dopri"; });
  complains("no error estimate", iris(), [](ModelSpec& s) { s.solver.method = "rk4"; });
  complains("tolerances must be positive", iris(), [](ModelSpec& s) { s.solver.relative_tolerance = -1; });
  complains("not both", iris(), [](ModelSpec& s) { s.solver.steps = 3, s.solver.step_size = 1; });
  complains("fixed steps are the same for every sample", series(),
            [](ModelSpec& s) { s.solver.steps_per_sample = true; });
  complains("span of depth must go up", iris(), [](ModelSpec& s) { s.span.last = 0; });
  complains("order 2 or more", iris(), [](ModelSpec& s) { s.augmentation.velocities = Velocities::learned; });
  complains("has no targets", series(), [](ModelSpec& s) { s.targets = {"z"}; });
  complains("leave the control out", series(),
            [](ModelSpec& s) { s.field.control = ControlKind::concatenation; });
  complains("no head, no augmentation", series(), [](ModelSpec& s) { s.task = Task::density; });
}

TEST(ModelSpec, a_series_has_a_field_that_does_not_depend_on_time) {
  for (const DepthKind kind :
       {DepthKind::concat, DepthKind::galerkin, DepthKind::stacked, DepthKind::hyper}) {
    ModelSpec spec = series();
    spec.field.depth = {.kind = kind, .size = kind == DepthKind::concat ? 0 : 2};
    const std::string message = complaint([&] { check(spec); });
    EXPECT_EQ(
        message,
        text("windows of a series start at different times, so its field must not depend on time: make it "
             "invariant in depth, got ",
             name_of(kind)));
    EXPECT_EQ(complaint([&] { model_spec_from_json(to_json(spec)); }), message) << "a file says the same";
  }
}

TEST(ModelSpec, bad_json_is_one_sentence) {
  const auto complains = [](const std::string& expected, const std::string& json) {
    const std::string message = complaint([&] { model_spec_from_json(json); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  };
  complains("not JSON", "{");
  complains("must be an object", "[]");
  complains("no version", "{}");
  complains("of version 2, this fathom reads up to 1", R"({"version":2})");
  complains("unknown key `hiden` in the model's `field`; did you mean `hidden`?",
            R"({"version":1,"field":{"hiden":[1]}})");
  complains("did you mean `density`?", R"({"version":1,"task":"densty"})");
  complains("`hidden` in the model's `field` is of the wrong type",
            R"({"version":1,"field":{"hidden":[1.5]}})");
  complains("`order` in the model's `field` is of the wrong type",
            R"({"version":1,"field":{"order":1e300}})");
  complains("`inputs` in the model's description is of the wrong type", R"({"version":1,"inputs":[3]})");
  complains("nested too deeply", R"({"version":)" + std::string(1000, '['));
  complains("must have 2 numbers", R"({"version":1,"span":[1]})");
}

}  // namespace
}  // namespace fathom
