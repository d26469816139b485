/// E3, Table 1: MNIST and CIFAR-10 by a Neural ODE on the pixels (NODE), with channels of zeros (ANODE), behind a linear input
/// layer (IL-NODE), and of second order. AdamW 1e-3, times 0.9 every 5 epochs, weight decay 5e-4, 20 epochs in batches of 64,
/// cross entropy, dopri5 at 1e-4 with the error of the whole batch. Where z(0) has more channels than the image, the flow has
/// room: it ends more accurate and needs fewer evaluations.
#include <algorithm>
#include <cmath>

#include "experiments/image_models.hpp"
#include "experiments/image_views.hpp"
#include "experiments/plane.hpp"
#include "experiments/run.hpp"
#include "fathom/data/images.hpp"
#include "fathom/train/batches.hpp"

namespace fathom::experiments {

namespace {

struct Kind {
  std::string flag;
  std::string name;
  ImageKind kind;
};

const std::vector<Kind>& all_kinds() {
  static const std::vector<Kind> kinds = {{"node", "NODE", ImageKind::node},
                                          {"anode", "ANODE", ImageKind::anode},
                                          {"il", "IL-NODE", ImageKind::input_layer},
                                          {"second", "2nd order", ImageKind::second_order}};
  return kinds;
}

std::vector<Kind> chosen_kinds(const Run& run) {
  std::vector<Kind> chosen;
  for (const Kind& each : all_kinds()) {
    if (run.choice("model") == each.flag || run.choice("model") == "all") chosen.push_back(each);
  }
  return chosen;
}

/// Averaged down to the side; smaller images stay as they are.
Labelled shrunk(const Labelled& images, std::int64_t side) {
  if (images.inputs.size(2) <= side && images.inputs.size(3) <= side) return images;
  return {at::adaptive_avg_pool2d(images.inputs, {side, side}), images.labels};
}

struct Sets {
  Labelled train, test;

  std::int64_t channels() const { return train.inputs.size(1); }
  std::int64_t side() const { return train.inputs.size(2); }
};

Sets read_sets(const Run& run) {
  if (run.images().empty()) throw Error("the experiment `images` needs a folder of images, got none");
  const std::int64_t side = run.count("side");
  const auto read = [&](ImagePart part, const std::string& count) {
    return shrunk(read_images(run.images(), part, run.count(count)), side);
  };
  return {read(ImagePart::train, "train-images"), read(ImagePart::test, "test-images")};
}

/// Scores of all images, some at a time, without graph.
Tensor scores_of(torch::nn::Sequential& model, const Tensor& images) {
  constexpr std::int64_t at_once = 100;
  const torch::NoGradGuard no_graph;
  std::vector<Tensor> scores;
  for (const Tensor& some : images.split(at_once)) scores.push_back(model->forward(some));
  return torch::cat(scores);
}

/// Trains as the paper did, and notes how it went.
void train(Run& run, const std::string& name, torch::nn::Sequential& model, const Sets& sets, Run::How how) {
  Batches batches({.samples = sets.train.labels.size(0), .size = run.count("batch"), .seed = run.seed()});
  const std::int64_t per_epoch = batches.per_epoch();
  how.optimizer = Optimizer::adamw;
  how.schedule = {.decay = StepDecay{.every = 5 * per_epoch, .factor = 0.9}};
  how.iterations = run.count("epochs") * per_epoch;
  how.counted = std::max<std::int64_t>(1, how.iterations / 10);
  how.time_budget = run.number("budget") / double(chosen_kinds(run).size());
  how.has_checkpoints = true;
  const auto loss = [&](std::int64_t iteration) {
    const Tensor rows = batches.rows(iteration);
    return torch::nn::functional::cross_entropy(model->forward(sets.train.inputs.index_select(0, rows)),
                                                sets.train.labels.index_select(0, rows));
  };
  const FitHistory history = run.train(name, *model, loss, how);
  const double epochs = double(history.iteration) / double(per_epoch);
  run.note(name, "epochs", epochs);
  run.note(name, "share of the paper's training",
           epochs * double(sets.train.labels.size(0)) / double(paper_images(sets.channels()) * paper_epochs));
}

ImageAnswers judge(Run& run, const std::string& name, torch::nn::Sequential& model, const Sets& sets) {
  const Tensor scores = scores_of(model, sets.test.inputs);
  run.note(name, "test accuracy", share(scores.argmax(1) == sets.test.labels));
  run.note(name, "test loss", torch::nn::functional::cross_entropy(scores, sets.test.labels).item<double>());
  return {.model = name, .scores = scores};
}

void run_images(Run& run) {
  const Sets sets = read_sets(run);
  ImageReport report{.test = sets.test, .train_images = sets.train.labels.size(0)};
  for (const Kind& each : chosen_kinds(run)) {
    // Every model begins with the same state of the generator, whichever others are trained, in this sitting or another.
    torch::manual_seed(run.seed());
    ImageModel model = image_model(
        each.kind, {.channels = sets.channels(),
                    .velocity = run.choice("velocity") == "learned" ? Velocity::learned : Velocity::zero,
                    .ode = run.ode()});
    train(run, each.name, model.whole, sets, {.report = [&] { return model.ode->report(); }});
    report.answers.push_back(judge(run, each.name, model.whole, sets));
    report.answers.back().states = states_shown(model, sets.test);
  }
  torch::manual_seed(run.seed());
  torch::nn::Sequential linear = linear_classifier(sets.channels(), sets.side());
  train(run, "linear", linear, sets, {});
  judge(run, "linear", linear, sets);
  torch::manual_seed(run.seed());
  torch::nn::Sequential plain = plain_network(sets.channels());
  train(run, "plain CNN", plain, sets, {});
  judge(run, "plain CNN", plain, sets);
  claim_rankings(run, report);
  show_images(run, report);
}

}  // namespace

Experiment images() {
  return {
      .id = "E3",
      .name = "images",
      .title = "Classifying images: Table 1",
      .summary =
          "image classifiers of Table 1: accuracy, evaluations and parameters of four kinds of Neural ODE",
      .claim =
          "On images, a Neural ODE whose state has more channels than the image, by zeros, by an input layer "
          "or by "
          "velocities, is more accurate than one on the pixels themselves; with an input layer or of second "
          "order it "
          "also needs fewer evaluations.",
      .settings = {{"train-images", 1280, 5120, 60000, "first so many of the training set, or all it has"},
                   {"test-images", 500, 2000, 10000, "likewise of the test set"},
                   {"epochs", 1, 1, 20, "through the training images"},
                   {"side", 14, 14, 32,
                    "pixels; larger images are averaged down to it, smaller stay as they are"},
                   {"batch", 64, 64, 64, "images an iteration"},
                   {"learning-rate", 1e-3, 1e-3, 1e-3, "of AdamW, times 0.9 every 5 epochs"},
                   {"weight-decay", 5e-4, 5e-4, 5e-4, "of AdamW"},
                   {"tolerance", 1e-4, 1e-4, 1e-4, "of the solver"},
                   {"budget", 0, 0, 0, "seconds that the training of all models may take; 0: no limit"}},
      .choices =
          {{"data", "fashion-mnist", {}, "an image set of `fathom data list`, or a folder with such files"},
           {"model", "all", {"all", "node", "anode", "il", "second"}, "what is trained"},
           {"velocity", "zero", {"zero", "learned"}, "where velocities of the second order begin"}},
      .run = run_images};
}

}  // namespace fathom::experiments
