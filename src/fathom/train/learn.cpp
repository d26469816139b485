#include "fathom/train/learn.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "fathom/model/regularizers.hpp"
#include "fathom/support/error.hpp"
#include "fathom/train/batches.hpp"
#include "fathom/train/chunks.hpp"
#include "fathom/train/windows.hpp"

namespace fathom {

template <> const NameTable<LossKind>& names<LossKind>() {
  static const NameTable<LossKind> table = {{LossKind::mse, "mse"},
                                            {LossKind::l1, "l1"},
                                            {LossKind::huber, "huber"},
                                            {LossKind::cross_entropy, "cross-entropy"},
                                            {LossKind::likelihood, "likelihood"}};
  return table;
}

namespace {

// When judging: a joint solve keeps (times of all windows) x (windows) states.
constexpr std::size_t windows_at_once = 64;

void check_loss(const Model& model, const LearnOptions& options) {
  const Task task = model->spec().task;
  const LossKind only = task == Task::classification ? LossKind::cross_entropy : LossKind::likelihood;
  const bool free = task == Task::regression || task == Task::series;
  const bool fits = free ? options.loss <= LossKind::huber : options.loss == only;
  require(fits, "the loss of a ", name_of(task), " is ", free ? "mse, l1 or huber" : name_of(only), ", got `",
          name_of(options.loss), "`");
  require(options.kinetic >= 0, "the weight of the kinetic energy must not be negative, got ",
          options.kinetic);
  require(options.kinetic == 0 || task != Task::density,
          "the flow of a density has no kinetic energy loss; leave it out");
}

Tensor loss_between(LossKind kind, const Tensor& answer, const Tensor& target) {
  switch (kind) {
    case LossKind::mse: return torch::mse_loss(answer, target);
    case LossKind::l1: return torch::l1_loss(answer, target);
    case LossKind::huber: return torch::huber_loss(answer, target);
    case LossKind::cross_entropy: return torch::nn::functional::cross_entropy(answer, target);
    case LossKind::likelihood: return -answer.mean();
  }
  throw InvalidArgument("unknown loss");
}

Tensor loss_with_energy(Model& model, const Tensor& inputs, const Tensor& targets,
                        const LearnOptions& options) {
  const Solution solution = model->ode()->solve(inputs);
  const Tensor answer = model->answer(solution.states[-1]);
  return loss_between(options.loss, answer, targets) + options.kinetic * solution.running_loss[-1].mean();
}

void add_energy(Model& model, const LearnOptions& options) {
  if (options.kinetic > 0) model->ode()->options().running_losses = {kinetic_energy()};
}

/// Prediction minus truth at all later times of the windows, (observations, columns).
struct Compared {
  Tensor predicted, observed;
};
Compared compare(Model& model, const JointTimes& joint) {
  const Tensor states = model->trajectory(joint.starts, joint.depths);  // (depths, windows, columns)
  return {states.flatten(0, 1).index_select(0, joint.places), joint.observed};
}

Figures regression_figures(const Tensor& answer, const Rows& rows, const ModelSpec& spec) {
  const Tensor predicted = unstandardised(answer, spec.target_scale);
  const Tensor truth = unstandardised(rows.targets, spec.target_scale);
  const Tensor error = predicted - truth;
  const double spread = (truth - truth.mean(0)).square().sum().item<double>();
  Figures figures = {{"rmse", std::sqrt(error.square().mean().item<double>())},
                     {"mae", error.abs().mean().item<double>()}};
  if (spread > 0) figures.emplace_back("R2", 1 - error.square().sum().item<double>() / spread);
  return figures;
}

}  // namespace

LossOfIteration learn(Model& model, const Rows& rows, const LearnOptions& options) {
  check_loss(model, options);
  add_energy(model, options);
  const auto batches = std::make_shared<Batches>(
      BatchOptions{.samples = rows.inputs.size(0), .size = options.batch, .seed = options.seed});
  return [&model, rows, options, batches](std::int64_t iteration) {
    const bool all = batches->per_epoch() == 1;
    const Tensor chosen = all ? Tensor() : batches->rows(iteration);
    const Tensor inputs = all ? rows.inputs : rows.inputs.index_select(0, chosen);
    const Tensor targets =
        all || !rows.targets.defined() ? rows.targets : rows.targets.index_select(0, chosen);
    if (options.kinetic > 0) return loss_with_energy(model, inputs, targets, options);
    if (options.loss == LossKind::mse) return model->loss(inputs, targets, AnswerLoss::mse);
    if (options.loss == LossKind::cross_entropy)
      return model->loss(inputs, targets, AnswerLoss::cross_entropy);
    return loss_between(options.loss, model->forward(inputs), targets);
  };
}

LossOfIteration learn(Model& model, const std::vector<Course>& courses, const LearnOptions& options) {
  check_loss(model, options);
  require(options.kinetic == 0,
          "a series has no kinetic energy loss: its speed is given by the data; leave it out");
  const auto windows = std::make_shared<std::vector<Window>>(
      all_windows(courses, {.length = options.window, .overlapping = true}));
  require(!windows->empty(), "a series needs at least two observations to learn from");
  const auto batches = std::make_shared<Batches>(
      BatchOptions{.samples = std::int64_t(windows->size()), .size = options.batch, .seed = options.seed});
  const auto joint = std::make_shared<JointTimes>();
  return [&model, courses, options, windows, batches, joint](std::int64_t iteration) {
    if (batches->per_epoch() > 1 || joint->depths.empty()) {
      const Tensor rows = batches->rows(iteration);
      std::vector<Window> chosen;
      for (const std::int64_t row : c10::ArrayRef(rows.data_ptr<std::int64_t>(), std::size_t(rows.numel())))
        chosen.push_back((*windows)[std::size_t(row)]);
      *joint = joint_times(courses, chosen);
    }
    const Compared compared = compare(model, *joint);
    return loss_between(options.loss, compared.predicted, compared.observed);
  };
}

Tensor answers(Model& model, const Tensor& inputs) {
  const torch::NoGradGuard no_graph;
  return in_chunks(inputs.size(0), [&](std::int64_t first, std::int64_t count) {
    return model->forward(inputs.narrow(0, first, count));
  });
}

Figures judged(Model& model, const Rows& rows, const LearnOptions& options) {
  const Tensor answer = answers(model, rows.inputs);
  Figures figures = {{"loss", loss_between(options.loss, answer, rows.targets).item<double>()}};
  switch (model->spec().task) {
    case Task::classification:
      figures.emplace_back("accuracy",
                           (answer.argmax(1) == rows.targets).to(torch::kFloat64).mean().item<double>());
      break;
    case Task::regression:
      for (const auto& figure : regression_figures(answer, rows, model->spec())) figures.push_back(figure);
      break;
    case Task::density: {
      double volume = 0;  // of the standardised unit cube in the units of the data
      for (const double deviation : model->spec().input_scale.deviation) volume += std::log(deviation);
      figures.emplace_back("nll", figures.front().second + volume);
      break;
    }
    case Task::series: throw InvalidArgument("a series is judged by its courses, not by rows");
  }
  return figures;
}

Figures judged(Model& model, const std::vector<Course>& courses, const LearnOptions& options) {
  const torch::NoGradGuard no_graph;
  const auto windows = all_windows(courses, {.length = options.window, .overlapping = false});
  require(!windows.empty(), "a series needs at least two observations to be judged by");
  std::vector<Tensor> predicted, observed;
  for (std::size_t first = 0; first < windows.size(); first += windows_at_once) {
    const auto begin = windows.begin() + std::ptrdiff_t(first);
    const auto count = std::ptrdiff_t(std::min(windows_at_once, windows.size() - first));
    const Compared compared = compare(model, joint_times(courses, {begin, begin + count}));
    predicted.push_back(compared.predicted);
    observed.push_back(compared.observed);
  }
  const Tensor all_predicted = torch::cat(predicted), all_observed = torch::cat(observed);
  return {{"loss", loss_between(options.loss, all_predicted, all_observed).item<double>()},
          {"rmse", std::sqrt(torch::mse_loss(all_predicted, all_observed).item<double>())}};
}

}  // namespace fathom
