#include "report/sample_page.hpp"

#include <cmath>
#include <functional>

#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

constexpr double pi = 3.14159265358979323846;

std::vector<double> spaced(double low, double high, std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(low + (high - low) * double(i) / double(count - 1));
  return values;
}

std::vector<double> mapped(const std::vector<double>& x, const std::function<double(double)>& f) {
  std::vector<double> y;
  for (const double value : x) y.push_back(f(value));
  return y;
}

Grid grid(Range x, Range y, std::size_t size, const std::function<double(double, double)>& f) {
  Grid result{.x = x, .y = y, .columns = size, .rows = size};
  for (const double b : spaced(y.low, y.high, size)) {
    for (const double a : spaced(x.low, x.high, size)) result.values.push_back(f(a, b));
  }
  return result;
}

/// z' = -2 (z + x) reflects every input; z' = -z contracts.
Figure trajectories() {
  DepthPanel contracting{.title = "vanilla", .trajectories = {}},
      reflecting{.title = "data-controlled", .trajectories = {}};
  const auto s = spaced(0, 1, 50);
  for (const double x : spaced(-1, 1, 9)) {
    contracting.trajectories.push_back({s, mapped(s, [&](double t) { return x * std::exp(-t); }), x > 0});
    reflecting.trajectories.push_back(
        {s, mapped(s, [&](double t) { return x * (2 * std::exp(-4 * t) - 1); }), x > 0});
  }
  contracting.slopes = grid({0, 1}, {-1.1, 1.1}, 24, [](double, double z) { return -z; });
  reflecting.references.push_back({s, mapped(s, [](double t) { return 0.5 * std::cos(pi * t); })});
  return depth_trajectories({.title = "Crossing",
                             .idea = "Trajectories of one field never cross.",
                             .finding = "Contracted to 0.37."},
                            {.labels = {"x < 0", "x > 0"}, .panels = {contracting, reflecting}});
}

VectorGrid rotation(double speed) {
  const Range side{-2.2, 2.2};
  const Grid u = grid(side, side, 20, [&](double x, double y) { return -speed * y - 0.3 * x; });
  const Grid v = grid(side, side, 20, [&](double x, double y) { return speed * x - 0.3 * y; });
  return {.x = side, .y = side, .columns = 20, .rows = 20, .u = u.values, .v = v.values};
}

FlowPanel spiralling(const std::string& title, double speed) {
  FlowPanel panel{.title = title, .states = {}, .labels = {}};
  constexpr std::size_t samples = 60, frames = 21;
  for (std::size_t frame = 0; frame < frames; ++frame) {
    const double s = double(frame) / (frames - 1), shrink = std::exp(-0.3 * s);
    for (std::size_t i = 0; i < samples; ++i) {
      const double radius = i % 2 ? 2 : 1, angle = 2.4 * double(i) + speed * s;
      panel.states.push_back(shrink * radius * std::cos(angle));
      panel.states.push_back(shrink * radius * std::sin(angle));
    }
  }
  for (std::size_t i = 0; i < samples; ++i) panel.labels.push_back(int(i % 2));
  panel.fields = {rotation(speed)};
  return panel;
}

Figure flows() {
  FlowPanel varying = spiralling("depth-varying", -1);
  varying.fields = {rotation(-1), rotation(-0.2), rotation(1)};
  return plane_flow(
      {.title = "Flow",
       .idea = "Samples move along the field.",
       .finding = "Everything turned by 57 degrees."},
      {.labels = {"inner", "outer"},
       .panels = {spiralling("slow", 1), spiralling("fast", 3), varying, spiralling("still", 0.1)}});
}

Figure decisions() {
  const Range side{-2.5, 2.5};
  Points rings;
  for (int i = 0; i < 80; ++i) {
    const double radius = i % 2 ? 2 : 1;
    rings.x.push_back(radius * std::cos(2.4 * i));
    rings.y.push_back(radius * std::sin(2.4 * i));
    rings.labels.push_back(i % 2);
  }
  const auto closed = grid(side, side, 60, [](double x, double y) { return std::hypot(x, y) - 1.5; });
  const auto slit = grid(side, side, 60, [](double x, double y) {
    return std::min(std::hypot(x, y) - 1.5, std::max(std::abs(y) - 0.2, -x) * 2);
  });
  return decision_map(
      {.title = "Boundary", .idea = "Only a torn plane separates rings.", .finding = "One closed disc."},
      {.labels = {"inner", "outer"},
       .panels = {{"vanilla", slit, rings}, {"data-controlled", closed, rings}}});
}

Figure parameters() {
  const auto s = spaced(0, 1, 100);
  ParameterPanel smooth{"Galerkin", s, {}}, stacked{"stacked", s, {}};
  for (int i = 1; i <= 6; ++i) {
    smooth.components.push_back(mapped(s, [&](double t) { return std::sin(2 * pi * t + i) / i; }));
    stacked.components.push_back(mapped(s, [&](double t) { return std::sin(std::floor(5 * t) * i) / i; }));
  }
  return parameters_over_depth(
      {.title = "Parameters over depth", .idea = "Smooth or in pieces.", .finding = "Six components."},
      {.panels = {smooth, stacked}});
}

Figure densities() {
  const auto z = spaced(-3, 3, 120), s = spaced(0, 1, 40);
  const auto bell = [&](double mean) {
    return mapped(z,
                  [&](double t) { return std::exp(-(t - mean) * (t - mean) / 0.18) / std::sqrt(0.18 * pi); });
  };
  const auto condition = [&](const std::string& label, double from) {
    DensityCondition result{.label = label,
                            .prior = {z, bell(from)},
                            .trajectories = {},
                            .posterior = {z, bell(-0.95 * from)},
                            .target = {z, bell(-from)}};
    for (const double offset : spaced(-0.5, 0.5, 12))
      result.trajectories.push_back(
          {s, mapped(s, [&](double t) { return from * std::cos(pi * t) + offset; })});
    return result;
  };
  return density_flow(
      {.title = "Conditional flow", .idea = "Two priors exchange their places.", .finding = "KL 0.003."},
      {.panels = {{"data-controlled", {condition("from -1", -1), condition("from 1", 1)}}}});
}

Figure depths() {
  const auto x = spaced(-1, 1, 30);
  return learned_depth(
      {.title = "Learned depth", .idea = "Each input chooses its depth.", .finding = "Between 1 and 3."},
      {.lines = {{.name = "g(x)",
                  .x = x,
                  .y = mapped(x, [](double t) { return 2 + std::tanh(3 * t); }),
                  .points = true}}});
}

Figure course() {
  const auto k = spaced(1, 1000, 1000);
  const auto model = [&](const std::string& name, double rate) {
    return TrainingCurve{
        .model = name,
        .iterations = k,
        .loss = mapped(k, [&](double i) { return std::exp(-rate * i) + 0.01 + 0.002 * std::sin(i); }),
        .evaluations = mapped(k, [&](double i) { return 26 + 6 * std::floor(i * rate); }),
        .backward_evaluations = mapped(k, [&](double i) { return 32 + 6 * std::floor(1.5 * i * rate); })};
  };
  return training_curves(
      {.title = "Training", .idea = "Loss falls, evaluations rise.", .finding = "0.01 in the end."},
      {model("vanilla", 0.003), model("data-controlled", 0.01)});
}

Figure heat() {
  const auto wave = grid({1, 200}, {0, 1}, 40,
                         [](double epoch, double s) { return std::exp(-epoch / 80) * std::sin(6 * s); });
  return heat_map({.title = "Functional gradient",
                   .idea = "Where in depth the loss wants change.",
                   .finding = "It fades."},
                  {.panels = {{"first weight", wave}},
                   .value_title = "delta ell / delta theta, in units of its largest value"});
}

Figure slope() {
  const std::vector<double> layers = {2, 4, 8, 16, 32, 64};
  return lines({.title = "Deep limit",
                .idea = "The error of a ResNet falls with its depth.",
                .finding = "Slope -1.0."},
               {.panels = {{.title = "",
                            .lines = {{.name = "ResNet",
                                       .x = layers,
                                       .y = mapped(layers, [](double n) { return 0.8 / n; }),
                                       .deviation = mapped(layers, [](double n) { return 0.2 / n; }),
                                       .points = true},
                                      {.name = "slope -1",
                                       .x = layers,
                                       .y = mapped(layers, [](double n) { return 1 / n; }),
                                       .dashed = true}}}},
                .x = {"layers", true},
                .y = {"error", true}});
}

Figure measures() {
  return comparison(
      {.title = "Regularisers",
       .idea = "Shorter paths need fewer evaluations.",
       .finding = "NFE fell by half."},
      {.models = {"none", "kinetic energy", "terminal speed, squared and summed over all samples of a batch"},
       .measures = {{.title = "accuracy of the answers on rows held out",
                     .values = {0.99, 0.98, 0.97},
                     .deviations = {0.004, 0.006, 0.01},
                     .threshold = 0.95},
                    {.title = "NFE", .values = {62, 32, 38}},
                    {.title = "path length", .values = {2.1, 0.9, 1.4}, .deviations = {0.2, 0.1, 0.2}}}});
}

Figure mistakes() {
  ConfusionPanel panel{.title = "NODE", .counts = {}};
  for (int row = 0; row < 10; ++row)
    for (int column = 0; column < 10; ++column)
      panel.counts.push_back(row == column ? 90 : (row * column) % 7);
  ConfusionPanel other = panel;
  other.title = "IL-NODE";
  return confusion({.title = "Mistakes", .idea = "Which class is taken for which.", .finding = "Few."},
                   {.classes = 10, .panels = {panel, other}});
}

Figure pictures(std::size_t columns) {
  TileSheet sheet{.panels = {{"NODE", {}}, {"2nd order", {}}}, .columns = columns};
  for (TilePanel& panel : sheet.panels) {
    for (std::size_t n = 0; n < 12; ++n) {
      Tile tile{.width = 14, .height = 14, .pixels = {}, .label = text("label ", n)};
      if (n < 4) tile.note = "is aeroplane";
      const std::size_t channels = n % 2 == 0 ? 1 : 3;
      for (std::size_t i = 0; i < 14 * 14 * channels; ++i)
        tile.pixels.push_back(static_cast<unsigned char>(i * (n + 3) % 256));
      panel.tiles.push_back(tile);
    }
  }
  return tile_sheet({.title = "Pictures", .idea = "Small pictures with words.", .finding = "Twelve."}, sheet);
}

}  // namespace

Page sample_page() {
  return {.title = "Every kind of figure",
          .subtitle = "sample, closed forms",
          .claim = "A page holds figures of every kind, and markup such as <b> & \"quotes\" stays text.",
          .verdicts = {{"largest error of the closed form", 0.0123, 0.05, true},
                       {"accuracy without control", 0.93, 0.99, false}},
          .configuration = {{"iterations", "1024"}, {"solver", "dopri5, tolerance 1e-5"}, {"seed", "0"}},
          .deviations = {"200 iterations where the paper has 1024, to end in seconds"},
          .sections = {
              {.title = "In the plane",
               .introduction = "Flows and boundaries.",
               .figures = {flows(), decisions()}},
              {.title = "Over depth", .figures = {trajectories(), parameters(), densities(), depths()}},
              {.title = "Numbers",
               .figures = {course(), heat(), slope(), measures(), mistakes(), pictures(0), pictures(6)},
               .tables = {
                   {.caption = {.title = "Models", .idea = "One row a model.", .finding = "Control is best."},
                    .columns = {"model", "loss", "accuracy", "NFE", "parameters", "seconds"},
                    .rows = {{"vanilla", "0.0312", "0.981", "62", "165", "12.1"},
                             {"data-controlled", "0.0021", "1", "32", "229", "15.9"}}}}}}};
}

}  // namespace fathom::report
