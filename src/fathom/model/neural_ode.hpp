/// A Neural ODE as a torch module: z(0) = input, z' = f(s, x, z), output z(S). Fits into torch::nn::Sequential.
///
///   torch::nn::Sequential model(ZeroAugmentation(2), NeuralOde(controlled(net)), torch::nn::Linear(4, 1));
///   model->forward(x);
///
/// The control x of a controlled field is the module's own input unless another one is given; to control by the raw input
/// of the whole model, let the module apply the input layer itself:
///   NeuralOde(controlled(net), NeuralOdeOptions{.input_layer = h_x})
///
/// Adaptive steps are those of the whole batch: they follow from an error over all its samples, so that the answer for a sample depends,
/// within the tolerance, on the samples beside it (a row alone and among 1000 differed by 1.2e-4 at a tolerance of 1e-4).
/// `steps_per_sample` makes them independent.
///
/// Several threads may solve with one model, as long as none changes its weights or options meanwhile.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fathom/field/any_layer.hpp"
#include "fathom/field/field.hpp"
#include "fathom/field/lowering_memo.hpp"
#include "fathom/field/running_loss.hpp"
#include "fathom/model/last_reports.hpp"
#include "fathom/sensitivity/backward.hpp"
#include "fathom/sensitivity/solve.hpp"

namespace fathom {

struct EndProgram;
class KeptLoss;

struct NeuralOdeOptions {
  double first = 0;
  double last = 1;  ///< S
  Solver solver = {};
  Sensitivity sensitivity = Discrete{};
  /// Every sample has steps of its own and finishes on its own, as if it were alone: for answers that do not depend on the batch, and
  /// for batches of mixed stiffness, where joint steps would be the smallest of all. The report then gives means over the
  /// samples, rounded up.
  bool steps_per_sample = false;
  AnyLayer input_layer = {};  ///< h_x, one layer or a Sequential; then the control is its input, the raw x
  std::vector<RunningLoss> running_losses =
      {};  ///< integrals are in Solution::running_loss, (depths, batch[, losses])
};

/// How an answer is read from z(S) and held against what is wanted.
struct Answer {
  std::optional<Net> head = {};  ///< a layer or a Sequential; none: z(S) is the answer
  AnswerLoss loss = AnswerLoss::mse;
};

class NeuralOdeImpl : public torch::nn::Module {
 public:
  explicit NeuralOdeImpl(Field field, NeuralOdeOptions options = {});

  /// z(S)
  Tensor forward(const Tensor& x);
  /// z(S) with a control of its own: a condition, a label, any tensor with the batch of x.
  Tensor forward_with(const Tensor& x, const Tensor& control);
  /// The loss of head(z(S)) against y: the same as `mse_loss(head(forward(x)), y)` or `cross_entropy(...)`, to rounding. Where field
  /// and head have kernels it is one piece, forwards and backwards, without a graph in between: small models train
  /// faster. The head stays the caller's: its parameters go to the optimiser with those of the ode. Labels are 0, 1, ...; none is
  /// ignored.
  ///   backward(ode->loss(x, y, {.head = head}));  // or ....backward(): the same through torch's engine, which takes its time
  Tensor loss(const Tensor& x, const Tensor& y, const Answer& answer = {});
  /// The mean over the samples of the running losses' sum: the same as `solve(x).running_loss[-1].sum() / batch`, to rounding, and
  /// in one piece like loss().
  Tensor running_loss(const Tensor& x);
  /// (depths, batch, ...)
  Tensor trajectory(const Tensor& x, const std::vector<double>& depths);
  /// z as a function of depth, without graph.
  Interpolant dense(const Tensor& x);

  /// The solve itself: states, running losses, report. `depths` empty: from `first` to `last`. An undefined control is x.
  Solution solve(const Tensor& x, const std::vector<double>& depths = {}, const Tensor& control = {});
  /// The same with samples that run to depths of their own: s = scale tau for tau in [0, 1], scale (batch) >= 0.
  Solution solve_scaled(const Tensor& x, const Tensor& scale, const std::vector<double>& fractions = {0, 1},
                        const Tensor& control = {});

  /// f(s, x, z) itself.
  Tensor rate(double s, const Tensor& x, const Tensor& z);

  /// Of the last solve; counts grow when its gradients are computed.
  SolveReport report() const { return reports_.mean(); }

  const Field& field() const { return field_; }
  NeuralOdeOptions& options() { return options_; }
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

 private:
  Solution run(const Tensor& x, const std::vector<double>& depths, const Tensor& control, const Tensor& scale,
               const Solver& solver);
  /// The field with all that it reads besides z, for samples that start at z0.
  VectorField vector_field_of(const Tensor& z0, const Tensor& control, const Tensor& scale,
                              const Solver& solver);
  /// z0, and the control and scale of the same samples.
  Solution run_from(const Tensor& z0, const std::vector<double>& depths, const Tensor& control,
                    const Tensor& scale, const Solver& solver);
  /// The same, with steps for each sample where that is asked for.
  Solution run_from_start(const Tensor& z0, const std::vector<double>& depths, const Tensor& control,
                          const Tensor& scale, const Solver& solver);
  /// In one piece; undefined where that cannot be.
  Tensor fused_loss(const Tensor& z0, const Tensor& x, const Tensor& y, DepthModule* head, AnswerLoss loss);
  /// For samples that start at z0, where a loss of theirs can be had in one piece.
  std::optional<VectorField> field_in_one_piece(const Tensor& z0, const Tensor& x);
  Tensor loss_in_one_piece(const VectorField& field, const Tensor& z0, const EndProgram& end);
  Solution run_one_by_one(const Tensor& z0, const std::vector<double>& depths, const Tensor& control,
                          const Tensor& scale, const Solver& solver);

  Field field_;
  NeuralOdeOptions options_;
  std::shared_ptr<KeptLoss> kept_;  // for the next loss in one piece
  LoweringMemo memo_;
  LastReports reports_;
};

class NeuralOde : public torch::nn::ModuleHolder<NeuralOdeImpl> {
 public:
  using torch::nn::ModuleHolder<NeuralOdeImpl>::ModuleHolder;
  explicit NeuralOde(Field field, NeuralOdeOptions options = {})
      : ModuleHolder(std::make_shared<NeuralOdeImpl>(std::move(field), std::move(options))) {}
};

}  // namespace fathom
