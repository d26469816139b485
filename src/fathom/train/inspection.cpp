#include "fathom/train/inspection.hpp"

#include "fathom/field/rate_of.hpp"
#include "fathom/model/products.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

std::vector<double> even_depths(const DepthSpan& span, std::int64_t count) {
  std::vector<double> depths;
  for (std::int64_t i = 0; i < count; ++i)
    depths.push_back(i + 1 == count ? span.last
                                    : span.first + (span.last - span.first) * double(i) / double(count - 1));
  return depths;
}

/// The parameters of a layer at a depth, for every kind of layer that a model of the command line has.
Theta theta_at(torch::nn::Module& layer, double s) {
  if (auto* galerkin = dynamic_cast<GalerkinLayer*>(&layer)) return galerkin->theta(s);
  if (auto* hyper = dynamic_cast<HyperLinearImpl*>(&layer)) return hyper->theta(s);
  const auto* linear = layer.as<torch::nn::Linear>();
  if (!linear) throw Error("a layer of the field is of an unknown kind");
  return {linear->weight, linear->bias};
}

std::vector<LayerCourse> layer_courses(ModelImpl& model, const std::vector<double>& depths) {
  std::vector<LayerCourse> courses;
  for (const auto& entry : model.named_children()["field"]->named_children()) {
    LayerCourse course{.layer = "field." + entry.key(), .varies = !entry.value()->as<torch::nn::Linear>()};
    for (double s : depths) {
      const Theta theta = theta_at(*entry.value(), s);
      course.weight.push_back(theta.weight.norm().item<double>());
      course.bias.push_back(theta.bias.norm().item<double>());
    }
    courses.push_back(std::move(course));
  }
  return courses;
}

/// The flow of the samples, (depths, samples, features), with its report.
Solution flow_of(ModelImpl& model, const Tensor& x, const std::vector<double>& depths) {
  if (model.spec().task != Task::density) return model.ode()->solve(x, depths);
  NeuralOde carrier(model.field(), NeuralOdeOptions{.solver = model.flow()->options().solver});
  return carrier->solve(x, depths);
}

Stability stability_at(ModelImpl& model, double depth, const Tensor& x, const Tensor& z) {
  const Tensor s = torch::scalar_tensor(depth, torch::kFloat64);
  Jacobians f;
  {
    const torch::AutoGradMode with_graph(true);
    f = jacobians([&](const Tensor& at, const Tensor&) { return rate_of(*model.field(), s, x, at); }, z, {});
  }
  const Tensor eigenvalues = torch::linalg_eigvals(f.state.detach().to(torch::kFloat64));
  const Tensor growth = std::get<0>(torch::real(eigenvalues).max(1));
  return {.depth = depth,
          .mean_growth = growth.mean().item<double>(),
          .worst_growth = growth.max().item<double>(),
          .frequency = torch::imag(eigenvalues).max().item<double>(),
          .mean_speed = f.rate.detach().norm(2, 1).mean().item<double>()};
}

}  // namespace

Inspection inspect(Model& model, const Tensor& inputs, const InspectOptions& options) {
  require(options.depths >= 2, "an inspection needs at least 2 depths, got ", options.depths);
  require(inputs.dim() == 2 && inputs.size(0) > 0,
          "an inspection needs at least one row of inputs, got shape ", inputs.sizes());
  const torch::NoGradGuard no_graph;
  const ModelSpec& spec = model->spec();
  Inspection found{.depths = even_depths(spec.span, options.depths)};
  for (const auto& [name, shape] : layout(spec)) {
    TensorFact fact{.name = name, .shape = shape, .numbers = 1};
    for (std::int64_t size : shape) fact.numbers *= size;
    found.numbers += fact.numbers;
    found.tensors.push_back(std::move(fact));
  }
  found.layers = layer_courses(*model, found.depths);

  const auto type = model->parameters().front().scalar_type();
  const Tensor x = standardised(inputs, spec.input_scale).to(type);
  const Solution flow = flow_of(*model, x, found.depths);
  found.report = flow.report();
  const std::int64_t samples = std::min(options.samples, x.size(0));
  for (std::size_t i = 0; i < found.depths.size(); ++i) {
    const Tensor z = flow.states[std::int64_t(i)].narrow(0, 0, samples);
    found.stability.push_back(stability_at(*model, found.depths[i], x.narrow(0, 0, samples), z));
  }
  return found;
}

Tensor typical_inputs(const ModelSpec& spec, std::int64_t count) {
  return unstandardised(torch::randn({count, spec.input_features()}, torch::kFloat64), spec.input_scale);
}

}  // namespace fathom
