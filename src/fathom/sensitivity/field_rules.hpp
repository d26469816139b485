/// What a field and a start must be so that gradients are those of the solve, and what is said where they are not.
///   - every tensor that the field reads and that wants a gradient is among its parameters
///   - the field is a pure function: it gives the same rate again
///   - the start is finite
#pragma once

#include <utility>
#include <vector>

#include "fathom/sensitivity/pullback.hpp"

namespace fathom {

/// Throws InvalidArgument where the graph of `outputs` ends in a tensor that is not among `known`, nor reached through one of them.
void check_listed(const std::vector<Tensor>& outputs, const std::vector<Tensor>& known);

/// The same field. Its first evaluation is made with a graph, and check_listed() looks at it.
FlatField watched(const FlatField& field);

/// `replayed` and `recorded` are the end of one step from `start`. Where they differ by more than rounding explains, repeats the step
/// as the solve took it and throws InvalidArgument if it ends elsewhere.
void check_replayed(const ForwardPass& pass, const StepRecord& record, const Tensor& recorded,
                    const Tensor& replayed);

/// Evaluates the field twice at one place; throws InvalidArgument if that gives two rates.
void check_pure(const ForwardPass& pass, double depth, const Tensor& y);

/// Could rounding alone make the ends of solves from `start` differ as much?
bool differ_by_rounding(const Tensor& one, const Tensor& other, const Tensor& start);

/// Throws NotFinite unless all numbers of z0 are finite.
void check_finite(const Tensor& z0);

/// Runs a solve from z0. When it fails for NaN or infinity, sees whether they were in z0: looking first would cost every solve time.
template <class Solve> auto with_finite_start(const Tensor& z0, Solve&& solve) {
  try {
    return solve();
  } catch (const SolveFailure& failure) {
    if (failure.reason == FailureReason::non_finite) check_finite(z0);
    throw;
  }
}

}  // namespace fathom
