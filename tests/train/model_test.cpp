/// A model is its specification and its tensors: what comes back from a file answers as what went in.
#include "fathom/train/model.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "fathom/runtime/model.hpp"
#include "fathom/support/whole_file.hpp"
#include "fathom/train/inspection.hpp"
#include "fathom/train/stored.hpp"
#include "train/specs.hpp"

namespace fathom {
namespace {

std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("fathom_model_test" + std::to_string(getpid()) + name);
}

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "no complaint";
}

/// Whatever the task answers with.
Tensor answers(Model& model, const Tensor& rows) {
  if (model->spec().task != Task::series) return model->predict(rows);
  return model->forecast(rows, {3.0, 3.1, 3.4});
}

TEST(Model, parameters_are_those_of_the_layout) {
  for (const auto& [name, spec] : testing_specs()) {
    const Model model = build_model(spec);
    std::vector<std::string> given, expected;
    for (const auto& entry : model->named_parameters())
      given.push_back(entry.key() + shape_text(entry.value().sizes().vec()));
    for (const auto& [tensor, shape] : layout(spec)) expected.push_back(tensor + shape_text(shape));
    std::sort(given.begin(), given.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(given, expected) << name;
  }
}

TEST(Model, comes_back_from_its_file_with_the_same_answers) {
  for (const auto& [name, spec] : testing_specs()) {
    torch::manual_seed(1);
    Model model = build_model(spec);
    const auto path = scratch(name + ".safetensors");
    save(path, model, {{"iterations", "17"}, {"fact", "\xC3\xA4"}});
    LoadedModel loaded = load(path);
    const Tensor rows = torch::randn({5, spec.input_features()}, torch::kFloat64) * 2 + 1;
    const Tensor before = answers(model, rows), after = answers(loaded.model, rows);
    EXPECT_TRUE(torch::equal(before, after)) << name << "\n" << before << after;
    EXPECT_TRUE(before.isfinite().all().item<bool>()) << name;
    EXPECT_EQ(loaded.facts.at("iterations"), "17");
    EXPECT_EQ(loaded.facts.size(), 2u);
    std::filesystem::remove(path);
  }
}

TEST(Model, answers_the_same_without_torch) {
  for (const auto& [name, spec] : testing_specs()) {
    if (spec.field.depth.kind == DepthKind::hyper) continue;
    torch::manual_seed(4);
    Model model = build_model(spec);
    {
      const torch::NoGradGuard no_graph;  // flows with something to do
      for (Tensor& parameter : model->parameters()) parameter.mul_(2);
    }
    const auto path = scratch(name + ".safetensors");
    save(path, model);
    const runtime::Model light = runtime::load(path);
    for (const std::int64_t count : {1, 5, 70}) {
      const Tensor rows = torch::randn({count, spec.input_features()}, torch::kFloat64) * 2 + 1;
      const std::span<const double> table(rows.data_ptr<double>(), std::size_t(rows.numel()));
      const bool series = spec.task == Task::series;
      const Tensor full = answers(model, rows);
      const runtime::Answer found =
          series ? light.solve_times(table, {3.0, 3.1, 3.4}) : light.solve_rows(table);
      EXPECT_EQ(found.report.evaluations, model->report().evaluations) << name;
      EXPECT_EQ(model->report().engine, "fused") << name << ": " << model->report().not_fused;
      ASSERT_EQ(std::int64_t(found.values.size()), full.numel()) << name;
      const Tensor values = torch::tensor(found.values, torch::kFloat64).view(full.sizes());
      const double tolerance = spec.precision == Precision::float32 ? 1e-5 : 1e-12;
      const double error = ((values - full).abs() / (1 + full.abs())).max().item<double>();
      EXPECT_LT(error, tolerance) << name << ", " << count << " rows";
    }
    std::filesystem::remove(path);
  }
}

TEST(Model, with_steps_of_each_sample_answers_a_row_alone_as_in_a_batch) {
  for (const auto& [name, spec] : testing_specs()) {
    if (!spec.solver.steps_per_sample) continue;
    torch::manual_seed(4);
    Model model = build_model(spec);
    const Tensor rows = torch::randn({9, spec.input_features()}, torch::kFloat64) * 2 + 1;
    const std::int64_t axis = spec.task == Task::series ? 1 : 0;
    const Tensor together = answers(model, rows);
    for (std::int64_t i = 0; i < 9; ++i) {
      const Tensor alone = answers(model, rows.narrow(0, i, 1));
      // torch sums the rows of a layer outside the field in another order, alone and among others.
      const double error = (together.narrow(axis, i, 1) - alone).abs().max().item<double>();
      EXPECT_LE(error, spec.head == HeadKind::none ? 0 : 1e-6) << name << ", row " << i;
    }
  }
}

TEST(Model, samples_the_same_density_without_torch) {
  for (const auto& [name, spec] : testing_specs()) {
    if (spec.task != Task::density) continue;
    torch::manual_seed(5);
    Model model = build_model(spec);
    const auto path = scratch(name + ".safetensors");
    save(path, model);
    constexpr std::int64_t count = 4000;
    const std::vector<double> drawn = runtime::load(path).sample(count, 7);
    const Tensor light = torch::tensor(drawn, torch::kFloat64).view({count, 3}), full = model->sample(count);
    const Tensor error = full.std(0) / std::sqrt(double(count));  // of each mean
    EXPECT_LT(((light.mean(0) - full.mean(0)) / error).abs().max().item<double>(), 5) << name;
    EXPECT_LT((light.std(0) / full.std(0) - 1).abs().max().item<double>(), 0.1) << name;
    EXPECT_EQ(drawn, runtime::load(path).sample(count, 7)) << "a seed gives the same samples";
    EXPECT_NE(drawn, runtime::load(path).sample(count, 8));
    std::filesystem::remove(path);
  }
}

TEST(Model, that_the_runtime_cannot_run_is_named) {
  for (const auto& [name, spec] : testing_specs()) {
    if (spec.field.depth.kind != DepthKind::hyper) continue;
    const auto path = scratch(".safetensors");
    save(path, build_model(spec));
    EXPECT_NE(complaint([&] {
                runtime::load(path);
              }).find("needs the full library, fathom::fathom: weights from a hypernetwork"),
              std::string::npos);
    std::filesystem::remove(path);
  }
}

TEST(Model, every_parameter_learns) {
  for (const auto& [name, spec] : testing_specs()) {
    torch::manual_seed(2);
    Model model = build_model(spec);
    const Tensor x =
        torch::randn({7, spec.input_features()}, model->parameters().front().options().requires_grad(false));
    const bool series = spec.task == Task::series;
    const Tensor out = series ? model->trajectory(x, {spec.span.first, spec.span.last}) : model->forward(x);
    out.square().sum().backward();
    for (const auto& entry : model->named_parameters()) {
      ASSERT_TRUE(entry.value().grad().defined()) << name << " " << entry.key();
    }
  }
}

TEST(Model, a_copy_is_equal_and_independent) {
  Model model = build_model(testing_specs().front().second);
  const Tensor rows = torch::randn({3, 3}, torch::kFloat64);
  const Tensor before = model->predict(rows);
  Model copy(std::dynamic_pointer_cast<ModelImpl>(model->clone()));
  EXPECT_TRUE(torch::equal(copy->predict(rows), before));
  {
    const torch::NoGradGuard no_graph;
    for (Tensor& parameter : copy->parameters()) parameter.zero_();
  }
  EXPECT_FALSE(torch::equal(copy->predict(rows), before));
  EXPECT_TRUE(torch::equal(model->predict(rows), before));
}

TEST(Model, answers_are_in_the_units_of_the_data) {
  ModelSpec spec{
      .task = Task::regression, .inputs = {"a"}, .targets = {"y"}, .precision = Precision::float64};
  torch::manual_seed(3);
  Model plain = build_model(spec);
  spec.input_scale = {.mean = {100}, .deviation = {10}};
  spec.target_scale = {.mean = {-5}, .deviation = {0.5}};
  torch::manual_seed(3);
  Model scaled = build_model(spec);
  const Tensor x = torch::tensor({{0.3}, {-1.0}}, torch::kFloat64);
  EXPECT_TRUE(torch::allclose(scaled->predict(x * 10 + 100), plain->predict(x) * 0.5 - 5, 1e-12, 1e-12));

  ModelSpec density{
      .task = Task::density, .inputs = {"a", "b"}, .head = HeadKind::none, .precision = Precision::float64};
  density.field.activation = Activation::softplus;
  density.input_scale = {.mean = {3, -2}, .deviation = {2, 0.25}};
  Model flow = build_model(density);
  // Its integral over the plane is 1, in the units of the data.
  const Tensor a = torch::linspace(3 - 16, 3 + 16, 161, torch::kFloat64),
               b = torch::linspace(-4, 0, 161, torch::kFloat64);
  const auto grid = torch::meshgrid({a, b}, "ij");
  const Tensor points = torch::stack({grid[0].flatten(), grid[1].flatten()}, 1);
  const double total = flow->predict(points).exp().sum().item<double>() * (32.0 / 160) * (4.0 / 160);
  EXPECT_NEAR(total, 1, 1e-3);
  const Tensor drawn = flow->sample(2000);
  EXPECT_NEAR(drawn.select(1, 1).mean().item<double>(), -2, 0.5);
}

TEST(Model, questions_of_another_task_are_refused) {
  Model classifier = build_model(testing_specs().front().second);
  EXPECT_NE(complaint([&] { classifier->sample(3); }).find("only the model of a density"), std::string::npos);
  EXPECT_NE(complaint([&] {
              classifier->forecast(torch::zeros({1, 3}), {0, 1});
            }).find("only the model of a series"),
            std::string::npos);
  EXPECT_NE(complaint([&] {
              classifier->predict(torch::zeros({1, 4}));
            }).find("needs 3 columns, got shape [1, 4]"),
            std::string::npos);
}

TEST(Model, files_that_are_not_models_are_refused) {
  const auto path = scratch(".safetensors");
  torch::nn::Linear linear(2, 3);
  save_module(path, *linear);
  for (const std::string& message :
       {complaint([&] { load(path); }), complaint([&] { runtime::load(path); })}) {
    EXPECT_NE(message.find("no description of a model"), std::string::npos) << message;
    EXPECT_NE(message.find("saved by save_module(): weights alone"), std::string::npos) << message;
    EXPECT_NE(message.find("build_model() + save() writes a model file"), std::string::npos) << message;
  }

  ModelSpec spec = testing_specs().front().second;
  Model model = build_model(spec);
  save(path, model);
  TensorFile file = read_safetensors(path);
  const auto rewritten = [&](const std::function<void(TensorFile&)>& change) {
    TensorFile changed = file;
    change(changed);
    write_safetensors(path, changed);
    return complaint([&] { load(path); });
  };
  EXPECT_NE(rewritten([](TensorFile& f) {
              f.tensors.erase("head.bias");
            }).find("tensor `head.bias` of shape (3) is missing"),
            std::string::npos);
  EXPECT_NE(rewritten([](TensorFile& f) {
              f.tensors["head.bias"] = stored_tensor<float>({1}, std::vector<float>{1});
            }).find("tensor `head.bias` must have shape (3), got (1)"),
            std::string::npos);
  EXPECT_NE(rewritten([](TensorFile& f) {
              f.tensors["more"] = stored_tensor<float>({1}, std::vector<float>{1});
            }).find("tensor `more` is not one of the model's"),
            std::string::npos);
  EXPECT_NE(rewritten([](TensorFile& f) {
              std::string& json = f.metadata["fathom.model"];
              json.replace(json.find("\"version\": 1"), 12, "\"version\": 9");
            }).find("of version 9, this fathom reads up to 1; use a newer fathom"),
            std::string::npos);
  // A specification that asks for the memory of the world is refused before anything is built.
  EXPECT_NE(rewritten([](TensorFile& f) {
              std::string& json = f.metadata["fathom.model"];
              json.replace(json.find("\"hidden\": ["), 11, "\"hidden\": [16777216, 16777216, ");
            }).find("must have shape"),
            std::string::npos);
  std::filesystem::remove(path);
}

TEST(Model, any_module_is_saved_and_filled_from_a_plain_file) {
  const auto path = scratch(".safetensors");
  torch::nn::Sequential from(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3)),
      to(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3));
  from->forward(torch::randn({8, 2}));
  save_module(path, *from, {{"experiment", "annuli"}});
  load_into(*to, path);
  for (const auto& entry : from->named_parameters())
    EXPECT_TRUE(torch::equal(entry.value(), to->named_parameters()[entry.key()]));
  for (const auto& entry : from->named_buffers())
    EXPECT_TRUE(torch::equal(entry.value(), to->named_buffers()[entry.key()]));
  EXPECT_EQ(read_safetensors(path).metadata.at("experiment"), "annuli");

  torch::nn::Sequential other(torch::nn::Linear(2, 4), torch::nn::BatchNorm1d(4));
  const Tensor weight = other->parameters().front().clone();
  EXPECT_NE(complaint([&] { load_into(*other, path); }).find("must have shape (4), got (3)"),
            std::string::npos);
  EXPECT_TRUE(torch::equal(weight, other->parameters().front())) << "a module was changed in part";
  torch::nn::Sequential shorter(torch::nn::Linear(2, 3));
  EXPECT_NE(complaint([&] { load_into(*shorter, path); }).find("that the model has not"), std::string::npos);
  std::filesystem::remove(path);
}

/// z' = A z with eigenvalues -0.5 +- 2i.
Model spiral() {
  const ModelSpec spec{.task = Task::series,
                       .inputs = {"x", "y"},
                       .field = {.hidden = {}},
                       .head = HeadKind::none,
                       .precision = Precision::float64};
  Model model = build_model(spec);
  const torch::NoGradGuard no_graph;
  model->named_parameters()["field.1.weight"].copy_(torch::tensor({{-0.5, -2.0}, {2.0, -0.5}}));
  model->named_parameters()["field.1.bias"].zero_();
  return model;
}

TEST(Inspection, finds_the_eigenvalues_of_a_linear_flow) {
  Model model = spiral();
  const Inspection found = inspect(model, torch::tensor({{1.0, 0.0}, {0.0, 2.0}}, torch::kFloat64));
  ASSERT_EQ(found.stability.size(), 5u);
  for (const Stability& at : found.stability) {
    EXPECT_NEAR(at.mean_growth, -0.5, 1e-12);
    EXPECT_NEAR(at.worst_growth, -0.5, 1e-12);
    EXPECT_NEAR(at.frequency, 2, 1e-12);
    EXPECT_NEAR(at.mean_speed, 1.5 * std::sqrt(4.25) * std::exp(-0.5 * at.depth), 1e-3);
  }
  EXPECT_EQ(found.numbers, 6);
  EXPECT_GT(found.report.evaluations, 0);
}

TEST(Inspection, follows_the_flow_into_the_bend_of_the_field) {
  // z' = tanh(z) from z = 1:  sinh(z(s)) = sinh(1) e^s,  df/dz = 1 - tanh(z)^2
  ModelSpec spec{.task = Task::regression,
                 .inputs = {"x"},
                 .targets = {"y"},
                 .field = {.hidden = {1}},
                 .head = HeadKind::none,
                 .precision = Precision::float64};
  spec.solver.relative_tolerance = spec.solver.absolute_tolerance = 1e-10;
  Model model = build_model(spec);
  {
    const torch::NoGradGuard no_graph;
    for (Tensor& parameter : model->parameters()) parameter.fill_(parameter.dim() == 2 ? 1 : 0);
  }
  for (const Stability& at : inspect(model, torch::ones({3, 1}, torch::kFloat64)).stability) {
    const double z = std::asinh(std::sinh(1) * std::exp(at.depth));
    EXPECT_NEAR(at.mean_growth, 1 - std::tanh(z) * std::tanh(z), 1e-8);
    EXPECT_NEAR(at.mean_speed, std::tanh(z), 1e-8);
    EXPECT_EQ(at.frequency, 0);
  }
}

TEST(Inspection, shows_weights_over_depth) {
  ModelSpec spec{.task = Task::regression,
                 .inputs = {"x"},
                 .targets = {"y"},
                 .field = {.hidden = {}},
                 .precision = Precision::float64};
  spec.field.depth = {.kind = DepthKind::galerkin, .basis = BasisKind::polynomial, .size = 1};
  Model model = build_model(spec);
  {
    const torch::NoGradGuard no_graph;
    model->named_parameters()["field.1.weight"].copy_(torch::tensor({1.0, 4.0}).view({2, 1, 1}));  // 1 + 4 s
    model->named_parameters()["field.1.bias"].copy_(torch::tensor({0.0, -2.0}).view({2, 1}));
  }
  const Inspection found = inspect(model, torch::ones({1, 1}, torch::kFloat64), {.depths = 3});
  EXPECT_TRUE(found.layers.at(0).varies);
  EXPECT_EQ(found.layers[0].weight, (std::vector<double>{1, 3, 5}));
  EXPECT_EQ(found.layers[0].bias, (std::vector<double>{0, 1, 2}));
}

TEST(Inspection, works_for_every_kind_of_model) {
  for (const auto& [name, spec] : testing_specs()) {
    Model model = build_model(spec);
    const Inspection found = inspect(model, typical_inputs(spec, 9));
    EXPECT_EQ(found.tensors.size(), layout(spec).size()) << name;
    EXPECT_EQ(found.layers.size(), spec.field.hidden.size() + 1) << name;
    for (const Stability& at : found.stability)
      EXPECT_TRUE(std::isfinite(at.worst_growth) && at.worst_growth >= at.mean_growth) << name;
  }
}

TEST(Model, whose_file_holds_half_numbers_answers_as_without_torch) {
  for (const torch::ScalarType type : {torch::kFloat16, torch::kBFloat16}) {
    for (const auto& [name, spec] : testing_specs()) {
      if (spec.field.depth.kind == DepthKind::hyper) continue;
      torch::manual_seed(6);
      Model model = build_model(spec);
      const auto path = scratch(name + ".safetensors");
      save(path, model);
      TensorFile file = read_safetensors(path);
      for (const auto& entry : model->named_parameters())
        file.tensors[entry.key()] = stored(entry.value().to(type));
      write_safetensors(path, file);
      Model loaded = load(path).model;
      for (const auto& entry : model->named_parameters()) {
        const Tensor rounded = entry.value().to(type).to(entry.value().scalar_type());
        EXPECT_TRUE(torch::equal(loaded->named_parameters()[entry.key()], rounded)) << name << entry.key();
      }
      const Tensor rows = torch::randn({5, spec.input_features()}, torch::kFloat64) * 2 + 1;
      const std::span<const double> table(rows.data_ptr<double>(), std::size_t(rows.numel()));
      const runtime::Model light = runtime::load(path);
      const runtime::Answer expected =
          spec.task == Task::series ? light.solve_times(table, {3.0, 3.1, 3.4}) : light.solve_rows(table);
      const Tensor full = answers(loaded, rows);
      const Tensor values = torch::tensor(expected.values, torch::kFloat64).view(full.sizes());
      EXPECT_TRUE(torch::allclose(full, values, 1e-5, 1e-5)) << name << "\n" << full << values;
      std::filesystem::remove(path);
    }
  }
}

TEST(Model, is_filled_from_a_state_dict_of_half_numbers) {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::Linear(3, 1));
  load_into(*net, std::filesystem::path(FATHOM_SOURCE_DIR) / "fuzz/corpus/state_dict/good-half.pt");
  EXPECT_TRUE(torch::equal(net->named_parameters()["0.weight"],
                           torch::tensor({{0.5, -1.0}, {0.0999755859375, 65504.0}, {2.0, 0.0}})));
  EXPECT_TRUE(
      torch::equal(net->named_parameters()["1.weight"],
                   torch::tensor({{0.10009765625, 3e38, -2.0}}).to(torch::kBFloat16).to(torch::kFloat32)));
}

TEST(Model, of_half_numbers_is_stored_with_the_same_bits) {
  for (const torch::ScalarType type :
       {torch::kFloat16, torch::kBFloat16, torch::kInt8, torch::kInt16, torch::kBool}) {
    const Tensor tensor = torch::arange(-3, 3, torch::kFloat32).to(type).view({2, 3});
    EXPECT_TRUE(torch::equal(restored(stored(tensor)), tensor)) << type;
  }
}

TEST(Model, is_filled_from_a_state_dict_of_torch) {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3));
  load_into(*net, std::filesystem::path(FATHOM_SOURCE_DIR) / "fuzz/corpus/state_dict/good-sequential.pt");
  const Tensor expected = torch::tensor({{0.0, 3.0}, {1.0, 4.0}, {2.0, 5.0}});
  EXPECT_TRUE(torch::equal(net->named_parameters()["0.weight"], expected));
}

}  // namespace
}  // namespace fathom
