/// The exact gradient of a fused solve: the adjoint is pulled back through each accepted step, last to first. A tile walks
/// many steps without meeting the others; gradients of weights are summed for each thread and joined when it is done.
#pragma once

#include <vector>

#include "fathom/fused/end_loss.hpp"
#include "fathom/fused/engine.hpp"

namespace fathom::fused {

/// A finished forward solve. `depths` are those of the saved states; the first `given` rows of gradients of depths belong to
/// the caller's list, of which `bound` were reached.
template <class T> struct Pass {
  Problem<T>* problem = nullptr;
  ode::Method method = {};
  const std::vector<StepRecord<T>>* records = nullptr;
  ActivationLayout layout = {};
  const T* start = nullptr;  ///< (state size)
  std::vector<double> depths = {};
  std::size_t bound = 0;
  std::size_t given = 0;
  /// dL/d(state at the end), (rows) of every tile, times `end_scale`: in place of adjoints of saved states.
  const T* end_adjoint = nullptr;
  double end_scale = 1;
};

struct SweepWanted {
  bool weights = true;
  bool inputs = true;
  bool depths = false;
  bool start = true;
};

template <class T> struct SweepResult {
  std::vector<T> start;          ///< (state size), empty when not wanted
  std::vector<double> weights;   ///< (Weights::gradient_size)
  Buffer<T> inputs;              ///< (input rows) of every tile; of use only where they are wanted
  std::vector<double> depths;    ///< (given)
  std::int64_t evaluations = 0;  ///< that the adjoint was pulled back through
  std::int64_t recomputed = 0;   ///< those of them whose activations were not kept
};

/// `saved_adjoints`: dL/d(saved states), (depths, state size); null where only the end counts.
template <class T>
SweepResult<T> pull_back(const Pass<T>& pass, const T* saved_adjoints, const SweepWanted& wanted);

template <class T> class Sweep;

/// The same as an object: a later gradient is found in the memory of an earlier one.
template <class T> class WayBack {
 public:
  /// `pass` must stay, and may change between two gradients but for its problem, method and layout.
  explicit WayBack(const Pass<T>& pass);
  ~WayBack();
  /// The answer stays until the next one.
  const SweepResult<T>& pull_back(const T* saved_adjoints, SavedAs as, const SweepWanted& wanted);
  std::size_t bytes() const;  ///< that it holds

 private:
  std::unique_ptr<Sweep<T>> sweep_;
};

/// The way back of a loss at the end. First the loss and the last step, on each tile as soon as it is there: half of a short solve's
/// activations never leave the nearest cache. Then, when the gradient is asked for, the rest.
template <class T> class LossWayBack final : public Sequel<T> {
 public:
  /// `layout`: the engine's.
  LossWayBack(Problem<T>& problem, const ode::Method& method, const ActivationLayout& layout,
              EndLoss<T>& loss);
  ~LossWayBack() override;

  /// Before each solve of the engine. A sample counts with `share`.
  void begin_solve(double share, const SweepWanted& wanted);

  void begin(const FinalStep<T>& step) override;
  T* registers(std::int64_t tile, int thread, std::size_t index) override;
  void follow(std::int64_t tile, int thread, const T* end) noexcept override;

  bool has_followed() const { return has_followed_; }  ///< or had the solve no step?
  /// After the solve: dL/d(start of the step), (rows) of every tile, and the step's part of the gradients. Once.
  struct Result {
    Buffer<T> adjoint;
    SweepResult<T> gradients;
  };
  Result finish();
  /// In place of finish() and pull_back(): goes on to the start of the solve at once, with the sums of the last step. The answer stays
  /// until the next solve.
  const SweepResult<T>& run_on(const Pass<T>& pass);
  /// The rest, as pull_back() would give it, in the memory of the last step; as often as it is asked for.
  SweepResult<T> pull_back(const Pass<T>& pass, const SweepWanted& wanted);
  std::size_t bytes() const;  ///< that it holds

 private:
  Problem<T>& problem_;
  Pass<T> pass_;
  EndLoss<T>& loss_;
  double share_ = 1;
  SweepWanted wanted_ = {};
  std::unique_ptr<Sweep<T>> sweep_;
  bool has_followed_ = false;
};

/// dL/d(a per-sample tensor), (batch, features), from the adjoints of the bank `inputs`.
template <class T>
void read_input(const Problem<T>& problem, const SampleInput& input, const Buffer<T>& adjoints, T* samples);

}  // namespace fathom::fused
