#include "fathom/program_field.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "fathom/fused/combine.hpp"
#include "fathom/fused/network.hpp"
#include "fathom/random.hpp"
#include "fathom/session/layers.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

std::int64_t Parameter::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t(1), std::multiplies<>());
}

ProgramField::ProgramField(std::shared_ptr<const fused::Program> program, std::vector<Parameter> parameters,
                           std::vector<std::int64_t> inputs, std::vector<double> break_points)
    : program_(std::move(program)),
      parameters_(std::move(parameters)),
      inputs_(std::move(inputs)),
      break_points_(std::move(break_points)) {
  require(program_ != nullptr, "a field needs a program, got none");
  for (const fused::Matrix& matrix : program_->matrices) {
    for (const std::int32_t tensor : {matrix.weight, std::max(matrix.bias, 0)})
      require(std::size_t(tensor) < parameters_.size(), "the program reads parameter ", tensor, " of ",
              parameters_.size());
  }
  for (const fused::SampleInput& input : program_->inputs) {
    const std::size_t place = std::size_t(input.tensor) - parameters_.size();
    require(place < inputs_.size(), "the program reads input ", place, " of ", inputs_.size());
    require(inputs_[place] == input.rows.count, "input ", place, " of the program has ", input.rows.count,
            " features, and ", inputs_[place], " in the list");
  }
}

std::int64_t ProgramField::features() const { return program_->features(); }
std::int64_t ProgramField::running_losses() const { return program_->loss_rows; }

std::int64_t ProgramField::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.size();
  return count;
}

bool ProgramField::operator==(const ProgramField& other) const {
  return are_alike(*program_, *other.program_) && parameters_ == other.parameters_ &&
         inputs_ == other.inputs_ && break_points_ == other.break_points_;
}

namespace {

using fused::Builder;
using fused::Network;
using fused::Rows;

/// The running losses of a program whose rate is known.
void give_running_losses(Builder& build, const NetworkOptions& options, Rows rate, const Network& net) {
  for (std::size_t k = 0; k < options.running.size(); ++k) {
    const std::int32_t place = std::int32_t(k);
    switch (options.running[k]) {
      case Running::path_length: build.give_loss(place, build.norm(rate)); break;
      case Running::kinetic_energy: build.give_loss(place, build.squares(rate)); break;
      case Running::divergence: build.give_loss(place, net.divergence()); break;
      case Running::tracking: {
        require(options.target.size == options.features && options.target.values && options.target.slopes,
                "`tracking` needs a `target` with values and slopes for each of the ", options.features,
                " features of the state, got ", options.target.size);
        const Rows target = build.signal(
            {.size = options.target.size, .values = options.target.values, .slopes = options.target.slopes});
        build.give_loss(place, build.distance(build.state(), target));
        break;
      }
    }
  }
}

std::vector<double> both(std::vector<double> first, const std::vector<double>& second) {
  first.insert(first.end(), second.begin(), second.end());
  std::sort(first.begin(), first.end());
  first.erase(std::unique(first.begin(), first.end()), first.end());
  return first;
}

void check(const NetworkOptions& options) {
  using session::most_features;
  require(options.signal.size == 0 || (options.signal.values && options.signal.slopes),
          "a `signal` needs values and slopes, got ", options.signal.size, " without");
  require(options.features >= 1 && options.features <= most_features, "`features` of the state must be 1 to ",
          most_features, ", got ", options.features);
  require(options.inputs >= 0 && options.inputs <= most_features, "`inputs` must be 0 to ", most_features,
          ", got ", options.inputs);
  require(!options.layers.empty(), "a network needs at least one layer, got none");
  require(options.order >= 1 && options.features % options.order == 0, "`order` must divide the ",
          options.features, " features of the state, got ", options.order);
  require(options.layers.back().features == options.features / options.order, "the last layer must have ",
          options.features / options.order, " features, got ", options.layers.back().features);
  for (const Running running : options.running) {
    require(running != Running::divergence || options.running.size() == 1,
            "the divergence is integrated alone, got ", options.running.size(), " running losses");
    require(running != Running::divergence || options.order == 1,
            "the divergence is that of a field of order 1, got ", options.order);
  }
}

}  // namespace

ProgramField network_field(const NetworkOptions& options) {
  check(options);
  const bool with_divergence = !options.running.empty() && options.running.front() == Running::divergence;
  Builder build(std::int32_t(options.features), std::int32_t(options.running.size()));
  session::Layers layers(build, options.layers, options.features + options.inputs + options.signal.size);
  std::vector<Rows> argument_parts = {build.state()};
  if (options.inputs > 0)
    argument_parts.push_back(
        build.input(std::int32_t(layers.parameters().size()), std::int32_t(options.inputs)));
  if (options.signal.size > 0)
    argument_parts.push_back(build.signal(
        {.size = options.signal.size, .values = options.signal.values, .slopes = options.signal.slopes}));
  const Rows argument = argument_parts.size() > 1 ? build.joined(argument_parts) : build.state();
  Network net(build, argument, with_divergence ? std::int32_t(options.features) : 0);
  layers.write(net);
  Rows rate = net.output();
  if (options.order > 1) {
    const std::int32_t block = std::int32_t(options.features / options.order);
    rate = build.joined({Builder::part(build.state(), block, std::int32_t(options.features) - block), rate});
  }
  give_running_losses(build, options, rate, net);
  build.give(rate);
  std::vector<std::int64_t> inputs;
  if (options.inputs > 0) inputs.push_back(options.inputs);
  return {std::make_shared<fused::Program>(std::move(build).finish(/*passes_cheap_rows=*/true)),
          layers.parameters(), std::move(inputs), both(layers.break_points(), options.signal.break_points)};
}

namespace {

std::vector<std::int64_t> shared_inputs(const ProgramField& f, const ProgramField& g) {
  const auto &of_f = f.inputs(), &of_g = g.inputs();
  for (std::size_t n = 0; n < std::min(of_f.size(), of_g.size()); ++n)
    require(of_f[n] == of_g[n], "fields that are combined share their inputs, but input ", n, " has ",
            of_f[n], " features in one and ", of_g[n], " in the other");
  return of_f.size() > of_g.size() ? of_f : of_g;
}

ProgramField combined(const ProgramField& f, const ProgramField& g, fused::OpKind how) {
  require(f.features() == g.features(), "fields are combined where their states have the same features, got ",
          f.features(), " and ", g.features());
  require(f.running_losses() == 0 && g.running_losses() == 0,
          "fields with running losses cannot be combined; combine them without, got ", f.running_losses(),
          " and ", g.running_losses());
  std::vector<Parameter> parameters = f.parameters();
  for (const Parameter& parameter : g.parameters()) {
    const auto is_alike = [&](const Parameter& other) { return other.name == parameter.name; };
    require(std::none_of(f.parameters().begin(), f.parameters().end(), is_alike),
            "both fields have a parameter `", parameter.name, "`; give one a name: named(\"part\", field)");
    parameters.push_back(parameter);
  }
  fused::Program program = fused::combined(
      *f.program(), *g.program(), how,
      {.f_count = std::int32_t(f.parameters().size()), .g_count = std::int32_t(g.parameters().size())});
  return {std::make_shared<fused::Program>(std::move(program)), std::move(parameters), shared_inputs(f, g),
          both(f.break_points(), g.break_points())};
}

}  // namespace

ProgramField operator+(const ProgramField& f, const ProgramField& g) {
  return combined(f, g, fused::OpKind::add);
}
ProgramField operator*(const ProgramField& f, const ProgramField& g) {
  return combined(f, g, fused::OpKind::multiply);
}

ProgramField named(const std::string& name, const ProgramField& field) {
  std::vector<Parameter> parameters = field.parameters();
  for (Parameter& parameter : parameters) parameter.name = name + "." + parameter.name;
  return {field.program(), std::move(parameters), field.inputs(), field.break_points()};
}

OwnBasis sampled(std::span<const double> depths, std::span<const double> values) {
  require(!depths.empty() && !values.empty() && values.size() % depths.size() == 0,
          "a sampled signal needs as many values for each depth, got ", values.size(), " for ", depths.size(),
          " depths");
  require(std::adjacent_find(depths.begin(), depths.end(), std::greater_equal<>()) == depths.end(),
          "the depths of a sampled signal must increase");
  const std::size_t size = values.size() / depths.size();
  struct Table {
    std::vector<double> depths, values;
  };
  const auto table =
      std::make_shared<const Table>(Table{{depths.begin(), depths.end()}, {values.begin(), values.end()}});
  // On the piece that begins at the last knot below s: at a break point a stage is evaluated just inside its own piece.
  const auto piece = [table, size](double s, bool wants_slope) {
    const auto& knots = table->depths;
    const std::size_t next = std::size_t(std::upper_bound(knots.begin(), knots.end(), s) - knots.begin());
    std::vector<double> answer(size);
    for (std::size_t n = 0; n < size; ++n) {
      const auto at = [&](std::size_t knot) { return table->values[knot * size + n]; };
      const bool is_outside = next == 0 || next == knots.size();
      const double slope = is_outside ? 0 : (at(next) - at(next - 1)) / (knots[next] - knots[next - 1]);
      const double begin = next == 0 ? at(0) : at(next - 1);
      answer[n] = wants_slope ? slope : is_outside ? begin : begin + slope * (s - knots[next - 1]);
    }
    return answer;
  };
  return {.size = std::int32_t(size),
          .values = [piece](double s) { return piece(s, false); },
          .slopes = [piece](double s) { return piece(s, true); },
          .break_points = {depths.begin(), depths.end()}};
}

template <class T>
std::vector<T> initial_parameters(const std::vector<Parameter>& parameters, std::uint64_t seed) {
  std::vector<T> numbers;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Parameter& parameter = parameters[p];
    const Random random(seed, p);
    const std::size_t functions = std::max<std::size_t>(1, parameter.coefficients.size());
    const std::size_t size = std::size_t(parameter.size()) / functions;
    for (std::size_t j = 0; j < functions; ++j) {
      const double share = parameter.coefficients.empty() ? 1 : parameter.coefficients[j];
      for (std::size_t n = 0; n < size; ++n)
        numbers.push_back(T(share * parameter.bound * (2 * random.uniform(n) - 1)));
    }
  }
  return numbers;
}

template std::vector<float> initial_parameters(const std::vector<Parameter>&, std::uint64_t);
template std::vector<double> initial_parameters(const std::vector<Parameter>&, std::uint64_t);

}  // namespace fathom
