#include "fathom/callback_field.hpp"

#include <algorithm>

#include "fathom/fused/program.hpp"
#include "fathom/session/layers.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

constexpr std::int64_t most_parameters = 1 << 30;

using fused::Frame;
using fused::Op;
using fused::Rows;

/// The caller's functions behind those that the kernels call, with the memory between samples and rows. Features lie in rows there: for one
/// sample that is the same.
template <class T> class Functions {
 public:
  explicit Functions(const CallbackField<T>& field) : field_(field) {}

  static void evaluate(void* context, const Frame<T>& frame, const Op& op) {
    static_cast<Functions*>(context)->evaluate(frame, op);
  }
  static void pull_back(void* context, const Frame<T>& frame, const Op& op) {
    static_cast<Functions*>(context)->pull_back(frame, op);
  }

 private:
  /// One for each solve under way: a field may be shared by Sessions of several threads.
  struct Scratch {
    std::vector<T> state, input, answer, adjoint, of_state, of_input, of_parameters, of_depth;
  };
  static Scratch& scratch() {
    static thread_local Scratch mine;
    return mine;
  }

  static T* rows_in(T* const (&banks)[fused::bank_count], const Rows& rows, const Frame<T>& frame) {
    T* const bank = banks[int(rows.bank)];
    return bank && rows.count > 0 ? bank + std::ptrdiff_t(rows.begin) * frame.width : nullptr;
  }

  static void to_samples(const T* rows, std::int64_t features, const Frame<T>& frame,
                         std::vector<T>& samples) {
    samples.resize(std::size_t(features) * std::size_t(frame.samples));
    for (std::int64_t r = 0; r < features; ++r) {
      for (std::int64_t i = 0; i < frame.samples; ++i)
        samples[std::size_t(i * features + r)] = rows[r * frame.width + i];
    }
  }

  Evaluation<T> evaluation(const Frame<T>& frame, const Op& op, Scratch& memory) const {
    to_samples(rows_in(frame.banks, op.first, frame), field_.features, frame, memory.state);
    to_samples(rows_in(frame.banks, op.second, frame), field_.inputs, frame, memory.input);
    Evaluation<T> at{.depth = frame.depth,
                     .samples = frame.samples,
                     .state = memory.state,
                     .parameters = {},
                     .input = memory.input};
    if (field_.parameters > 0)
      at.parameters = {frame.matrices[op.matrix].by_output, std::size_t(field_.parameters)};
    return at;
  }

  void evaluate(const Frame<T>& frame, const Op& op) const {
    Scratch& memory = scratch();
    memory.answer.assign(std::size_t(field_.features) * std::size_t(frame.samples), T(0));
    field_.rate(evaluation(frame, op, memory), memory.answer);
    T* rows = rows_in(frame.banks, op.out, frame);
    for (std::int64_t r = 0; r < field_.features; ++r) {
      // Padding repeats the last sample.
      for (std::int64_t i = 0; i < frame.width; ++i)
        rows[r * frame.width + i] =
            memory.answer[std::size_t(std::min<std::int64_t>(i, frame.samples - 1) * field_.features + r)];
    }
  }

  void pull_back(const Frame<T>& frame, const Op& op) const {
    require(bool(field_.product),
            "this field has a rate but no vector-Jacobian product; give it one for gradients");
    Scratch& memory = scratch();
    const std::size_t samples = std::size_t(frame.samples);
    T* const of_inputs = rows_in(frame.adjoints, op.second, frame);
    to_samples(rows_in(frame.adjoints, op.out, frame), field_.features, frame, memory.adjoint);
    memory.of_state.assign(std::size_t(field_.features) * samples, T(0));
    memory.of_input.assign(of_inputs ? std::size_t(field_.inputs) * samples : 0, T(0));
    memory.of_parameters.assign(frame.gradients ? std::size_t(field_.parameters) : 0, T(0));
    memory.of_depth.assign(frame.depth_adjoint ? samples : 0, T(0));
    field_.product(evaluation(frame, op, memory), memory.adjoint,
                   {.state = memory.of_state,
                    .parameters = memory.of_parameters,
                    .input = memory.of_input,
                    .depth = memory.of_depth});
    T* state = rows_in(frame.adjoints, op.first, frame);
    for (std::int64_t r = 0; r < field_.features; ++r) {
      for (std::int64_t i = 0; i < frame.width; ++i) {
        const T part = i < frame.samples ? memory.of_state[std::size_t(i * field_.features + r)] : T(0);
        state[r * frame.width + i] = op.sets_first ? part : state[r * frame.width + i] + part;
      }
    }
    for (std::int64_t r = 0; of_inputs && r < field_.inputs; ++r) {
      for (std::int64_t i = 0; i < frame.samples; ++i)
        of_inputs[r * frame.width + i] += memory.of_input[std::size_t(i * field_.inputs + r)];
    }
    for (std::size_t n = 0; n < memory.of_parameters.size(); ++n)
      frame.gradients[op.matrix].weight[n] += frame.gradient_scale * memory.of_parameters[n];
    for (std::size_t i = 0; i < memory.of_depth.size(); ++i) frame.depth_adjoint[i] += memory.of_depth[i];
  }

  CallbackField<T> field_;
};

/// What a program keeps: the functions, and how the kernels reach them.
template <class T> struct Owned {
  explicit Owned(const CallbackField<T>& field) : functions(field) {
    callbacks.context = &functions;
    const fused::Callback<T> own{Functions<T>::evaluate, Functions<T>::pull_back};
    if constexpr (sizeof(T) == 4) {
      callbacks.f32 = own;
    } else {
      callbacks.f64 = own;
    }
  }
  Functions<T> functions;
  fused::Callbacks callbacks;
};

}  // namespace

template <class T> ProgramField CallbackField<T>::field() const {
  using session::most_features;
  require(features >= 1 && features <= most_features, "`features` of the state must be 1 to ", most_features,
          ", got ", features);
  require(parameters >= 0 && inputs >= 0 && parameters <= most_parameters && inputs <= most_features,
          "`parameters` must be 0 to ", most_parameters, " and `inputs` 0 to ", most_features, ", got ",
          parameters, " and ", inputs);
  require(bool(rate), "a field needs a `rate`, got none");
  const auto owned = std::make_shared<Owned<T>>(*this);
  fused::Builder build{std::int32_t(features)};
  std::vector<Parameter> list;
  if (parameters > 0) list.push_back({.name = "parameters", .shape = {parameters}});
  std::vector<std::int64_t> input_features;
  Rows controls = {};
  if (inputs > 0) {
    controls = build.input(std::int32_t(list.size()), std::int32_t(inputs));
    input_features.push_back(inputs);
  }
  build.give(build.call(owned->callbacks, owned, controls, std::int32_t(parameters), /*tensor=*/0));
  return {std::make_shared<fused::Program>(std::move(build).finish()), std::move(list),
          std::move(input_features), break_points};
}

template struct CallbackField<float>;
template struct CallbackField<double>;

}  // namespace fathom
