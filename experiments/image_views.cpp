#include "experiments/image_views.hpp"

#include <algorithm>
#include <array>

#include "experiments/plane.hpp"
#include "experiments/statistics.hpp"
#include "fathom/support/error.hpp"

namespace fathom::experiments {

namespace {

constexpr std::int64_t classes = 10;
constexpr std::int64_t tiles_shown = 24, states_of = 4;
constexpr std::size_t depths_shown = 6;

/// Table 1 of the paper: means over its runs, MNIST and CIFAR-10.
struct PaperRow {
  std::string model;
  std::array<double, 2> accuracy;  ///< per cent
  std::array<double, 2> evaluations;
  std::array<double, 2> parameters;  ///< thousands
};
const std::vector<PaperRow>& paper_rows() {
  static const std::vector<PaperRow> rows = {{"NODE", {96.8, 58.9}, {98, 93}, {21.4, 37.1}},
                                             {"ANODE", {98.9, 70.8}, {71, 169}, {20.4, 35.0}},
                                             {"IL-NODE", {99.1, 73.4}, {44, 65}, {20.7, 36.1}},
                                             {"2nd order", {99.2, 72.8}, {43, 59}, {20.0, 34.6}}};
  return rows;
}

/// The column of Table 1 that the images are held against: MNIST's for grey images.
std::size_t column_of(const ImageReport& report) { return report.test.inputs.size(1) == 1 ? 0 : 1; }
std::string column_name(const ImageReport& report) { return column_of(report) == 0 ? "MNIST" : "CIFAR-10"; }

std::vector<std::string> class_names(const Run& run) {
  const std::string& data = run.choice("data");
  if (data == "fashion-mnist")
    return {"T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"};
  if (data == "cifar10")
    return {"aeroplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "lorry"};
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

std::string per_cent(double share) { return report::readable(std::round(1000 * share) / 10); }

std::string per_cent_of_training(const Run& run, const std::string& model) {
  return report::readable(100 * run.figure(model, "share of the paper's training")) + " %";
}

std::vector<std::string> listed_models(const ImageReport& report) {
  std::vector<std::string> names;
  for (const ImageAnswers& each : report.answers) names.push_back(each.model);
  return names;
}

report::Table table1(const Run& run, const ImageReport& report) {
  const std::size_t column = column_of(report);
  report::Table table{
      .caption =
          {.title = "Table 1",
           .idea =
               text("The paper's figures for ", column_name(report), " beside those of this run, on ",
                    run.choice("data"),
                    ". NFE: evaluations of the field forwards, 2 + 6 for every attempted step, mean over the "
                    "batches of the last tenth of the training; the paper's are at convergence."),
           .finding = {}},
      .columns = {"model", "accuracy %", "paper", "NFE", "paper", "parameters", "paper",
                  "share of paper's training"}};
  for (const ModelFigures& model : run.metrics().models) {
    const auto of_paper = std::find_if(paper_rows().begin(), paper_rows().end(),
                                       [&](const PaperRow& row) { return row.model == model.name; });
    const bool in_paper = of_paper != paper_rows().end();
    const auto paper = [&](double value, const char* unit) {
      return in_paper ? report::readable(value) + unit : std::string("-");
    };
    const PaperRow row = in_paper ? *of_paper : PaperRow{};
    table.rows.push_back(
        {model.name, per_cent(run.figure(model.name, "test accuracy")), paper(row.accuracy[column], ""),
         in_paper ? report::readable(std::round(10 * run.figure(model.name, "NFE")) / 10) : "-",
         paper(row.evaluations[column], ""), report::readable(run.figure(model.name, "parameters")),
         paper(row.parameters[column], " K"), per_cent_of_training(run, model.name)});
  }
  table.caption.finding = text("Trained on ", report.train_images, " images, ",
                               per_cent_of_training(run, run.metrics().models.front().name),
                               " of the passes through images of the paper's training.");
  return table;
}

/// What the paper says of two models, and whether this run agrees.
struct Pair {
  std::string words;
  bool agrees;
};

std::vector<Pair> pairs(const Run& run, const ImageReport& report) {
  const std::size_t column = column_of(report);
  std::vector<PaperRow> rows;
  for (const PaperRow& row : paper_rows()) {
    for (const std::string& model : listed_models(report))
      if (model == row.model) rows.push_back(row);
  }
  std::vector<Pair> all;
  const auto compare = [&](const std::string& words, const std::string& figure, const PaperRow& one,
                           const PaperRow& other, double of_paper) {
    const double ours = run.figure(one.model, figure) - run.figure(other.model, figure);
    const auto& [more, less] =
        of_paper > 0 ? std::pair(one.model, other.model) : std::pair(other.model, one.model);
    all.push_back({text(words, more, " > ", less), of_paper > 0 ? ours > 0 : ours < 0});
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      compare("accuracy: ", "test accuracy", rows[i], rows[j],
              rows[i].accuracy[column] - rows[j].accuracy[column]);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      compare("NFE: ", "NFE", rows[i], rows[j], rows[i].evaluations[column] - rows[j].evaluations[column]);
  }
  return all;
}

report::Table rankings(const Run& run, const ImageReport& report) {
  const std::vector<Pair> all = pairs(run, report);
  report::Table table{
      .caption = {.title = "The paper's ranking",
                  .idea =
                      text("Every pair of models, in the order that the paper found on ", column_name(report),
                           ". Where training was far shorter than the paper's, a disagreement says "
                           "little: NFE grows while a model trains."),
                  .finding = {}},
      .columns = {"the paper", "this run"}};
  std::size_t agreeing = 0;
  for (const Pair& each : all) {
    table.rows.push_back({each.words, each.agrees ? "agrees" : "disagrees"});
    agreeing += each.agrees ? 1 : 0;
  }
  table.caption.finding = text(agreeing, " of ", all.size(), " agree.");
  return table;
}

report::Figure dots(const Run& run, const ImageReport& report) {
  const std::size_t column = column_of(report);
  report::Comparison comparison{.models = {}, .measures = {}};
  report::Measure accuracy{.title = "test accuracy, %"}, evaluations{.title = "NFE"};
  for (const std::string& model : listed_models(report)) {
    comparison.models.push_back(model);
    accuracy.values.push_back(100 * run.figure(model, "test accuracy"));
    evaluations.values.push_back(run.figure(model, "NFE"));
  }
  report::Measure paper_accuracy{.title = "the paper's accuracy, %"},
      paper_evaluations{.title = "the paper's NFE"};
  for (const std::string& model : comparison.models) {
    for (const PaperRow& row : paper_rows()) {
      if (row.model != model) continue;
      paper_accuracy.values.push_back(row.accuracy[column]);
      paper_evaluations.values.push_back(row.evaluations[column]);
    }
  }
  comparison.measures = {accuracy, evaluations, paper_accuracy, paper_evaluations};
  const auto best = std::max_element(accuracy.values.begin(), accuracy.values.end());
  const auto cheapest = std::min_element(evaluations.values.begin(), evaluations.values.end());
  const auto name = [&](const std::vector<double>& values, auto found) {
    return comparison.models[std::size_t(found - values.begin())];
  };
  return report::comparison(
      {.title = "Accuracy and evaluations, ours and then the paper's",
       .idea = text("Test accuracy and evaluations on training batches; the paper's for ",
                    column_name(report), ", trained to convergence."),
       .finding = text("The most accurate is ", name(accuracy.values, best), " with ",
                       report::readable(*best), " %, the linear classifier has ",
                       per_cent(run.figure("linear", "test accuracy")), " % and the plain CNN ",
                       per_cent(run.figure("plain CNN", "test accuracy")), " %; the fewest evaluations are ",
                       report::readable(*cheapest), " (", name(evaluations.values, cheapest), ").")},
      comparison);
}

/// Means over a few dozen neighbours: single batches hide the course.
std::vector<double> smoothed(const std::vector<double>& values) {
  const std::size_t reach = std::max<std::size_t>(1, values.size() / 40);
  std::vector<double> means;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t first = i < reach ? 0 : i - reach, last = std::min(values.size(), i + reach + 1);
    double sum = 0;
    for (std::size_t j = first; j < last; ++j) sum += values[j];
    means.push_back(sum / double(last - first));
  }
  return means;
}

report::Figure learning(const Run& run, const ImageReport& report) {
  report::LinePanel loss{.title = "Loss on training batches", .lines = {}, .y_title = "cross entropy"},
      evaluations{.title = "NFE", .lines = {}, .y_title = "evaluations"};
  std::vector<std::string> models = listed_models(report);
  models.insert(models.end(), {"linear", "plain CNN"});
  for (const std::string& model : models) {
    const FitHistory& course = run.course(model);
    std::vector<double> iterations, counts;
    for (std::size_t i = 0; i < course.losses.size(); ++i) {
      iterations.push_back(double(i + 1));
      counts.push_back(double(course.evaluations[i]));
    }
    loss.lines.push_back({.name = model, .x = iterations, .y = smoothed(course.losses)});
    if (counts.back() > 0)
      evaluations.lines.push_back({.name = model, .x = iterations, .y = smoothed(counts)});
  }
  return report::lines({.title = "Learning and evaluations",
                        .idea = "The loss and the evaluations of the field, means over neighbouring batches.",
                        .finding = text(
                            "Evaluations of the last batch: ",
                            [&] {
                              std::string all;
                              for (const std::string& model : listed_models(report))
                                all += text(all.empty() ? "" : ", ", model, " ",
                                            run.course(model).evaluations.back());
                              return all;
                            }(),
                            ".")},
                       {.panels = {loss, evaluations}, .x = {"iteration"}, .y = {}});
}

report::Figure confusions(const Run& run, const ImageReport& report) {
  report::Confusion data{.classes = std::size_t(classes), .panels = {}};
  std::string worst;
  double most = -1;
  const std::vector<std::string> names = class_names(run);
  for (const ImageAnswers& each : report.answers) {
    const Tensor pairs = report.test.labels * classes + each.scores.argmax(1);
    const std::vector<double> counts = values(torch::bincount(pairs, {}, classes * classes));
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::size_t of = i / std::size_t(classes), as = i % std::size_t(classes);
      if (of == as || counts[i] <= most) continue;
      most = counts[i];
      worst =
          text(each.model, " takes ", report::readable(most), " images of ", names[of], " for ", names[as]);
    }
    data.panels.push_back({each.model, counts});
  }
  std::string legend;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != text(i)) legend += text(legend.empty() ? " " : ", ", i, " ", names[i]);
  }
  return report::confusion({.title = "Which classes are taken for which",
                            .idea = text("A row for each class of the test images, a column for each answer",
                                         legend.empty() ? "." : ":" + legend + "."),
                            .finding = worst + ", the most frequent mistake."},
                           data);
}

unsigned char byte_of(float value) {
  return static_cast<unsigned char>(std::lround(255 * std::clamp(value, 0.F, 1.F)));
}

/// (channels, height, width) in [0, 1]; grey or of three colours.
report::Tile tile_of(const Tensor& image) {
  const Tensor last = image.permute({1, 2, 0}).contiguous();
  report::Tile tile{.width = std::size_t(image.size(2)), .height = std::size_t(image.size(1)), .pixels = {}};
  for (std::int64_t i = 0; i < last.numel(); ++i) tile.pixels.push_back(byte_of(last.data_ptr<float>()[i]));
  return tile;
}

report::Figure predictions(const Run& run, const ImageReport& report) {
  const std::vector<std::string> names = class_names(run);
  report::TileSheet sheet;
  std::string wrong_of;
  for (const ImageAnswers& each : report.answers) {
    const Tensor answers = each.scores.argmax(1), sure = std::get<0>(each.scores.softmax(1).max(1));
    const Tensor wrong = answers != report.test.labels;
    // Wrong ones first, and of those the surest first.
    const Tensor order = (wrong.to(torch::kFloat32) * 2 + sure).argsort(0, /*descending=*/true);
    const std::int64_t wrong_shown =
        std::min<std::int64_t>(wrong.sum().item<std::int64_t>(), tiles_shown * 2 / 3);
    report::TilePanel panel{.title = each.model, .tiles = {}};
    const auto show = [&](std::int64_t place) {
      const std::int64_t i = order[place].item<std::int64_t>();
      report::Tile tile = tile_of(report.test.inputs[i]);
      const auto name = [&](const Tensor& label) {
        return names.at(std::size_t(label[i].item<std::int64_t>()));
      };
      tile.label = name(answers);
      if (wrong[i].item<bool>()) tile.note = "is " + name(report.test.labels);
      panel.tiles.push_back(std::move(tile));
    };
    const std::int64_t all = report.test.labels.size(0), wrong_all = wrong.sum().item<std::int64_t>();
    for (std::int64_t n = 0; n < wrong_shown; ++n) show(n);
    for (std::int64_t n = wrong_all; n < std::min(all, wrong_all + tiles_shown - wrong_shown); ++n) show(n);
    sheet.panels.push_back(std::move(panel));
    wrong_of += text(wrong_of.empty() ? "" : ", ", each.model, " ", wrong_all);
  }
  return report::tile_sheet(
      {.title = "Test images and answers",
       .idea = "Wrong answers first, the surest of them in front, then right ones. Below each image "
               "the answer, and where it is wrong what the image is.",
       .finding = text("Wrong answers among ", report.test.labels.size(0), ": ", wrong_of, ".")},
      sheet);
}

report::Figure states_over_depth(const ImageReport& report) {
  report::TileSheet sheet{.panels = {}, .columns = depths_shown};
  const std::vector<double> depths = spaced(0, 1, depths_shown);
  std::string moved;
  for (const ImageAnswers& each : report.answers) {
    report::TilePanel panel{.title = each.model, .tiles = {}};
    const Tensor means = each.states.mean(2, /*keepdim=*/true);  // (depths, shown, 1, height, width)
    for (std::int64_t image = 0; image < means.size(1); ++image) {
      const Tensor course = means.select(1, image);
      const Tensor low = course.min(), high = course.max();
      for (std::int64_t n = 0; n < course.size(0); ++n) {
        panel.tiles.push_back(tile_of((course[n] - low) / (high - low).clamp_min(1e-12)));
        if (image == 0) panel.tiles.back().label = "s = " + report::readable(depths[std::size_t(n)]);
      }
    }
    sheet.panels.push_back(std::move(panel));
    const double way =
        (each.states[-1] - each.states[0]).norm().item<double>() / each.states[0].norm().item<double>();
    moved += text(moved.empty() ? "" : ", ", each.model, " ", report::readable(way));
  }
  return report::tile_sheet({.title = "The state along the depth",
                             .idea = "z(s) of a few test images, a row each: the mean over the channels, "
                                     "from black to white over the whole row.",
                             .finding = text("|z(1) - z(0)| relative to |z(0)|: ", moved, ".")},
                            sheet);
}

}  // namespace

Tensor states_shown(ImageModel& model, const Labelled& test) {
  const torch::NoGradGuard no_graph;
  const std::int64_t shown = std::min(states_of, test.labels.size(0));
  return model.states(test.inputs.narrow(0, 0, shown), spaced(0, 1, depths_shown));
}

void claim_rankings(Run& run, const ImageReport& report) {
  const std::vector<std::string> models = listed_models(report);
  const auto has = [&](const std::string& model) {
    return std::count(models.begin(), models.end(), model) > 0;
  };
  for (const std::string& model : models) {
    const double accuracy = run.figure(model, "test accuracy");
    if (!has("NODE") || models.size() == 1)
      run.claim_above(model + ": answers better than by chance, test accuracy at least 0.1", accuracy, 0.1);
    else if (model != "NODE")
      run.claim_above(model + ": more accurate than NODE, difference at least 0",
                      accuracy - run.figure("NODE", "test accuracy"), 0);
  }
  if (has("ANODE") && has("IL-NODE"))
    run.claim_below("IL-NODE: fewer evaluations than ANODE, relative below 1",
                    run.figure("IL-NODE", "NFE") / run.figure("ANODE", "NFE"), 1);
}

void show_images(Run& run, const ImageReport& report) {
  run.show("Table 1", dots(run, report));
  run.show("Table 1", table1(run, report));
  if (report.answers.size() > 1) run.show("Table 1", rankings(run, report));
  run.show("Learning", learning(run, report));
  run.show("Answers", predictions(run, report));
  run.show("Answers", confusions(run, report));
  run.show("Depth", states_over_depth(report));
}

}  // namespace fathom::experiments
