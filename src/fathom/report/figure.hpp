/// Figures of a report: plain numbers in, a Vega specification out.
///
///   Figure figure = plane_flow({.title = "Flows", .idea = "The field carries ...", .finding = text("Largest ...", worst)},
///                              {.labels = {"inner", "outer"}, .panels = {vanilla, controlled}});
///
/// Models side by side are panels of one figure: they share axes, colours and slider, and wrap to fewer columns on a
/// narrow screen. Whatever is longer than a screen has pixels is thinned, so callers need not care.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fathom::report {

/// The words around a figure.
struct Caption {
  std::string title;
  std::string idea;     ///< what the figure is there to show
  std::string finding;  ///< what this run found: computed from its numbers
};

struct Figure {
  Caption caption;
  std::string alternative;    ///< for those who cannot see it
  std::string specification;  ///< Vega, as JSON
};

/// The ends of an axis.
struct Range {
  double low = 0;
  double high = 1;
};

/// Values at the nodes of a regular grid, ends included: rows from the lowest y, columns from the lowest x.
struct Grid {
  Range x = {};
  Range y = {};
  std::size_t columns = 0;
  std::size_t rows = 0;
  std::vector<double> values = {};  ///< (rows, columns)
};

/// A vector field at the nodes of a regular grid.
struct VectorGrid {
  Range x = {};
  Range y = {};
  std::size_t columns = 0;
  std::size_t rows = 0;
  std::vector<double> u = {};  ///< (rows, columns), along x
  std::vector<double> v = {};  ///< (rows, columns), along y
};

/// A curve through (x_i, y_i); `label` is an index into the figure's labels and chooses its colour.
struct Curve {
  std::vector<double> x;
  std::vector<double> y;
  int label = 0;
};

struct Points {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<int> labels;  ///< one a point
};

/// z(s) of many samples over the field dz/ds = f(s, z).
struct DepthPanel {
  std::string title;
  std::vector<Curve> trajectories;     ///< x: depth, y: one component of the state
  std::vector<Curve> references = {};  ///< drawn dashed: what the state should follow
  Grid slopes = {};                    ///< f over x: depth, y: state; without values no field is drawn
};
struct DepthTrajectories {
  std::vector<std::string> labels;
  std::vector<DepthPanel> panels;
  std::string depth_title = "depth s";
  std::string state_title = "state z";
  std::string reference_title = "reference";
};
Figure depth_trajectories(const Caption& caption, const DepthTrajectories& data);

/// States of samples in the plane at equally spaced depths, played by a slider, over streamlines of the field.
struct FlowPanel {
  std::string title;
  std::vector<double> states;              ///< (frames, samples, 2)
  std::vector<int> labels;                 ///< (samples,)
  std::vector<double> inputs = {};         ///< (samples, features), shown on hover; default: the first frame
  std::vector<double> sample_depths = {};  ///< (samples,), where each has its own; shown on hover
  std::vector<VectorGrid> fields = {};     ///< none, one, or several at equally spaced depths
};
struct PlaneFlow {
  std::vector<std::string> labels;
  std::vector<FlowPanel> panels;
  Range depths = {};
  std::optional<Range> x = {};  ///< default: where the samples go
  std::optional<Range> y = {};
  std::string x_title = "z1";
  std::string y_title = "z2";
};
Figure plane_flow(const Caption& caption, const PlaneFlow& data);

/// What a classifier answers all over the plane: below 0 the first label, above 0 the second, and the boundary between.
struct DecisionPanel {
  std::string title;
  Grid scores;
  Points samples = {};
};
struct DecisionMap {
  std::vector<std::string> labels;
  std::vector<DecisionPanel> panels;
  std::string x_title = "x1";
  std::string y_title = "x2";
};
Figure decision_map(const Caption& caption, const DecisionMap& data);

/// Components of theta(s) over depth.
struct ParameterPanel {
  std::string title;
  std::vector<double> depths;
  std::vector<std::vector<double>> components;  ///< (components, depths)
};
struct ParametersOverDepth {
  std::vector<ParameterPanel> panels;
  std::string value_title = "theta(s)";
};
Figure parameters_over_depth(const Caption& caption, const ParametersOverDepth& data);

/// A flow of one-dimensional densities: prior on the left, trajectories, posterior on the right. For densities, x is the
/// state and y its density.
struct DensityCondition {
  std::string label;
  Curve prior;
  std::vector<Curve> trajectories;  ///< x: depth, y: state
  Curve posterior;
  Curve target = {};  ///< drawn dashed beside the posterior
};
struct DensityPanel {
  std::string title;
  std::vector<DensityCondition> conditions;
};
struct DensityFlow {
  std::vector<DensityPanel> panels;
};
Figure density_flow(const Caption& caption, const DensityFlow& data);

struct Axis {
  std::string title;
  bool logarithmic = false;
  std::optional<Range> range = {};
};

struct Line {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> deviation = {};  ///< half height of a band around the line
  bool dashed = false;
  bool points = false;  ///< a dot at each value
};
struct LinePanel {
  std::string title;
  std::vector<Line> lines;
  std::string y_title = {};  ///< default: the figure's
};
/// Any lines; those of one name have one colour in all panels. Panels with a title of their own for y have a scale of their own.
struct Lines {
  std::vector<LinePanel> panels;
  Axis x;
  Axis y;
};
Figure lines(const Caption& caption, const Lines& data);

/// The depth g(x) that a model chooses for each input.
struct LearnedDepth {
  std::vector<Line> lines;  ///< x: input, y: depth
  std::string x_title = "input x";
};
Figure learned_depth(const Caption& caption, const LearnedDepth& data);

/// Loss and number of function evaluations over iterations.
struct TrainingCurve {
  std::string model;
  std::vector<double> iterations;
  std::vector<double> loss;
  std::vector<double> evaluations = {};           ///< NFE forwards
  std::vector<double> backward_evaluations = {};  ///< dashed
};
Figure training_curves(const Caption& caption, const std::vector<TrainingCurve>& models);

/// A value over two axes, such as delta ell / delta theta(s) over epoch and depth. Values of both signs get a diverging
/// scale around zero.
struct HeatPanel {
  std::string title;
  Grid values;
};
struct HeatMap {
  std::vector<HeatPanel> panels;
  std::string x_title = "epoch";
  std::string y_title = "depth s";
  std::string value_title;
};
Figure heat_map(const Caption& caption, const HeatMap& data);

/// Measures of several models as dots with deviations, one panel a measure.
struct Measure {
  std::string title;
  std::vector<double> values;           ///< one a model
  std::vector<double> deviations = {};  ///< one a model
  std::optional<double> threshold = {};
  bool logarithmic = false;
};
struct Comparison {
  std::vector<std::string> models;
  std::vector<Measure> measures;
};
Figure comparison(const Caption& caption, const Comparison& data);

/// How often each class (row) was answered by each class (column).
struct ConfusionPanel {
  std::string title;
  std::vector<double> counts;  ///< (classes, classes)
};
struct Confusion {
  std::size_t classes = 0;
  std::vector<ConfusionPanel> panels;
};
Figure confusion(const Caption& caption, const Confusion& data);

/// A small picture, grey or in colour, with words below it.
struct Tile {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<unsigned char> pixels;  ///< (height, width) grey, or (height, width, 3) red, green, blue
  std::string label = {};
  std::string note = {};  ///< below the label, in the colour of a warning
};
struct TilePanel {
  std::string title;
  std::vector<Tile> tiles;
};
struct TileSheet {
  std::vector<TilePanel> panels;
  std::size_t columns = 0;  ///< tiles in a row; 0: as many as fit
};
Figure tile_sheet(const Caption& caption, const TileSheet& data);

}  // namespace fathom::report
