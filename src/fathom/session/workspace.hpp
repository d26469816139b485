/// The solves of one program on one batch size, with everything that they need again: engine, way back, adjoint engine, saved states.
///
///   Workspace<float> work(program, tensors, batch, options, breaks);
///   work.solve({.tensors = tensors, .start = z0, .depths = depths, .keeps = true}, {.numbers = states});
///   const auto& gradient = work.pull_back(adjoints, SavedAs::samples, {});
///
/// Numbers are the caller's during a call alone: what a gradient needs of them is copied.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fathom/fused/end_loss.hpp"
#include "fathom/fused/engine.hpp"
#include "fathom/fused/sweep.hpp"
#include "fathom/solve_options.hpp"

namespace fathom::session {

/// A loss as a program on the states of a batch, see fused::EndLoss, with the numbers of one call.
template <class T> struct LossCall {
  std::shared_ptr<const fused::Program> program;
  const fused::Tensors<T>* tensors = nullptr;  ///< those of samples hold a batch for each point
  std::span<const double> shares = {};         ///< of a sample, at each point
  std::span<const double> running = {};        ///< of a running loss at the last point
  bool at_end = true;  ///< the last depth is the one point; otherwise each depth is one
};

/// Makes `kept` an EndLoss of the loss's program where it is not one. Was it made? Its numbers must be read before it is used.
template <class T>
bool renew(std::unique_ptr<fused::EndLoss<T>>& kept, const LossCall<T>& loss, const fused::Tiles& tiles,
           int threads);

template <class T> class Workspace {
 public:
  /// `parameters`: the version of those in `tensors`, see Call.
  Workspace(std::shared_ptr<const fused::Program> program, const fused::Tensors<T>& tensors,
            std::int64_t batch, const SolveOptions& options, std::vector<double> break_points,
            std::uint64_t parameters = 0);
  ~Workspace();

  std::int64_t batch() const { return problem_.tiles.batch(); }
  std::size_t state_size() const { return problem_.state_size(); }
  const fused::Problem<T>& problem() const { return problem_; }

  struct Call {
    const fused::Tensors<T>& tensors;  ///< of the program
    const T* start = nullptr;          ///< (batch, features); running losses begin at 0
    std::span<const double> depths = {};
    std::uint64_t parameters =
        0;  ///< their version: those of the version read last are not read again; 0: unknown
  };
  /// Saves (depths, state size) in `saved`. With `keeps`, a gradient may be asked for.
  const SolveReport& solve(const Call& call, bool keeps, T* saved);
  std::size_t reached_depths() const { return reached_; }  ///< how many were saved: fewer after an early stop

  /// From dL/d(saved states), (depths, state size). The answer stays until the next gradient.
  const fused::SweepResult<T>& pull_back(const T* adjoints, const fused::SweepWanted& wanted);

  struct Wanted {
    bool head = false;
    fused::SweepWanted of_solve = {};
  };
  /// A loss and its gradients; those of its own tensors are in loss_gradient().
  double loss(const Call& call, const LossCall<T>& loss, const Wanted& wanted);
  const fused::SweepResult<T>* gradient() const { return gradient_; }  ///< null where none was wanted
  const fused::EndLoss<T>& end_loss() const { return *end_loss_; }

  const SolveReport& report() const { return report_; }
  std::size_t bytes() const;

 private:
  void begin(const Call& call, bool keeps, T* saved, fused::SavedAs as);
  void read(const Call& call);
  void integrate();
  void refresh_pass();
  void prepare_loss(const LossCall<T>& loss);
  double loss_at_end(const LossCall<T>& loss);
  T* prepared_adjoints(bool wanted);
  double loss_at_points(const LossCall<T>& loss, const Wanted& wanted);
  const fused::SweepResult<T>& pull_back_discrete(const T* adjoints, fused::SavedAs as,
                                                  const fused::SweepWanted& wanted);
  const fused::SweepResult<T>& pull_back_adjoint(const T* adjoints, const fused::SweepWanted& wanted);
  void integrate_adjoint(std::size_t place, const T* state);
  double along_field(double depth, const T* state, const T* adjoint);
  bool is_discrete() const { return options_.derivative == Derivative::discrete; }

  SolveOptions options_;
  ode::Plan plan_;
  ode::Walks walks_;
  fused::Tensors<T> tensors_;  // what the problem reads; those that vary with depth point into the next
  std::vector<T> varying_;     // copies of parameters on a basis, which a gradient reads again
  std::uint64_t parameters_;   // the version of those that the problem has read
  fused::Problem<T> problem_;
  std::unique_ptr<fused::Engine<T>> engine_;
  std::vector<double> depths_;  // of the last solve
  std::size_t reached_ = 0;
  std::vector<T> start_;  // of the last solve, (state size)
  bool has_kept_ = false;
  SolveReport report_;

  fused::Pass<T> pass_;
  std::unique_ptr<fused::WayBack<T>> way_back_;
  const fused::SweepResult<T>* gradient_ = nullptr;

  // Losses.
  std::unique_ptr<fused::EndLoss<T>> end_loss_;
  std::unique_ptr<fused::LossWayBack<T>> loss_way_back_;
  fused::Buffer<T> saved_rows_, adjoint_rows_;  // (points, rows of every tile)

  // The continuous adjoint.
  std::vector<T> saved_states_;  // (depths, state size), of the last solve
  std::vector<T> both_;          // [y, a], (2 state size)
  std::vector<T> adjoints_;      // (depths, state size), of a loss
  std::unique_ptr<fused::Engine<T>> adjoint_engine_;
  ode::Plan adjoint_plan_;
  ode::Walks adjoint_walks_;
  std::vector<double> stretch_;
  fused::AtDepth<T> at_saved_;
  fused::Buffer<T> field_rows_;
  fused::SweepResult<T> adjoint_result_;
};

}  // namespace fathom::session
