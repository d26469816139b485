#include "fathom/fused/weights.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "fathom/support/error.hpp"

namespace fathom::fused {

namespace {

std::size_t entries(const Matrix& matrix) { return std::size_t(matrix.outputs) * std::size_t(matrix.inputs); }

/// In squares, so that neither side leaves the nearest cache between two numbers of a line.
template <class T> void transpose(const T* by_output, const Matrix& matrix, T* by_input) {
  constexpr std::size_t side = 16;
  const std::size_t outputs = std::size_t(matrix.outputs), inputs = std::size_t(matrix.inputs);
  for (std::size_t first_i = 0; first_i < inputs; first_i += side) {
    const std::size_t end_i = std::min(first_i + side, inputs);
    for (std::size_t first_o = 0; first_o < outputs; first_o += side) {
      const std::size_t end_o = std::min(first_o + side, outputs);
      for (std::size_t i = first_i; i < end_i; ++i) {
        for (std::size_t o = first_o; o < end_o; ++o) by_input[i * outputs + o] = by_output[o * inputs + i];
      }
    }
  }
}

/// Sums of weighted terms, by the kernels a few terms at a time.
template <class T> class WeightedSum {
 public:
  explicit WeightedSum(const Kernels<T>& kernels) : kernels_(kernels) {}

  /// Terms that do not count, such as most pieces of an indicator basis, are left out.
  void add(const T* term, double weight) {
    if (weight == 0) return;
    terms_[count_] = term;
    weights_[count_++] = T(weight);
  }
  bool is_empty() const { return count_ == 0; }
  bool is_full() const { return count_ == terms_.size(); }
  /// out = base + what was added since the last call; base may be null or `out` itself.
  void write(T* out, const T* base, std::size_t size) {
    kernels_.combine(out, base, terms_.data(), weights_.data(), std::int32_t(std::exchange(count_, 0)), size);
  }

 private:
  const Kernels<T>& kernels_;
  std::array<const T*, 8> terms_;
  std::array<T, 8> weights_;
  std::size_t count_ = 0;
};

/// sum_j psi_j blocks_j
template <class T>
void mix(const Kernels<T>& kernels, const std::vector<double>& psi, const T* blocks, std::size_t size,
         T* sum) {
  WeightedSum<T> terms(kernels);
  const T* base = nullptr;
  for (std::size_t j = 0; j < psi.size(); ++j) {
    if (terms.is_full()) terms.write(sum, std::exchange(base, sum), size);
    terms.add(blocks + j * size, psi[j]);
  }
  terms.write(sum, base, size);
}

/// A weight or bias must have just the numbers that its matrix asks for: the kernels do not look.
template <class T> void check_sizes(const Program& program, const Tensors<T>& tensors) {
  const auto check = [&](std::int32_t tensor, std::size_t wanted, const char* what) {
    require(tensor >= 0 && std::size_t(tensor) < tensors.size(), "a program reads tensor ", tensor, " of ",
            tensors.size());
    require(tensors[std::size_t(tensor)].size() == wanted, "a ", what, " needs ", wanted, " numbers, got ",
            tensors[std::size_t(tensor)].size());
  };
  for (const Matrix& matrix : program.matrices) {
    require(entries(matrix) < std::size_t(std::numeric_limits<std::int32_t>::max()), "a weight of ",
            matrix.outputs, " x ", matrix.inputs, " is too large for the fused engine");
    const std::size_t functions =
        matrix.basis < 0 ? 1 : std::size_t(program.bases[std::size_t(matrix.basis)].size);
    check(matrix.weight, functions * entries(matrix), "weight");
    if (matrix.bias >= 0) check(matrix.bias, functions * std::size_t(matrix.outputs), "bias");
  }
}

template <class T> double dot(const T* a, const T* b, std::size_t size) {
  double sum = 0;
  for (std::size_t n = 0; n < size; ++n) sum += double(a[n]) * double(b[n]);
  return sum;
}

}  // namespace

template <class T>
Weights<T>::Weights(const Program& program, const Tensors<T>& tensors, const Kernels<T>& kernels)
    : program_(&program), kernels_(&kernels), tensors_(tensors), tensor_begins_(tensors.size(), 0) {
  check_sizes(program, tensors);
  std::vector<bool> placed(tensors.size(), false);
  const auto place = [&](std::int32_t tensor) {
    if (tensor < 0 || placed[std::size_t(tensor)]) return;
    placed[std::size_t(tensor)] = true;
    tensor_begins_[std::size_t(tensor)] = gradient_size_;
    gradient_size_ += tensors[std::size_t(tensor)].size();
  };
  stage_begins_.reserve(program.matrices.size());
  views_.reserve(program.matrices.size());
  std::size_t constant_size = 0;
  for (const Matrix& matrix : program.matrices) {
    place(matrix.weight);
    place(matrix.bias);
    stage_begins_.push_back(stage_size_);
    if (matrix.basis < 0) {
      constant_size += 2 * entries(matrix) + std::size_t(matrix.outputs);
    } else {
      stage_size_ += entries(matrix) + (matrix.bias >= 0 ? std::size_t(matrix.outputs) : 0);
    }
  }
  constants_.resize(constant_size);
  copy_constants();
}

template <class T> void Weights<T>::read(const Tensors<T>& tensors) {
  check_sizes(*program_, tensors);
  tensors_ = tensors;
  copy_constants();
}

template <class T> void Weights<T>::copy_constants() {
  views_.clear();
  std::size_t at = 0;
  for (const Matrix& matrix : program_->matrices) {
    MatrixView<T> view{.outputs = matrix.outputs, .inputs = matrix.inputs};
    if (matrix.basis < 0) {
      // Copies of both orders: what the way back reads must be what the way forth has read.
      const auto copy = [&](std::int32_t tensor) {
        const auto& from = tensors_[std::size_t(tensor)];
        T* to = constants_.data() + at;
        std::copy(from.begin(), from.end(), to);
        at += from.size();
        return to;
      };
      view.by_output = copy(matrix.weight);
      view.by_input = constants_.data() + at;
      transpose(view.by_output, matrix, constants_.data() + at);
      at += entries(matrix);
      view.bias = matrix.bias >= 0 ? copy(matrix.bias) : nullptr;
    }
    views_.push_back(view);
  }
}

template <class T> void Weights<T>::prepare(double depth, bool with_slopes, AtDepth<T>& at) const {
  at.depth = depth;
  if (at.matrices.empty()) {
    at.matrices = views_;
    at.storage.resize(2 * stage_size_);  // enough: every entry twice, every bias once
    at.psi.resize(program_->bases.size());
  }
  for (std::size_t b = 0; b < program_->bases.size(); ++b) {
    program_->bases[b].read_values(depth, at.psi[b]);
  }
  if (with_slopes) {
    at.psi_slopes.resize(program_->bases.size());
    for (std::size_t b = 0; b < program_->bases.size(); ++b) {
      program_->bases[b].read_slopes(depth, at.psi_slopes[b]);
    }
  }
  const auto tabulate = [&](std::vector<T>& table, bool slopes) {
    table.clear();
    for (const DepthFunctions& signal : program_->signals) {
      slopes ? signal.read_slopes(depth, at.of_signal) : signal.read_values(depth, at.of_signal);
      for (double value : at.of_signal) table.push_back(T(value));
    }
  };
  if (!program_->signals.empty()) tabulate(at.signals, false);
  if (!program_->signals.empty() && with_slopes) tabulate(at.signal_slopes, true);
  T* next = at.storage.data();
  for (std::size_t m = 0; m < views_.size(); ++m) {
    const Matrix& matrix = program_->matrices[m];
    if (matrix.basis < 0) continue;
    const std::vector<double>& psi = at.psi[std::size_t(matrix.basis)];
    MatrixView<T>& view = at.matrices[m];
    mix(*kernels_, psi, tensors_[std::size_t(matrix.weight)].data(), entries(matrix), next);
    view.by_output = next;
    next += entries(matrix);
    transpose(view.by_output, matrix, next);
    view.by_input = next;
    next += entries(matrix);
    if (matrix.bias < 0) continue;
    mix(*kernels_, psi, tensors_[std::size_t(matrix.bias)].data(), std::size_t(matrix.outputs), next);
    view.bias = next;
    next += matrix.outputs;
  }
}

template <class T>
double Weights<T>::along_depth(const AtDepth<T>& at, std::span<const T> stage_gradient) const {
  double sum = 0;
  for (std::size_t m = 0; m < program_->matrices.size(); ++m) {
    const Matrix& matrix = program_->matrices[m];
    if (matrix.basis < 0) continue;
    const auto& slopes = at.psi_slopes[std::size_t(matrix.basis)];
    const T* gradient = stage_gradient.data() + stage_begins_[m];
    const T* blocks = tensors_[std::size_t(matrix.weight)].data();
    for (std::size_t j = 0; j < slopes.size(); ++j) {
      if (slopes[j] == 0) continue;
      sum += slopes[j] * dot(gradient, blocks + j * entries(matrix), entries(matrix));
      if (matrix.bias < 0) continue;
      const std::size_t outputs = std::size_t(matrix.outputs);
      sum += slopes[j] * dot(gradient + entries(matrix),
                             tensors_[std::size_t(matrix.bias)].data() + j * outputs, outputs);
    }
  }
  return sum;
}

/// Calls `add(basis, place in a stage gradient, size, place in the gradient of the first function's coefficients)`.
template <class T> template <class Add> void Weights<T>::for_each_varying(const Add& add) const {
  for (std::size_t m = 0; m < program_->matrices.size(); ++m) {
    const Matrix& matrix = program_->matrices[m];
    if (matrix.basis < 0) continue;
    const std::size_t basis = std::size_t(matrix.basis), begin = stage_begins_[m];
    add(basis, begin, entries(matrix), tensor_begin(std::size_t(matrix.weight)));
    if (matrix.bias < 0) continue;
    add(basis, begin + entries(matrix), std::size_t(matrix.outputs), tensor_begin(std::size_t(matrix.bias)));
  }
}

template <class T>
void Weights<T>::spread(std::span<const StageGradient<T>> stages, std::span<double> gradient,
                        std::vector<T>& scratch) const {
  std::size_t largest = 0;
  for_each_varying(
      [&](std::size_t, std::size_t, std::size_t size, std::size_t) { largest = std::max(largest, size); });
  if (scratch.size() < largest) scratch.resize(largest);
  T* const sum = scratch.data();
  WeightedSum<T> terms(*kernels_);
  for_each_varying([&](std::size_t basis, std::size_t from, std::size_t size, std::size_t to) {
    for (std::size_t j = 0; j < std::size_t(program_->bases[basis].size); ++j) {
      // A few stages at a time in the type of the state, and those sums in double precision.
      const auto move = [&] {
        if (terms.is_empty()) return;
        terms.write(sum, nullptr, size);
        kernels_->move_to_totals(sum, gradient.data() + to + j * size, size);
      };
      for (const StageGradient<T>& stage : stages) {
        terms.add(stage.values + from, stage.at->psi[basis][j]);
        if (terms.is_full()) move();
      }
      move();
    }
  });
}

template <class T> void Weights<T>::spread(const StageGradient<T>& stage, std::span<T> gradient) const {
  for_each_varying([&](std::size_t basis, std::size_t from, std::size_t size, std::size_t to) {
    const std::vector<double>& psi = stage.at->psi[basis];
    for (std::size_t j = 0; j < psi.size(); ++j) {
      if (psi[j] == 0) continue;
      T* out = gradient.data() + to + j * size;
      const T* term = stage.values + from;
      const T weight = T(psi[j]);
      kernels_->combine(out, out, &term, &weight, 1, size);
    }
  });
}

template <class T>
std::vector<MatrixGradient<T>> Weights<T>::views(std::span<T> gradient, std::span<T> stage_gradient) const {
  std::vector<MatrixGradient<T>> views;
  views.reserve(program_->matrices.size());
  for (std::size_t m = 0; m < program_->matrices.size(); ++m) {
    const Matrix& matrix = program_->matrices[m];
    if (matrix.basis >= 0) {
      T* weight = stage_gradient.data() + stage_begins_[m];
      views.push_back({weight, matrix.bias >= 0 ? weight + entries(matrix) : nullptr});
    } else {
      views.push_back(
          {gradient.data() + tensor_begin(std::size_t(matrix.weight)),
           matrix.bias >= 0 ? gradient.data() + tensor_begin(std::size_t(matrix.bias)) : nullptr});
    }
  }
  return views;
}

template class Weights<float>;
template class Weights<double>;

}  // namespace fathom::fused
