#include "experiments/classifier.hpp"

#include "experiments/plane.hpp"

namespace fathom::experiments {

Classifier::Classifier(std::string model_name, const Field& field, const NeuralOdeOptions& options)
    : name(std::move(model_name)), ode(field, options), whole(ode, torch::nn::Linear(2, 1)) {}

Tensor Classifier::loss(const Labelled& batch) {
  return torch::binary_cross_entropy_with_logits(score(batch.inputs),
                                                 batch.labels.to(batch.inputs.scalar_type()));
}

double Classifier::accuracy(const Labelled& samples) {
  const Tensor answer = without_graph([&] { return score(samples.inputs); });
  return share((answer > 0) == (samples.labels > 0));
}

void Classifier::train(Run& run, const Labelled& samples, std::int64_t iterations) {
  Batches batches = batches_of(samples, run);
  run.train(name, *whole, [&](std::int64_t i) { return loss(batch_of(samples, batches.rows(i))); },
            {.report = [&] { return ode->report(); }, .iterations = iterations});
}

Batches batches_of(const Labelled& samples, const Run& run) {
  return Batches({.samples = samples.inputs.size(0), .size = run.count("batch"), .seed = run.seed()});
}

Labelled batch_of(const Labelled& samples, const Tensor& rows) {
  return {samples.inputs.index_select(0, rows), samples.labels.index_select(0, rows)};
}

}  // namespace fathom::experiments
