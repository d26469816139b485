/// A ragged batch: each sample is solved by itself, over depths of its own and in steps of its own, and a loss is taken of all points at once.
/// A point is a sample at one of its depths; points lie one sample after the other, with the state rows of each: features and running losses.
///
///   PerSample<float> work(program, options, breaks);
///   const SolveReport& report = work.solve({.tensors = tensors, .start = z0, .batch = batch, .depths = depths, .counts = counts}, true);
///   work.saved();                                          // (points, state rows)
///   const auto& gradient = work.pull_back(adjoints, wanted);
///
/// All that a gradient needs of a call is copied.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fathom/fused/apart.hpp"
#include "fathom/fused/end_loss.hpp"
#include "fathom/session/workspace.hpp"

namespace fathom::session {

template <class T> class PerSample {
 public:
  PerSample(std::shared_ptr<const fused::Program> program, const SolveOptions& options,
            std::vector<double> break_points);

  struct Call {
    const fused::Tensors<T>& tensors;
    const T* start = nullptr;  ///< (batch, features); running losses begin at 0
    std::int64_t batch = 0;
    std::span<const double> depths = {};        ///< (points)
    std::span<const std::int64_t> counts = {};  ///< (batch)
  };
  /// With `keeps`, a gradient may be asked for.
  const SolveReport& solve(const Call& call, bool keeps);
  std::span<const T> saved() const { return saved_; }

  struct Gradient {
    std::vector<double> weights;         ///< (Weights::gradient_size)
    std::vector<T> start;                ///< (batch, features)
    std::vector<std::vector<T>> inputs;  ///< (batch, features) of each input of the program
    std::vector<double> depths;          ///< (points)
  };
  /// From dL/d(saved). The answer stays until the next gradient.
  const Gradient& pull_back(std::span<const T> adjoints, const fused::SweepWanted& wanted);

  /// A loss of the points, or of each sample's last one, in a call whose points lie as a batch of one.
  double loss(const Call& call, const LossCall<T>& loss, const typename Workspace<T>::Wanted& wanted);
  const Gradient& gradient() const { return gradient_; }
  const fused::EndLoss<T>& end_loss() const { return *end_loss_; }
  const fused::Weights<T>& weights() const { return apart_->weights(); }

  std::int64_t batch() const { return batch_; }
  std::size_t points() const { return request_.depths.size(); }
  const SolveReport& report() const { return report_; }
  std::span<const SolveReport> reports() const { return reports_; }
  std::size_t bytes() const;

 private:
  void copy(const Call& call);
  std::size_t last_point(std::int64_t sample) const {
    return request_.own_begins[std::size_t(sample) + 1] - 1;
  }
  double running_losses(std::span<const double> weights, bool with_adjoints);

  std::shared_ptr<const fused::Program> program_;
  SolveOptions options_;
  typename fused::Apart<T>::Request request_;
  std::int64_t batch_ = 0;
  std::vector<std::vector<T>> numbers_;  // copies of the tensors
  fused::Tensors<T> tensors_;
  std::vector<T> start_;  // (state size)
  std::unique_ptr<fused::Apart<T>> apart_;
  bool has_kept_ = false;
  std::vector<T> saved_, adjoints_;  // (points, state rows)
  std::vector<SolveReport> reports_;
  SolveReport report_;
  Gradient gradient_;
  std::unique_ptr<fused::EndLoss<T>> end_loss_;
  std::vector<T> answers_, answer_adjoints_;  // (rows with targets, features)
};

}  // namespace fathom::session
