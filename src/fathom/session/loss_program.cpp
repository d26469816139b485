#include "fathom/session/loss_program.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "fathom/session/layers.hpp"
#include "fathom/support/error.hpp"

namespace fathom::session {

namespace {

using fused::Builder;
using fused::Rows;

bool needs_targets(LossFunction function) {
  return function == LossFunction::squares || function == LossFunction::absolute ||
         function == LossFunction::huber;
}

bool same_layers(const std::vector<Layer>& a, const std::vector<Layer>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Layer& one, const Layer& other) {
    return one.features == other.features && one.activation == other.activation;
  });
}

void check_head(const std::vector<Layer>& head) {
  for (const Layer& layer : head) {
    require(std::holds_alternative<std::monostate>(layer.basis) && !layer.reads_depth,
            "the head of a loss does not vary with depth; give its layers no basis and no depth");
  }
}

}  // namespace

template <class T> bool LossProgram<T>::Key::holds_for(const Loss<T>& loss, std::int64_t features_) const {
  return function == loss.function && threshold == loss.huber_threshold && features == features_ &&
         has_mask == bool(loss.mask) && same_layers(head, loss.head);
}

template <class T> void LossProgram<T>::build(const Loss<T>& loss, std::int64_t features) {
  check_head(loss.head);
  Builder build(std::int32_t(features), 1);
  Layers layers(build, loss.head, features);
  fused::Network net(build, build.state());
  layers.write(net);
  const Rows answer = net.output();
  const std::int32_t targets = std::int32_t(layers.parameters().size());
  const auto input = [&](std::int32_t place, std::int32_t count) {
    return build.input(targets + place, count);
  };
  // Of numbers that do not count, answer and target are 0.
  const bool masks_numbers = loss.mask && needs_targets(loss.function);
  const Rows seen = masks_numbers ? build.multiply(answer, input(1, answer.count)) : answer;
  Rows value = {};
  switch (loss.function) {
    case LossFunction::none: value = build.zeros(1); break;
    case LossFunction::squares: value = build.distance(seen, input(0, seen.count)); break;
    case LossFunction::absolute: value = build.absolute(seen, input(0, seen.count)); break;
    case LossFunction::huber:
      require(loss.huber_threshold > 0, "`huber_threshold` must be positive, got ", loss.huber_threshold);
      value = build.huber(seen, input(0, seen.count), loss.huber_threshold);
      break;
    case LossFunction::cross_entropy: value = build.cross_entropy(answer, input(0, 1)); break;
    case LossFunction::normal_likelihood: value = build.squares(answer); break;
  }
  if (loss.mask && !masks_numbers) value = build.scale(value, input(1, 1));
  build.give_loss(0, value);
  build.give(build.zeros(build.state().count));
  program_ = std::make_shared<fused::Program>(std::move(build).finish());
  parameters_ = layers.parameters();
  answers_ = answer.count;
  key_ = {loss.function, loss.huber_threshold, loss.head, features, bool(loss.mask)};
}

/// Do the numbers belong to the last depth alone?
template <class T> bool LossProgram<T>::find_points(const Loss<T>& loss, const LossRows& rows) const {
  const auto is_at_end = [&](std::int64_t given, const char* what) {
    require(given == rows.batch || given == rows.all, "`", what, "` must have a row for each of the ",
            rows.batch, " samples at the last depth, or at all depths (", rows.all, " rows), got ", given);
    return given == rows.batch;
  };
  bool at_end = true;
  if (needs_targets(loss.function)) {
    require(bool(loss.targets), "the loss needs `targets`, got none");
    require(loss.targets.columns == answers_, "`targets` need a number for each of the ", answers_,
            " features of an answer, got ", loss.targets.columns);
    at_end = is_at_end(loss.targets.rows, "targets");
  } else if (loss.function == LossFunction::cross_entropy) {
    require(!loss.labels.empty(), "the cross entropy needs `labels`, got none");
    at_end = is_at_end(std::int64_t(loss.labels.size()), "labels");
  } else if (loss.mask) {
    at_end = is_at_end(loss.mask.rows, "mask");
  }
  if (loss.mask) {
    const bool by_number = loss.mask.columns == answers_ && needs_targets(loss.function);
    require(loss.mask.columns == 1 || by_number,
            "`mask` needs one column, or one for each number that counts (",
            needs_targets(loss.function) ? answers_ : 1, "), got ", loss.mask.columns);
    require(is_at_end(loss.mask.rows, "mask") == at_end, "`mask` needs as many rows as the targets, got ",
            loss.mask.rows);
  }
  return at_end;
}

template <class T>
bool LossProgram<T>::read(const Loss<T>& loss, const ProgramField& field, const LossRows& rows) {
  if (!program_ || !key_.holds_for(loss, field.features())) build(loss, field.features());
  at_end_ = find_points(loss, rows);
  of_point_ = rows.of_point;
  points_ = std::size_t((at_end_ ? rows.batch : rows.all) / of_point_);
  tensors_.clear();
  std::size_t place = 0;
  for (const Parameter& parameter : parameters_) place += std::size_t(parameter.size());
  require(loss.head_parameters.size() == place, "`head_parameters` must be the ", place,
          " numbers of the head, got ", loss.head_parameters.size());
  place = 0;
  for (const Parameter& parameter : parameters_) {
    tensors_.push_back(loss.head_parameters.subspan(place, std::size_t(parameter.size())));
    place += std::size_t(parameter.size());
  }
  const double numbers = double(of_point_) * double(needs_targets(loss.function) ? answers_ : 1);
  counted_.assign(points_, numbers);
  if (loss.function == LossFunction::cross_entropy) {
    read_labels(loss);
  } else if (needs_targets(loss.function)) {
    loss.mask ? read_masked_targets(loss) : read_targets(loss);
  } else if (loss.mask) {
    read_labels(loss);
  }
  require(loss.depth_weights.empty() || loss.depth_weights.size() == points_,
          "`depth_weights` need one number for each of the ", points_, " depths with targets, got ",
          loss.depth_weights.size());
  shares_.assign(points_, 1.0);
  double total = 0;
  for (std::size_t p = 0; p < points_; ++p) {
    if (!loss.depth_weights.empty()) shares_[p] = loss.depth_weights[p];
    require(std::isfinite(shares_[p]) && shares_[p] >= 0,
            "`depth_weights` must be finite and not negative, got ", shares_[p]);
    total += shares_[p] * counted_[p];
  }
  require(total > 0, "a loss needs a number that counts; all are masked, or have the weight 0");
  // rho is |a|^2 / 2 where the program gives |a|^2.
  const double part = loss.function == LossFunction::normal_likelihood ? 0.5 : 1;
  for (double& share : shares_) share *= part / total;
  require(loss.running_weights.empty() || std::int64_t(loss.running_weights.size()) == field.running_losses(),
          "`running_weights` need one number for each of the ", field.running_losses(),
          " running losses, got ", loss.running_weights.size());
  running_.assign(loss.running_weights.begin(), loss.running_weights.end());
  for (double& weight : running_) weight /= double(rows.batch);
  return at_end_;
}

template <class T> void LossProgram<T>::read_targets(const Loss<T>& loss) {
  tensors_.push_back({loss.targets.data, loss.targets.size()});
}

template <class T>
bool LossProgram<T>::counts(const Loss<T>& loss, std::size_t row, std::size_t column) const {
  const std::size_t columns = std::size_t(loss.mask.columns);
  return loss.mask.data[row * columns + (columns == 1 ? 0 : column)] != 0;
}

template <class T> void LossProgram<T>::read_masked_targets(const Loss<T>& loss) {
  const std::size_t columns = std::size_t(answers_), rows = std::size_t(of_point_) * points_;
  targets_.resize(rows * columns), mask_.resize(rows * columns);
  std::fill(counted_.begin(), counted_.end(), 0.0);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const bool is_in = counts(loss, row, column);
      const std::size_t n = row * columns + column;
      mask_[n] = T(is_in ? 1 : 0);
      targets_[n] = is_in ? loss.targets.data[n] : T(0);
      counted_[row / std::size_t(of_point_)] += is_in ? 1 : 0;
    }
  }
  tensors_.push_back(targets_);
  tensors_.push_back(mask_);
}

/// Labels, where there are any, and a mask of samples.
template <class T> void LossProgram<T>::read_labels(const Loss<T>& loss) {
  const std::size_t rows = std::size_t(of_point_) * points_;
  targets_.resize(rows);
  if (loss.mask) mask_.resize(rows);
  if (loss.mask) std::fill(counted_.begin(), counted_.end(), 0.0);
  for (std::size_t row = 0; row < rows; ++row) {
    const bool is_in = !loss.mask || counts(loss, row, 0);
    const std::int64_t label = is_in && !loss.labels.empty() ? loss.labels[row] : 0;
    require(label >= 0 && label < std::max<std::int64_t>(answers_, 1), "labels must be 0 to ", answers_ - 1,
            " for ", answers_, " scores, got ", label);
    targets_[row] = T(label);
    if (!loss.mask) continue;
    mask_[row] = T(is_in ? 1 : 0);
    counted_[row / std::size_t(of_point_)] += is_in ? 1 : 0;
  }
  tensors_.push_back(targets_);
  if (loss.mask) tensors_.push_back(mask_);
}

template <class T> LossCall<T> LossProgram<T>::call() const {
  return {
      .program = program_, .tensors = &tensors_, .shares = shares_, .running = running_, .at_end = at_end_};
}

template <class T> double LossProgram<T>::constant() const {
  return key_.function == LossFunction::normal_likelihood
             ? 0.5 * double(answers_) * std::log(2 * std::numbers::pi)
             : 0;
}

template <class T>
void LossProgram<T>::write_gradient(const fused::EndLoss<T>& loss, std::span<T> head) const {
  T* to = head.data();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const double* from = loss.gradient().data() + loss.weights().tensor_begin(i);
    for (std::int64_t n = 0; n < parameters_[i].size(); ++n) *to++ = T(from[n]);
  }
}

template class LossProgram<float>;
template class LossProgram<double>;

}  // namespace fathom::session
