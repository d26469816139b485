/// Samples with steps of their own: each is a solve of a batch of one, with as many steps as it alone needs. All share a program
/// and its weights; parts of the batch go to threads, and gradients of weights are summed in the order of the samples.
///
///   Apart<float> apart(program, tensors, batch, threads);
///   const std::vector<SolveReport> reports = apart.solve({.options = ..., .plan = ..., .depths = depths}, start, saved);
///
/// Samples are saved at the same depths, in states of the whole batch; or each at depths of its own, and then there is one row of numbers, its
/// features and running losses, for each sample and depth: a point.
#pragma once

#include <memory>
#include <vector>

#include "fathom/fused/engine.hpp"
#include "fathom/fused/sweep.hpp"

namespace fathom::fused {

template <class T> class Apart {
 public:
  /// `tensors`: those of samples have the whole batch.
  Apart(std::shared_ptr<const Program> program, const Tensors<T>& tensors, std::int64_t batch, int threads);

  struct Request {
    EngineOptions options = {};  ///< its budgets are for all samples together
    ode::Plan plan = {};
    std::vector<double> depths = {};  ///< of every sample; or of all points, one sample after the other, ...
    std::vector<std::size_t> own_begins = {};  ///< ... where those of each sample begin, (batch + 1)
  };
  /// From `start`, (state size), to `saved`, (depths, state size) of the whole batch or (points, state rows). Where samples fail, the first
  /// of them throws. `start` must stay for the gradient. The times of the reports add up to that of the whole.
  std::vector<ode::SolveReport> solve(const Request& request, const T* start, T* saved);

  /// After a solve that keeps starts.
  struct Wanted {
    bool weights = true;
    T* start = nullptr;  ///< receives dL/d(start)
    std::vector<T*> inputs =
        {};  ///< for each of the program's inputs, receives dL/d(its tensor); null: not wanted
    double* depths = nullptr;  ///< receives dL/d(depth), (depths) or (points)
  };
  struct Result {
    std::vector<double> weights;            ///< (Weights::gradient_size)
    std::vector<std::int64_t> evaluations;  ///< of each sample
  };
  Result pull_back(const T* saved_adjoints, const Wanted& wanted);

  const Weights<T>& weights() const { return parts_.front().problem->weights; }

 private:
  /// Neighbouring samples that one thread works on, with a problem of one sample that becomes each of them in turn.
  struct Part {
    std::int64_t begin = 0, end = 0;
    std::unique_ptr<Problem<T>> problem;
    std::vector<std::unique_ptr<Engine<T>>>
        engines;                  // of each sample that is kept for its gradient, else one
    std::vector<T> start, saved;  // of one sample
    Pass<T> pass = {};            // of the sample that is pulled back
    std::unique_ptr<WayBack<T>> way_back = {};
    Result sums = {};
    std::vector<double> depths;  // sums of dL/d(depth), where samples share depths
    std::exception_ptr failure = {};
  };

  Tensors<T> tensors_of(std::int64_t sample) const;
  void become(Part& part, std::int64_t sample) const;
  void solve_part(Part& part, T* saved, ode::SolveReport* reports);
  void pull_back_part(Part& part, const T* saved_adjoints, const Wanted& wanted) const;
  template <class Work> void for_each_part(Work&& work);
  /// The numbers of one sample in a state of the whole batch: features, and running losses behind those of all.
  void gather(std::int64_t sample, const T* states, T* one) const;
  void scatter(std::int64_t sample, const T* one, T* states) const;
  /// The same for all that is saved of a sample, (its depths, state rows).
  void gather_saved(std::int64_t sample, const T* saved, T* one) const;
  void scatter_saved(std::int64_t sample, const T* one, T* saved) const;
  bool has_own_depths() const { return !request_.own_begins.empty(); }
  std::span<const double> depths_of(std::int64_t sample) const;
  void move_depths(Part& part, std::int64_t sample, const std::vector<double>& found, double* depths) const;

  std::shared_ptr<const Program> program_;
  Tensors<T> tensors_;
  std::int64_t batch_;
  int threads_;
  std::vector<Part> parts_;
  Request request_;
  const T* start_ = nullptr;
};

}  // namespace fathom::fused
