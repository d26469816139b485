/// Solves a field, pulls gradients back through the solve, and takes losses; on borrowed numbers, without a framework.
///   z' = f(s, z, u; theta),  z(s_0) = start;      L = L(z(s_0), ..., z(s_n))  ->  dL/d(start, theta, u, s_0 ... s_n)
///
///   Session<float> session(field, {.threads = 2});                           // made once
///   session.solve({.start = x, .parameters = theta}, depths, states);
///   session.backward(adjoint_of_states, gradient);
///   const double loss = session.loss({.start = x, .parameters = theta}, depths, {.targets = y}, &gradient);
///
/// Memory: a Session keeps what its solves need and uses it again, for the last few batch sizes. A call like an earlier one (as many
/// samples, depths and accepted steps, the same parts of the gradient) allocates nothing. Another batch size, other numbers and other
/// depths need no other Session.
/// Lifetime: views and spans are read and written during the call they are given to, and not afterwards: backward() needs none of what
/// solve() was given.
/// Threads: a Session is for one thread at a time; several Sessions on several threads do not disturb each other. They share the worker
/// threads of the process; one that finds them busy does its work alone, with the same result.
/// Errors: InvalidArgument where sizes do not fit, before anything is computed; SolveFailure where a solve cannot go on. After either the
/// Session can be used again; what the call should have written is unspecified.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fathom/program_field.hpp"
#include "fathom/solve_options.hpp"
#include "fathom/view.hpp"

namespace fathom {

/// The numbers of a solve.
template <class T> struct Data {
  View<const T> start = {};                ///< (batch, features)
  std::span<const T> parameters = {};      ///< of the field, see ProgramField
  std::vector<View<const T>> inputs = {};  ///< (batch, features) for each input of the field
  /// The parameters are, number for number, those of the Session's last call: a promise that saves reading them again, which is much of
  /// a short solve of one sample.
  bool parameters_unchanged = false;
};

/// Where a gradient is written. Parts without memory are not wanted and not computed.
template <class T> struct Gradient {
  View<T> start = {};                ///< (batch, features)
  std::span<T> parameters = {};      ///< as many as the field has
  std::vector<View<T>> inputs = {};  ///< (batch, features) for each input of the field; may be fewer
  /// One for each depth: of the saved states, and of the first and the last as bounds of the solve.
  std::span<double> depths = {};
  std::span<T> head = {};  ///< loss() alone: as many as the head's layers have
};

/// rho in  L = sum_p w_p sum_n rho(answer_pn, target_pn) / sum_p w_p (numbers that count at p).
enum class LossFunction {
  none,              ///< 0: running losses alone
  squares,           ///< (a - y)^2: the mean square error
  absolute,          ///< |a - y|
  huber,             ///< d^2 / 2 for |d| < threshold, else threshold (|d| - threshold / 2), d = a - y
  cross_entropy,     ///< log sum_r exp(a_r) - a_y for a label y, one number a sample
  normal_likelihood  ///< |a|^2 / 2 + log(2 pi) features / 2, one number a sample: -log N(a; 0, 1)
};

/// What the states are judged by. Answers are the states, or what a head makes of them.
template <class T> struct Loss {
  LossFunction function = LossFunction::squares;
  double huber_threshold = 1;

  std::vector<Layer> head = {};             ///< from the features of a state to an answer; constant in depth
  std::span<const T> head_parameters = {};  ///< of its layers, as for a field

  /// One row a sample, for the last depth alone; or one batch after the other for each depth, the first included.
  View<const T> targets = {};                 ///< (batch or depths x batch, answer)
  std::span<const std::int64_t> labels = {};  ///< (batch or depths x batch), of the cross entropy
  /// Numbers with a 0 here do not count, and their target is not looked at: it may be NaN. Rows like those of the targets, one column
  /// for each number, or one for the whole row.
  View<const T> mask = {};
  std::span<const double> depth_weights = {};  ///< w_p, one for each depth with targets; default: 1

  /// Adds sum_k weight_k (mean over samples of running loss k at the last depth).
  std::span<const double> running_weights = {};
};

/// A ragged batch: each sample is solved over a span of its own and saved at depths of its own, in steps of its own. A point is a sample at
/// one of its depths; the points of sample 0 come first, then those of sample 1, ...
///
///   const RaggedDepths depths{.depths = times, .counts = lengths};         // 3 + 2 points: {0, 1, 2,  0, 0.5}, {3, 2}
///   session.loss(data, depths, {.targets = y, .mask = is_known}, &gradient);
struct RaggedDepths {
  std::span<const double> depths = {};  ///< (points)
  std::span<const std::int64_t> counts =
      {};  ///< (batch): points of each sample, at least 2: its start, ..., its end
};

/// The parameters of the layers of a head on states of so many features.
std::vector<Parameter> head_parameters(std::int64_t features, const std::vector<Layer>& layers);

/// T: float or double.
template <class T> class Session {
 public:
  explicit Session(ProgramField field, SolveOptions options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const ProgramField& field() const;
  const SolveOptions& options() const;

  /// Solves from depths.front() to depths.back(), either direction. `states`: (depths, batch x features), one batch after the other.
  /// `running`: (depths, batch x running losses), where they are wanted. Where the observer stopped the solve, only states up to
  /// `reached` are written.
  SolveReport solve(const Data<T>& data, std::span<const double> depths, View<T> states,
                    View<T> running = {});

  /// Gradients of the last solve() from dL/d(states) and dL/d(running), of its shapes; as often as wanted. Throws where that solve kept
  /// nothing for it (Derivative::none), or none was made.
  void backward(View<const T> states, const Gradient<T>& gradient) { backward(states, {}, gradient); }
  void backward(View<const T> states, View<const T> running, const Gradient<T>& gradient);

  /// The value of a loss, and with `gradient` its derivatives, in one solve. backward() then needs another solve() before it.
  double loss(const Data<T>& data, std::span<const double> depths, const Loss<T>& loss,
              const Gradient<T>* gradient = nullptr);

  /// The same for a ragged batch: a row for each point where there was one for each depth and sample. `states`: (points, features);
  /// `running`: (points, running losses); backward() takes its adjoints alike, and gradients of depths have one number for each point.
  /// Losses have targets, labels and mask at the last point of each sample (batch rows) or at all (points); each may have a weight of its own in
  /// `depth_weights`. Threads share the samples, which sums do not depend on. The results are those of a call for each sample; memory is
  /// made anew in each call. Derivatives: `discrete` or `none`.
  SolveReport solve(const Data<T>& data, const RaggedDepths& depths, View<T> states, View<T> running = {});
  double loss(const Data<T>& data, const RaggedDepths& depths, const Loss<T>& loss,
              const Gradient<T>* gradient = nullptr);
  std::span<const SolveReport> sample_reports() const;  ///< of the last call, if that was one: of each sample

  /// Of the last solve() or loss(), with the evaluations of its gradients.
  const SolveReport& report() const;
  std::size_t bytes() const;  ///< that it holds

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace fathom
