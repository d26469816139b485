/// What the bridges from tensors to the fused engine share: the tensors of a program among the parameters of its field, and what the
/// engine keeps for a gradient.
#pragma once

#include <optional>
#include <vector>

#include "fathom/fused/engine.hpp"
#include "fathom/sensitivity/pullback.hpp"

namespace fathom {

/// A batch of one, or too few samples to fill two vectors a thread, is not worth a second thread.
int threads_for(std::int64_t batch);

fused::EngineOptions engine_options(const Solver& solver);
/// What Discrete needs for the way back, of `threads` threads.
void keep_for_gradient(const Discrete& how, int threads, fused::EngineOptions& options);

/// The same tensors, copied where their numbers do not lie one after the other.
std::vector<Tensor> contiguous(const std::vector<Tensor>& tensors);
template <class T> fused::Tensors<T> spans_of(const std::vector<Tensor>& tensors) {
  fused::Tensors<T> spans;
  spans.reserve(tensors.size());
  for (const Tensor& tensor : tensors) spans.emplace_back(tensor.data_ptr<T>(), std::size_t(tensor.numel()));
  return spans;
}

/// For each tensor of a program its place among the parameters; -1: a constant.
std::vector<std::ptrdiff_t> places_of(const std::vector<Tensor>& tensors,
                                      const std::vector<Tensor>& parameters);

/// The tensors of a field's program, and which of its parameters they are.
class ProgramTensors {
 public:
  explicit ProgramTensors(const VectorField& field);

  template <class T> fused::Tensors<T> spans() const { return spans_of<T>(tensors_); }
  void let_go() { tensors_.clear(), numbers_.clear(); }
  /// Copies those of samples, for who reads them again later: the caller may have changed them by then.
  void own_inputs();

  bool wants_inputs(const Wanted& wanted) const;
  bool wants_weights(const Wanted& wanted) const;
  /// Where the gradient of an input goes; none: it is not wanted.
  std::optional<std::size_t> wanted_place(const fused::SampleInput& input, const Wanted& wanted) const;
  /// Adds the gradient of all weights to those of the parameters.
  template <class T>
  void add(const std::vector<double>& gradient, const fused::Weights<T>& weights, const Wanted& wanted,
           std::vector<Tensor>& parameters) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (is_input_[i] || !is_wanted(i, wanted)) continue;
      const double* from = gradient.data() + weights.tensor_begin(i);
      T* to = parameters[std::size_t(parameter_of_[i])].template data_ptr<T>();
      const std::int64_t size = tensors_[i].numel();  // a call, which no compiler would take out of the loop
      for (std::int64_t n = 0; n < size; ++n) to[n] += T(from[n]);
    }
  }

 private:
  bool is_wanted(std::size_t tensor, const Wanted& wanted) const {
    return parameter_of_[tensor] >= 0 && wanted.parameters[std::size_t(parameter_of_[tensor])];
  }

  std::vector<Tensor> tensors_;
  std::vector<c10::Storage> numbers_;  // of each: a module that is moved or cast gives its parameters others
  std::vector<std::ptrdiff_t> parameter_of_;  // of each
  std::vector<bool> is_input_;                // one of a sample, or of all?
};

}  // namespace fathom
