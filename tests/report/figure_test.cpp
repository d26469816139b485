#include "fathom/report/figure.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fathom/read/png.hpp"
#include "fathom/support/error.hpp"
#include "report/sample_page.hpp"
#include "support/plain/command_line.hpp"

namespace fathom::report {
namespace {

using nlohmann::json;

json parsed(const Figure& figure) { return json::parse(figure.specification); }

/// The domains of a scale in all panels.
std::vector<json> domains(const Figure& figure, const std::string& scale) {
  std::vector<json> result;
  const json specification = parsed(figure);
  for (const json& panel : specification["marks"]) {
    for (const json& each : panel["scales"]) {
      if (each["name"] == scale) result.push_back(each["domain"]);
    }
  }
  return result;
}

std::string decoded(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    held = held << 6 | std::uint32_t(digits.find(c));
    bits += 6;
    if (bits >= 8) bytes += char(held >> (bits -= 8) & 0xFF);
  }
  return bytes;
}

Array png_of(const std::string& bytes) {
  const testing::TemporaryFolder folder;
  folder.write("tile.png", bytes);
  return read_png(folder / "tile.png");
}

std::vector<Figure> sample_figures() {
  std::vector<Figure> figures;
  for (const Section& section : sample_page().sections)
    figures.insert(figures.end(), section.figures.begin(), section.figures.end());
  return figures;
}

TEST(Figures, HaveAnAlternativeTextAndNoAddress) {
  ASSERT_GE(sample_figures().size(), 10u);
  for (const Figure& figure : sample_figures()) {
    EXPECT_GT(figure.alternative.size(), 20u) << figure.caption.title;
    EXPECT_EQ(figure.specification.find("http"), std::string::npos) << figure.caption.title;
    EXPECT_EQ(figure.specification.find("\"url\":\""), std::string::npos) << figure.caption.title;
  }
}

TEST(Figures, FollowTheWidthAtHand) {
  for (const Figure& figure : sample_figures()) {
    EXPECT_EQ(parsed(figure)["signals"][0]["name"], "available") << figure.caption.title;
    EXPECT_TRUE(parsed(figure)["layout"]["columns"].contains("signal")) << figure.caption.title;
  }
}

TEST(Figures, PutModelsSideBySideOnOneScale) {
  const Figure figure = depth_trajectories(
      {}, {.labels = {"all"}, .panels = {{"small", {{{0, 1}, {0, 1}}}}, {"large", {{{0, 2}, {-50, 100}}}}}});
  const auto x = domains(figure, "x"), y = domains(figure, "y");
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(x[0], x[1]);
  EXPECT_EQ(y[0], y[1]);
  EXPECT_LE(y[0][0], -50);
  EXPECT_GE(y[0][1], 100);
}

TEST(Lines, GiveAPanelWithItsOwnUnitItsOwnScale) {
  const Line line{.name = "a", .x = {1, 2}, .y = {1, 2}}, steep{.name = "a", .x = {1, 2}, .y = {1, 200}};
  const auto y = domains(
      lines({}, {.panels = {{"one", {line}}, {"two", {steep}, "NFE"}}, .x = {"x"}, .y = {"loss"}}), "y");
  EXPECT_LT(y[0][1], 3);
  EXPECT_GT(y[1][1], 199);
}

TEST(Lines, OnALogarithmicScaleLeaveOutWhatHasNoLogarithm) {
  const Figure figure = lines(
      {},
      {.panels = {{"", {{.name = "a", .x = {1, 2, 3}, .y = {0, 0.01, 10}}}}}, .x = {"x"}, .y = {"y", true}});
  const auto y = domains(figure, "y");
  EXPECT_GT(y[0][0], 0.005);
  EXPECT_EQ(figure.specification.find("nan"), std::string::npos);
  EXPECT_EQ(figure.specification.find("inf"), std::string::npos);
}

TEST(Lines, SurviveValuesThatAreNotNumbers) {
  const double nan = std::nan("");
  const Figure figure = lines(
      {}, {.panels = {{"", {{.name = "a", .x = {1, 2, 3, 4}, .y = {1, nan, INFINITY, 2}, .points = true}}}}});
  EXPECT_NO_THROW(json::parse(figure.specification));
  EXPECT_EQ(figure.specification.find("null"), std::string::npos);
}

FlowPanel flow(std::size_t samples, std::size_t frames) {
  return {.title = "flow",
          .states = std::vector<double>(frames * samples * 2, 0.5),
          .labels = std::vector<int>(samples, 0)};
}

TEST(PlaneFlow, KnowsThePathLengthOfASample) {
  FlowPanel panel{.title = "", .states = {0, 0, 3, 4, 3, 5}, .labels = {0}};
  const json samples =
      parsed(plane_flow({}, {.labels = {"one"}, .panels = {panel}}))["marks"][0]["data"][0]["values"];
  EXPECT_DOUBLE_EQ(samples[0]["length"], 6);
  EXPECT_EQ(samples[0]["input"], "(0, 0)");
}

TEST(PlaneFlow, HasASliderOverItsDepths) {
  const json spec = parsed(plane_flow({}, {.labels = {"one"}, .panels = {flow(3, 5)}, .depths = {0.5, 2}}));
  EXPECT_EQ(spec["usermeta"]["slider"]["low"], 0.5);
  EXPECT_EQ(spec["usermeta"]["slider"]["high"], 2);
}

TEST(PlaneFlow, RefusesWhatDoesNotFitTogether) {
  EXPECT_THROW(plane_flow({}, {.labels = {"one"}, .panels = {}}), InvalidArgument);
  EXPECT_THROW(plane_flow({}, {.labels = {"one"}, .panels = {flow(3, 1)}}), InvalidArgument);
  EXPECT_THROW(plane_flow({}, {.labels = {"one"}, .panels = {flow(3, 5), flow(3, 6)}}), InvalidArgument);
  EXPECT_THROW(plane_flow({}, {.labels = {}, .panels = {flow(3, 5)}}), InvalidArgument);
}

TEST(PlaneFlow, DrawsTrailsOfEveryLabelThoughSamplesComeSorted) {
  FlowPanel panel = flow(1000, 3);
  std::fill(panel.labels.begin() + 900, panel.labels.end(), 1);
  const json spec = parsed(plane_flow({}, {.labels = {"first", "last"}, .panels = {panel}}));
  const json& trails = spec["marks"][0]["data"][1]["values"];
  EXPECT_LE(trails.size(), 100u);
  EXPECT_EQ(trails.front()["label"], "first");
  EXPECT_EQ(trails.back()["label"], "last");
}

TEST(PlaneFlow, OfManySamplesStaysSmall) {
  EXPECT_LT(plane_flow({}, {.labels = {"one"}, .panels = {flow(20000, 41)}}).specification.size(), 600'000u);
}

TEST(TrainingCurves, OfALongTrainingStaySmall) {
  TrainingCurve curve{.model = "long", .iterations = {}, .loss = {}};
  for (int i = 1; i <= 200'000; ++i) {
    curve.iterations.push_back(i);
    curve.loss.push_back(1.0 / i);
  }
  EXPECT_LT(training_curves({}, {curve}).specification.size(), 20'000u);
}

TEST(TrainingCurves, OfATrainingThatHasNotBegunAreEmptyAxes) {
  EXPECT_NO_THROW(training_curves({}, {}));
  EXPECT_NO_THROW(training_curves({}, {{.model = "new", .iterations = {}, .loss = {}}}));
}

TEST(HeatMap, OfBothSignsIsSymmetricAroundZero) {
  const Figure figure = heat_map(
      {}, {.panels = {{"", {.columns = 2, .rows = 2, .values = {-1, 0, 2, 5}}}}, .value_title = "v"});
  EXPECT_EQ(parsed(figure)["scales"][0]["domain"], json({-5.0, 5.0}));
  EXPECT_EQ(parsed(figure)["scales"][0]["range"]["scheme"], "blueorange");
}

TEST(HeatMap, OfManyDecadesIsLogarithmic) {
  const auto type = [](std::vector<double> values) {
    return parsed(heat_map({}, {.panels = {{"", {.columns = 2, .rows = 2, .values = std::move(values)}}},
                                .value_title = "v"}))["scales"][0]["type"];
  };
  EXPECT_EQ(type({100, 1, 0.1, 0.01}), "log");
  EXPECT_EQ(type({1, 2, 3, 4}), "linear");
  EXPECT_EQ(type({100, 1, 0.1, 0}), "linear") << "zero has no logarithm";
}

TEST(DensityFlow, IsNotFlattenedByAPosteriorThatCollapsed) {
  const auto prior_path = [](double height) {
    const Curve bell{{-1, 0, 1}, {0.1, 1, 0.1}}, spike{{-1, 0, 1}, {0.1, height, 0.1}};
    const Figure figure = density_flow({}, {.panels = {{"flow",
                                                        {{.label = "a",
                                                          .prior = bell,
                                                          .trajectories = {{{0, 1}, {0, 0}}},
                                                          .posterior = spike,
                                                          .target = bell}}}}});
    return parsed(figure)["marks"][0]["data"][1]["values"][0]["path"];
  };
  EXPECT_EQ(prior_path(1), prior_path(1000));
}

TEST(TrainingCurves, AreLogarithmicThoughALossReachesZero) {
  const Figure figure =
      training_curves({}, {{.model = "exact", .iterations = {1, 2, 3}, .loss = {1, 0.1, 0}}});
  EXPECT_EQ(parsed(figure)["marks"][0]["scales"][1]["type"], "log");
  const Figure density =
      training_curves({}, {{.model = "flow", .iterations = {1, 2, 3}, .loss = {1, 0.1, -1}}});
  EXPECT_EQ(parsed(density)["marks"][0]["scales"][1]["type"], "linear");
}

TEST(Comparison, NeedsOneValueAModel) {
  EXPECT_THROW(comparison({}, {.models = {"a", "b"}, .measures = {{.title = "NFE", .values = {1}}}}),
               InvalidArgument);
}

TEST(TileSheet, CarriesEachPictureAsAPngOfItsPixels) {
  const Tile grey{.width = 2, .height = 1, .pixels = {0, 255}, .label = "7", .note = "is 1"},
      colour{.width = 1, .height = 1, .pixels = {1, 2, 3}};
  const json panel = parsed(tile_sheet({}, {.panels = {{"model", {grey, colour}}}}))["marks"][0];
  const json tiles = panel["data"][0]["values"];
  ASSERT_EQ(tiles.size(), 2u);
  EXPECT_EQ(tiles[0]["label"], "7");
  EXPECT_EQ(tiles[0]["note"], "is 1");
  const std::vector<std::vector<double>> wanted = {{0, 255}, {1, 2, 3}};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string address = tiles[i]["picture"], start = "data:image/png;base64,";
    ASSERT_TRUE(address.starts_with(start));
    const Array read = png_of(decoded(address.substr(start.size())));
    EXPECT_EQ(numbers(read), wanted[i]);
  }
}

TEST(TileSheet, RefusesPixelsThatDoNotFillThePicture) {
  EXPECT_THROW(tile_sheet({}, {.panels = {{"", {Tile{.width = 2, .height = 2, .pixels = {1, 2, 3}}}}}}),
               InvalidArgument);
  EXPECT_THROW(tile_sheet({}, {.panels = {{"", {}}}}), InvalidArgument);
}

TEST(Confusion, ShowsCountsAndTheirShareOfTheClass) {
  const Figure figure = confusion({}, {.classes = 2, .panels = {{"model", {3, 1, 0, 5}}}});
  const json cells = parsed(figure)["marks"][0]["data"][0]["values"];
  ASSERT_EQ(cells.size(), 3u) << "what never happened is left out";
  EXPECT_EQ(cells[1]["row"], 0);
  EXPECT_EQ(cells[1]["column"], 1);
  EXPECT_EQ(cells[1]["count"], 1);
  EXPECT_EQ(cells[1]["share"], 0.25);
  EXPECT_THROW(confusion({}, {.classes = 2, .panels = {{"model", {3, 1}}}}), InvalidArgument);
}

}  // namespace
}  // namespace fathom::report
