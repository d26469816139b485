/// A public Loss made ready for the engine: its program, its numbers in the order that the program reads them, and the share of a sample.
///
///   LossProgram<float> program;                                   // kept from call to call
///   const bool at_end = program.read(loss, field, {.batch = batch, .all = batch * depths, .of_point = batch});
///   workspace.loss(call, program.call(), wanted);
#pragma once

#include <vector>

#include "fathom/session.hpp"
#include "fathom/session/workspace.hpp"

namespace fathom::session {

/// How many rows targets have.
struct LossRows {
  std::int64_t batch = 0;  ///< samples, each with a row at its last depth, ...
  std::int64_t all = 0;    ///< ... or with one at all of its depths, together so many
  std::int64_t of_point =
      1;  ///< rows that share a weight: the batch, or one where samples have depths of their own
};

template <class T> class LossProgram {
 public:
  /// Checks the loss. Is it one of the last depth alone? Its numbers must stay until the call is over.
  bool read(const Loss<T>& loss, const ProgramField& field, const LossRows& rows);
  LossCall<T> call() const;
  double constant() const;  ///< of the value, which no derivative knows
  void write_gradient(const fused::EndLoss<T>& loss, std::span<T> head) const;

 private:
  /// What the program depends on.
  struct Key {
    LossFunction function = LossFunction::none;
    double threshold = 0;
    std::vector<Layer> head = {};
    std::int64_t features = 0;
    bool has_mask = false;

    bool holds_for(const Loss<T>& loss, std::int64_t features) const;
  };
  void build(const Loss<T>& loss, std::int64_t features);
  bool find_points(const Loss<T>& loss, const LossRows& rows) const;
  void read_targets(const Loss<T>& loss);
  void read_masked_targets(const Loss<T>& loss);
  void read_labels(const Loss<T>& loss);
  bool counts(const Loss<T>& loss, std::size_t row, std::size_t column) const;

  Key key_;
  std::shared_ptr<const fused::Program> program_;
  std::vector<Parameter> parameters_;  // of the head
  std::int64_t answers_ = 0;           // features that the head gives

  std::size_t points_ = 1;
  std::int64_t of_point_ = 0;      // rows of each
  fused::Tensors<T> tensors_;      // the head's parameters, targets or labels, mask
  std::vector<T> targets_, mask_;  // where those of the caller cannot be used as they are
  std::vector<double> counted_;    // numbers that count at each point
  std::vector<double> shares_, running_;
  bool at_end_ = true;
};

}  // namespace fathom::session
