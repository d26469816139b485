/// What fit() needs of a model and its data: a loss for every iteration and figures that judge it, for each task.
///   rows      L(head(z(S)), y) + kinetic int |f|^2 ds,  z(0) = h_x(x)
///   density   -log p(x)
///   series    sum over windows and their later times of L(x(t_j), z(t_j)),  z(t_0) = x(t_0)
///
///   const LearnOptions options{.loss = LossKind::cross_entropy, .batch = 32};
///   fit(*model, learn(model, rows, options), {.validation = {.figures = [&] { return judged(model, others, options); }}});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fathom/train/fit.hpp"
#include "fathom/train/model.hpp"

namespace fathom {

enum class LossKind { mse, l1, huber, cross_entropy, likelihood };
template <> const NameTable<LossKind>& names<LossKind>();

struct LearnOptions {
  LossKind loss = LossKind::mse;
  double kinetic = 0;       ///< weight of the running loss |f|^2; not for densities
  std::int64_t batch = 0;   ///< rows or windows an iteration; 0: all
  std::int64_t window = 8;  ///< of a series: observations after the start; 0: all that follow
  std::uint64_t seed = 0;   ///< of the order of data
};

/// Standardised, in the model's precision.
struct Rows {
  Tensor inputs;   ///< (rows, inputs)
  Tensor targets;  ///< (rows) numbers of labels, (rows, targets), or undefined for a density
};

/// One observed course: states at times that go up. Standardised; times in units of depth.
struct Course {
  std::string name;
  std::vector<double> times;
  Tensor states;  ///< (times, columns)
};

using LossOfIteration = std::function<Tensor(std::int64_t iteration)>;

/// The mean loss of a batch; throws InvalidArgument where the loss does not fit the task. The model must outlive it.
LossOfIteration learn(Model& model, const Rows& rows, const LearnOptions& options);
LossOfIteration learn(Model& model, const std::vector<Course>& courses, const LearnOptions& options);

/// The loss first, then what people ask for: accuracy; rmse, mae and R2 in the units of the data; nll in nats a row.
Figures judged(Model& model, const Rows& rows, const LearnOptions& options);
/// The rmse is in deviations of the columns, over windows that do not overlap.
Figures judged(Model& model, const std::vector<Course>& courses, const LearnOptions& options);

/// Scores, standardised targets or log densities of many rows, a bounded number at a time, without graph.
Tensor answers(Model& model, const Tensor& inputs);

}  // namespace fathom
