#include "toy_tables.hpp"

#include <charconv>

#include "fathom/data/annuli.hpp"
#include "fathom/data/toy_sets.hpp"
#include "fathom/data/trajectories.hpp"

namespace fathom::app {

namespace {

using torch::Tensor;

/// The shortest text that reads back as the same number.
template <class Number> void put(std::ostream& out, Number value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  out.write(digits, end - digits);
}

void write(std::ostream& out, const Labelled& set) {
  const Tensor inputs = set.inputs.contiguous(), labels = set.labels.to(torch::kInt64).contiguous();
  const std::int64_t dimensions = inputs.size(1);
  const float* coordinate = inputs.data_ptr<float>();
  if (dimensions == 2) {
    out << "x,y,";
  } else {
    for (std::int64_t i = 1; i <= dimensions; ++i) out << "x" << i << ",";
  }
  out << "label\n";
  for (std::int64_t row = 0; row < inputs.size(0); ++row) {
    for (std::int64_t i = 0; i < dimensions; ++i, out << ",") put(out, *coordinate++);
    out << labels.data_ptr<std::int64_t>()[row] << "\n";
  }
}

void write(std::ostream& out, const Trajectories& seen) {
  const Tensor times = seen.times.contiguous(), states = seen.states.contiguous();
  const double *time = times.data_ptr<double>(), *component = states.data_ptr<double>();
  out << "series,t";
  for (const std::string& name : seen.names) out << "," << name;
  for (std::int64_t series = 0; series < times.size(0); ++series) {
    for (std::int64_t point = 0; point < times.size(1); ++point) {
      out << "\ns" << series + 1 << ",";
      put(out, *time++);
      for (std::size_t i = 0; i < seen.names.size(); ++i) put(out << ",", *component++);
    }
  }
  out << "\n";
}

template <class Value> void set_if(Value& option, const std::optional<Value>& given) {
  if (given) option = *given;
}

template <class Options> Options points_of(const ToyRequest& request) {
  Options options;
  set_if(options.samples, request.samples);
  if constexpr (requires { options.noise; }) set_if(options.noise, request.noise);
  if constexpr (requires { options.deviation; }) set_if(options.deviation, request.noise);
  if constexpr (requires { options.classes; }) set_if(options.classes, request.classes);
  if constexpr (requires { options.dimensions; }) set_if(options.dimensions, request.dimensions);
  options.seed = request.seed;
  return options;
}

template <class Options> Options observed(const ToyRequest& request) {
  Options options;
  set_if(options.observed.series, request.series);
  set_if(options.observed.points, request.points);
  set_if(options.observed.duration, request.duration);
  set_if(options.observed.noise, request.noise);
  if (request.irregular) options.observed.times = ObservationTimes::irregular;
  options.observed.seed = request.seed;
  return options;
}

const std::vector<std::string> of_trajectories = {"--series", "--points", "--duration", "--irregular"};

}  // namespace

const std::vector<ToyTable>& toy_tables() {
  using Out = std::ostream&;
  using In = const ToyRequest&;
  static const std::vector<ToyTable> tables = {
      {"annuli",
       "two concentric rings, labels -1 and 1",
       false,
       {"--samples"},
       [](Out out, In in) { write(out, concentric_annuli(points_of<AnnuliOptions>(in))); }},
      {"spirals",
       "arms that wind around each other",
       false,
       {"--samples", "--classes"},
       [](Out out, In in) { write(out, nested_spirals(points_of<SpiralsOptions>(in))); }},
      {"moons",
       "two half circles that reach into each other",
       false,
       {"--samples"},
       [](Out out, In in) { write(out, half_moons(points_of<MoonsOptions>(in))); }},
      {"gaussians",
       "blobs on a circle",
       false,
       {"--samples", "--classes"},
       [](Out out, In in) { write(out, gaussians(points_of<GaussiansOptions>(in))); }},
      {"spheres",
       "two shells in any dimension",
       false,
       {"--samples", "--dimensions"},
       [](Out out, In in) { write(out, concentric_spheres(points_of<SpheresOptions>(in))); }},
      {"sine", "sine waves: x and its rate v", true, of_trajectories,
       [](Out out, In in) { write(out, sine_waves(observed<SineOptions>(in))); }},
      {"vanderpol", "VanDerPol's oscillator: x and its rate v", true, of_trajectories,
       [](Out out, In in) { write(out, van_der_pol(observed<VanDerPolOptions>(in))); }},
      {"lorenz", "Lorenz' chaotic convection: x, y, z", true, of_trajectories,
       [](Out out, In in) { write(out, lorenz(observed<LorenzOptions>(in))); }},
      {"pendulum", "a pendulum without friction: angle and speed", true, of_trajectories,
       [](Out out, In in) { write(out, pendulum(observed<PendulumOptions>(in))); }},
  };
  return tables;
}

}  // namespace fathom::app
