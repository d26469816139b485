#include "fathom/train/fit.hpp"

#include <chrono>
#include <cmath>
#include <iomanip>
#include <memory>

#include "fathom/support/error.hpp"
#include "fathom/train/progress.hpp"

namespace fathom {

namespace {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::vector<Tensor>& parameters,
                                                        const FitOptions& options) {
  const double rate = options.learning_rate, decay = options.weight_decay;
  switch (options.optimizer) {
    case Optimizer::adam:
      return std::make_unique<torch::optim::Adam>(parameters,
                                                  torch::optim::AdamOptions(rate).weight_decay(decay));
    case Optimizer::adamw:
      return std::make_unique<torch::optim::AdamW>(parameters,
                                                   torch::optim::AdamWOptions(rate).weight_decay(decay));
    case Optimizer::sgd:
      return std::make_unique<torch::optim::SGD>(parameters,
                                                 torch::optim::SGDOptions(rate).weight_decay(decay));
  }
  throw InvalidArgument("unknown optimiser");
}

void check(const FitOptions& options) {
  require(options.iterations >= 1, "`iterations` must be at least 1, got ", options.iterations);
  require(options.learning_rate > 0, "`learning_rate` must be positive, got ", options.learning_rate);
  require(options.weight_decay >= 0, "`weight_decay` must not be negative, got ", options.weight_decay);
}

}  // namespace

FitHistory fit(torch::nn::Module& model, const std::function<Tensor(std::int64_t)>& loss,
               const FitOptions& options) {
  check(options);
  const auto optimizer = make_optimizer(model.parameters(), options);
  Progress progress(options.title, options.iterations, options.quiet);
  FitHistory history;
  const auto began = std::chrono::steady_clock::now();
  for (std::int64_t iteration = 0; iteration < options.iterations; ++iteration) {
    optimizer->zero_grad();
    const Tensor value = loss(iteration);
    const double figure = value.item<double>();
    if (!std::isfinite(figure)) {
      throw Error(text("the loss became ", figure, " in iteration ", iteration + 1,
                       "; lower `learning_rate` or check the data for NaN"));
    }
    value.backward();
    optimizer->step();
    const ode::SolveReport work = options.report ? options.report() : ode::SolveReport{};
    history.losses.push_back(figure);
    history.evaluations.push_back(work.evaluations);
    history.backward_evaluations.push_back(work.backward_evaluations);
    std::ostringstream figures;
    figures << "loss " << std::setprecision(4) << figure;
    if (options.report) figures << "  NFE " << work.evaluations << "+" << work.backward_evaluations;
    progress.update(iteration + 1, figures.str());
    history.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const FitRecord record{iteration + 1, figure, work.evaluations, work.backward_evaluations,
                           history.seconds};
    if (options.observer && !options.observer(record)) break;
  }
  return history;
}

std::int64_t parameter_count(const torch::nn::Module& model) {
  std::int64_t count = 0;
  for (const Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace fathom
