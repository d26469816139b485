/// Figures in the plane: flows with a depth slider, decision maps.
#include <algorithm>
#include <cmath>

#include "fathom/report/sheet.hpp"
#include "fathom/support/error.hpp"

namespace fathom::report {

namespace {

constexpr std::size_t most_trails = 80, most_samples = 400;

/// states[frame, sample, axis], checked.
struct Frames {
  const FlowPanel& panel;
  std::size_t samples, frames;

  explicit Frames(const FlowPanel& flow) : panel(flow), samples(flow.labels.size()), frames(0) {
    require(samples > 0, "a flow needs at least one sample with a label, got none");
    require(flow.states.size() >= 4 * samples && flow.states.size() % (2 * samples) == 0,
            "`states` needs (frames, samples, 2) values with at least 2 frames of ", samples,
            " samples, got ", flow.states.size(), " values");
    frames = flow.states.size() / (2 * samples);
  }
  double at(std::size_t frame, std::size_t sample, std::size_t axis) const {
    return panel.states[(frame * samples + sample) * 2 + axis];
  }
  Polyline trail(std::size_t sample) const {
    Polyline line;
    for (std::size_t frame = 0; frame < frames; ++frame) {
      line.x.push_back(at(frame, sample, 0));
      line.y.push_back(at(frame, sample, 1));
    }
    return line;
  }
  double path_length(std::size_t sample) const {
    double length = 0;
    for (std::size_t frame = 1; frame < frames; ++frame) {
      length += std::hypot(at(frame, sample, 0) - at(frame - 1, sample, 0),
                           at(frame, sample, 1) - at(frame - 1, sample, 1));
    }
    return length;
  }
};

/// The input of a sample as people read it.
std::string input_of(const Frames& frames, std::size_t sample) {
  const auto& inputs = frames.panel.inputs;
  std::vector<double> values;
  if (inputs.empty()) {
    values = {frames.at(0, sample, 0), frames.at(0, sample, 1)};
  } else {
    const std::size_t features = inputs.size() / frames.samples;
    values.assign(inputs.begin() + long(sample * features), inputs.begin() + long((sample + 1) * features));
  }
  std::string result;
  for (const double value : values) {
    result += result.empty() ? "(" : ", ";
    result += text(std::round(value * 1000) / 1000);
  }
  return result + ")";
}

json sample_row(const Frames& frames, std::size_t sample, const PlaneFlow& data, const Window& window) {
  const int label = frames.panel.labels[sample];
  require(label >= 0 && std::size_t(label) < data.labels.size(), "a label must be one of the figure's ",
          data.labels.size(), " labels, got index ", label);
  json x = json::array(), y = json::array();
  for (std::size_t frame = 0; frame < frames.frames; ++frame) {
    x.push_back(rounded(frames.at(frame, sample, 0), window.x));
    y.push_back(rounded(frames.at(frame, sample, 1), window.y));
  }
  json row{{"label", data.labels[std::size_t(label)]},
           {"input", input_of(frames, sample)},
           {"length", std::round(1000 * frames.path_length(sample)) / 1000},
           {"x", x},
           {"y", y}};
  if (!frames.panel.sample_depths.empty())
    row["depth"] = std::round(1000 * frames.panel.sample_depths.at(sample)) / 1000;
  return row;
}

json streams(const std::vector<VectorGrid>& fields, const Window& window) {
  json rows = json::array();
  for (std::size_t i = 0; i < fields.size(); ++i)
    rows.push_back({{"field", i}, {"path", path(streamlines(fields[i]), window)}});
  return rows;
}

/// The middle of each streamline and where it goes there, in shares of the window.
json arrows(const std::vector<VectorGrid>& fields, const Window& window) {
  json rows = json::array();
  const double width = window.x.high - window.x.low, height = window.y.high - window.y.low;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (const Polyline& line : streamlines(fields[i])) {
      const std::size_t middle = line.x.size() / 2;
      rows.push_back({{"field", i},
                      {"x", rounded(line.x[middle], window.x)},
                      {"y", rounded(line.y[middle], window.y)},
                      {"dx", rounded((line.x[middle + 1] - line.x[middle - 1]) / width, {})},
                      {"dy", rounded((line.y[middle + 1] - line.y[middle - 1]) / height, {})}});
    }
  }
  return rows;
}

/// Only the field nearest to the depth that the slider shows is seen.
json when_shown(std::size_t fields, double opacity) {
  if (fields <= 1) return constant(opacity);
  return signal(text("datum.field === round(progress * ", fields - 1, ") ? ", opacity, " : 0"));
}

std::vector<json> flow_marks(const FlowPanel& panel) {
  const std::size_t fields = panel.fields.size();
  std::vector<json> marks;
  if (fields > 0) {
    marks.push_back(path_mark({{"data", "streams"}}, {{"stroke", constant("var(--faint)")},
                                                      {"strokeWidth", constant(1)},
                                                      {"strokeOpacity", when_shown(fields, 1)}}));
    json arrow{{"type", "symbol"}, {"from", {{"data", "arrows"}}}};
    arrow["encode"]["update"] = {
        {"shape", constant("triangle-up")},
        {"size", constant(34)},
        {"x", {{"scale", "x"}, {"field", "x"}}},
        {"y", {{"scale", "y"}, {"field", "y"}}},
        {"angle", signal("90 - atan2(datum.dy * panel_height, datum.dx * panel_width) * 180 / PI")},
        {"fill", constant("var(--faint)")},
        {"fillOpacity", when_shown(fields, 1)}};
    marks.push_back(std::move(arrow));
  }
  marks.push_back(path_mark({{"data", "trails"}}, {{"stroke", {{"scale", "colour"}, {"field", "label"}}},
                                                   {"strokeWidth", constant(0.7)},
                                                   {"strokeOpacity", constant(0.3)}}));
  const auto between = [&](const std::string& axis) {
    const std::string values = "datum." + axis;
    return signal("scale('" + axis + "', " + values + "[frame] + part * (" + values + "[frame + 1] - " +
                  values + "[frame]))");
  };
  json samples{{"type", "symbol"}, {"name", "samples"}, {"from", {{"data", "samples"}}}};
  samples["encode"]["update"] = {
      {"shape", constant("circle")},
      {"size", constant(26)},
      {"x", between("x")},
      {"y", between("y")},
      {"fill", {{"scale", "colour"}, {"field", "label"}}},
      {"fillOpacity", constant(0.85)},
      {"stroke", constant("var(--paper)")},
      {"strokeWidth", constant(0.5)},
      {"tooltip",
       signal(std::string("{input: datum.input, label: datum.label, 'path length': datum.length, depth: ") +
              (panel.sample_depths.empty() ? "format(depth, '.2f')" : "datum.depth") + "}")}};
  samples["encode"]["hover"] = {{"stroke", constant("var(--ink)")}, {"strokeWidth", constant(2)}};
  marks.push_back(std::move(samples));
  return marks;
}

}  // namespace

Figure plane_flow(const Caption& caption, const PlaneFlow& data) {
  require(!data.panels.empty(), "a flow needs at least one panel, got none");
  Extent x, y;
  const std::size_t frame_count = Frames(data.panels.front()).frames;
  for (const FlowPanel& panel : data.panels) {
    const Frames frames(panel);
    require(frames.frames == frame_count, "panels that share a slider need equally many frames, got ",
            frame_count, " and ", frames.frames);
    for (std::size_t i = 0; i + 1 < panel.states.size(); i += 2) {
      x.include(panel.states[i]);
      y.include(panel.states[i + 1]);
    }
  }
  const Window window{data.x.value_or(x.range()), data.y.value_or(y.range())};
  Sheet sheet{.height = same_aspect(window), .labels = data.labels};
  for (const FlowPanel& panel : data.panels) {
    const Frames frames(panel);
    // Samples often come class after class: every n-th keeps all of them in sight.
    const std::size_t step = (frames.samples + most_samples - 1) / most_samples;
    const std::size_t trail_step = step * ((frames.samples / step + most_trails - 1) / most_trails);
    json samples = json::array(), trails = json::array();
    for (std::size_t i = 0; i < frames.samples; i += step) {
      samples.push_back(sample_row(frames, i, data, window));
      if (i % trail_step == 0)
        trails.push_back({{"label", samples.back()["label"]}, {"path", path(frames.trail(i), window)}});
    }
    Panel drawn{panel.title, window, data.x_title, data.y_title};
    drawn.data = {{{"name", "samples"}, {"values", samples}},
                  {{"name", "trails"}, {"values", trails}},
                  {{"name", "streams"}, {"values", streams(panel.fields, window)}},
                  {{"name", "arrows"}, {"values", arrows(panel.fields, window)}}};
    drawn.marks = flow_marks(panel);
    sheet.panels.push_back(std::move(drawn));
  }
  const std::string last = text(frame_count - 1);
  sheet.signals = {
      {{"name", "depth"}, {"value", data.depths.high}},
      {{"name", "progress"},
       {"update",
        text("clamp((depth - ", data.depths.low, ") / ", data.depths.high - data.depths.low, ", 0, 1)")}},
      {{"name", "frame"}, {"update", text("min(floor(progress * ", last, "), ", frame_count - 2, ")")}},
      {{"name", "part"}, {"update", "progress * " + last + " - frame"}}};
  sheet.usermeta["slider"] = {{"signal", "depth"}, {"low", data.depths.low}, {"high", data.depths.high}};
  return {caption,
          text("States of samples (", listed(data.labels), ") in the plane for ", titles(data.panels),
               "; a slider moves them from depth ", data.depths.low, " to ", data.depths.high, "."),
          specification(sheet)};
}

namespace {

Grid negated(Grid grid) {
  for (double& value : grid.values) value = -value;
  return grid;
}

/// Nested regions of growing confidence: painted over each other they darken with the score.
json bands(const DecisionPanel& panel, const DecisionMap& data, const Window& window) {
  std::vector<double> sizes;
  for (const double score : panel.scores.values) {
    if (std::isfinite(score)) sizes.push_back(std::abs(score));
  }
  require(!sizes.empty(), "a decision map needs finite scores, got none");
  std::nth_element(sizes.begin(), sizes.begin() + long(sizes.size() / 2), sizes.end());
  const double typical = sizes[sizes.size() / 2];
  const Grid opposite = negated(panel.scores);
  json rows = json::array();
  for (const double share : {0.0, 0.5, 1.0, 1.5}) {
    for (int side = 0; side < 2; ++side) {
      const Grid& grid = side == 1 ? panel.scores : opposite;
      rows.push_back({{"label", data.labels[std::size_t(side)]},
                      {"path", path(region_outlines(grid, share * typical), window)}});
    }
  }
  return rows;
}

}  // namespace

Figure decision_map(const Caption& caption, const DecisionMap& data) {
  require(!data.panels.empty() && data.labels.size() == 2,
          "a decision map needs a panel and two labels, got ", data.panels.size(), " panel(s) and ",
          data.labels.size(), " label(s)");
  const Window window{data.panels.front().scores.x, data.panels.front().scores.y};
  Sheet sheet{.height = same_aspect(window), .labels = data.labels};
  const json colour{{"scale", "colour"}, {"field", "label"}};
  for (const DecisionPanel& panel : data.panels) {
    json samples = json::array();
    for (std::size_t i = 0; i < std::min(panel.samples.x.size(), most_samples); ++i) {
      samples.push_back({{"x", rounded(panel.samples.x[i], window.x)},
                         {"y", rounded(panel.samples.y.at(i), window.y)},
                         {"label", data.labels.at(std::size_t(panel.samples.labels.at(i)))}});
    }
    Panel drawn{panel.title, window, data.x_title, data.y_title};
    drawn.data = {{{"name", "bands"}, {"values", bands(panel, data, window)}},
                  {{"name", "samples"}, {"values", samples}}};
    json points{{"type", "symbol"}, {"from", {{"data", "samples"}}}};
    points["encode"]["update"] = {{"size", constant(14)},
                                  {"x", {{"scale", "x"}, {"field", "x"}}},
                                  {"y", {{"scale", "y"}, {"field", "y"}}},
                                  {"fill", colour},
                                  {"stroke", constant("var(--paper)")},
                                  {"strokeWidth", constant(0.4)}};
    drawn.marks = {path_mark({{"data", "bands"}}, {{"fill", colour}, {"fillOpacity", constant(0.16)}}),
                   std::move(points),
                   path_mark(path(level_lines(panel.scores, 0), window),
                             {{"stroke", constant("var(--ink)")}, {"strokeWidth", constant(1.8)}})};
    sheet.panels.push_back(std::move(drawn));
  }
  return {caption,
          text("The plane coloured by the answer of ", titles(data.panels), ": ", listed(data.labels),
               ", with the boundary between them and the samples."),
          specification(sheet)};
}

}  // namespace fathom::report
