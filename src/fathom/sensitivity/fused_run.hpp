/// What the bridges to the fused engine have in common, for a solve and for a loss: the tensors, the problem, and the engine at work.
///
///   FusedRun<float> run(field, start, batch);
///   run.add_to(parameters, wanted, gradient_of_weights, adjoints_of_inputs);
#pragma once

#include <memory>
#include <vector>

#include "fathom/fused/engine.hpp"
#include "fathom/fused/sweep.hpp"
#include "fathom/sensitivity/program_tensors.hpp"

namespace fathom {

template <class T> struct FusedRun {
  FusedRun(const VectorField& field, const Tensor& start_, std::int64_t batch)
      : tensors(field),
        start(start_.variable_data().contiguous()),
        threads(threads_for(batch)),
        problem(field.lowered.program, tensors.spans<T>(), batch, threads) {}

  /// Adds the gradients of weights and inputs to those of the parameters they belong to.
  void add_to(std::vector<Tensor>& parameters, const Wanted& wanted, const std::vector<double>& weights,
              const fused::Buffer<T>& inputs) const {
    for (const fused::SampleInput& input : problem.program->inputs) {
      if (const auto place = tensors.wanted_place(input, wanted))
        fused::read_input(problem, input, inputs, parameters[*place].template data_ptr<T>());
    }
    tensors.add(weights, problem.weights, wanted, parameters);
  }

  const T* start_numbers() const { return start.data_ptr<T>(); }

  ProgramTensors tensors;  ///< what the problem's spans point into
  Tensor start;            ///< not the caller's own, whose shape may change; the numbers are
  int threads;             ///< that were free to work on it
  fused::Problem<T> problem;
  ode::Method method = {};
  std::unique_ptr<fused::Engine<T>> engine = {};
};

}  // namespace fathom
