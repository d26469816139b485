#include "fathom/runtime/solver.hpp"

#include <algorithm>

#include "fathom/fused/engine.hpp"
#include "fathom/support/error.hpp"

namespace fathom::runtime::detail {

namespace {

/// Dense layers outside the field: few and small, so that plain loops do.
struct Linear {
  std::vector<double> weight;  // (outputs, inputs)
  std::vector<double> bias;    // (outputs)

  std::size_t outputs() const { return bias.size(); }
  std::size_t inputs() const { return weight.size() / bias.size(); }
  void apply(const double* in, double* out) const {
    for (std::size_t o = 0; o < outputs(); ++o) {
      double sum = bias[o];
      for (std::size_t i = 0; i < inputs(); ++i) sum += weight[o * inputs() + i] * in[i];
      out[o] = sum;
    }
  }
};

std::optional<Linear> linear_named(const ModelFile& file, const std::string& name) {
  const auto weight = file.tensors.find(name + ".weight");
  if (weight == file.tensors.end()) return {};
  return Linear{weight->second.numbers<double>(), file.tensors.at(name + ".bias").numbers<double>()};
}

/// The same batch is cut into the same tiles by the full library: see sensitivity/fused_run.hpp.
int threads_for(std::size_t rows, int most) { return rows <= 16 ? 1 : most; }

template <class T> class TypedSolver final : public Solver {
 public:
  TypedSolver(const ModelFile& file, int threads)
      : spec_(file.spec),
        threads_(threads),
        input_(linear_named(file, "input")),
        velocity_(linear_named(file, "velocity")),
        head_(linear_named(file, "head")),
        program_(program_of(spec_, Carries::state)) {
    const std::size_t layers = field_layers(spec_).size();
    for (std::size_t i = 1; i <= layers; ++i) {
      const std::string name = "field." + std::to_string(i);
      weights_.push_back(file.tensors.at(name + ".weight").template numbers<T>());
      weights_.push_back(file.tensors.at(name + ".bias").template numbers<T>());
    }
    method_ = method_of(spec_.solver);
    steps_ = steps_of(spec_.solver);
    const DepthKind kind = spec_.field.depth.kind;
    if (kind == DepthKind::galerkin || kind == DepthKind::stacked) {
      // One set for each layer, as the full library has it.
      for (std::size_t i = 0; i < layers; ++i) {
        const auto some = basis_of(spec_).break_points;
        break_points_.insert(break_points_.end(), some.begin(), some.end());
      }
    }
    if (spec_.task != Task::density) return;
    try {
      with_divergence_ = program_of(spec_, Carries::state_and_divergence);
    } catch (const fused::NoProgram& none) { no_divergence_ = none.reason; }
  }

  Course from_inputs(std::span<const double> inputs, const std::vector<double>& depths,
                     Carries carries) const override {
    const auto columns = std::size_t(spec_.input_features()), features = std::size_t(spec_.state_features());
    const std::size_t rows = inputs.size() / columns;
    std::vector<double> row(features);
    std::vector<T> start, control;
    for (std::size_t i = 0; i < rows; ++i) {
      start_of(rounded(inputs.subspan(i * columns, columns)), row);
      start.insert(start.end(), row.begin(), row.end());
    }
    if (spec_.field.control != ControlKind::none) control.assign(inputs.begin(), inputs.end());
    return solve(std::move(start), control, rows, depths, carries);
  }

  Course from_states(std::span<const double> states, const std::vector<double>& depths) const override {
    const std::size_t rows = states.size() / std::size_t(spec_.state_features());
    return solve(std::vector<T>(states.begin(), states.end()), {}, rows, depths, Carries::state);
  }

  std::vector<double> head(std::span<const double> states) const override {
    const auto features = std::size_t(spec_.state_features()), outputs = std::size_t(spec_.outputs());
    const std::size_t rows = states.size() / features;
    std::vector<double> answers(rows * outputs);
    for (std::size_t i = 0; i < rows; ++i) {
      const double* state = states.data() + i * features;
      double* answer = answers.data() + i * outputs;
      if (head_)
        head_->apply(state, answer);
      else
        std::copy(state, state + outputs, answer);
    }
    return answers;
  }

 private:
  static std::vector<double> rounded(std::span<const double> values) {
    std::vector<double> result;
    for (double value : values) result.push_back(double(T(value)));
    return result;
  }

  /// z(0) = [positions, velocities]
  void start_of(const std::vector<double>& x, std::vector<double>& z) const {
    std::fill(z.begin(), z.end(), 0.0);
    std::size_t place = 0;
    if (spec_.augmentation.kind != AugmentationKind::input) {
      std::copy(x.begin(), x.end(), z.begin());
      place = x.size();
    }
    if (input_) input_->apply(x.data(), z.data() + place);
    if (velocity_) velocity_->apply(x.data(), z.data() + spec_.positions());
  }

  Course solve(std::vector<T> start, const std::vector<T>& control, std::size_t rows,
               const std::vector<double>& depths, Carries carries) const {
    const auto program = carries == Carries::state ? program_ : with_divergence_;
    if (!program) throw Error(text("the density of this model needs the full library: ", no_divergence_));
    const auto features = std::size_t(spec_.state_features());
    const std::size_t losses = carries == Carries::state ? 0 : rows, size = rows * features + losses;
    start.resize(size);  // integrals begin at 0
    Course course;
    course.states.resize(depths.size() * rows * features);
    course.integrals.resize(losses);
    if (rows == 0) return course;

    fused::Tensors<T> tensors(weights_.begin(), weights_.end());
    if (!control.empty()) tensors.emplace_back(control);
    fused::Problem<T> problem(program, std::move(tensors), std::int64_t(rows), threads_for(rows, threads_));
    fused::EngineOptions options{.method = method_};
    if (const auto* adaptive = std::get_if<ode::AdaptiveSteps>(&steps_)) options.adaptive = *adaptive;
    std::vector<T> saved(depths.size() * size);
    fused::Engine<T> engine(problem, options, start.data(), saved.data());
    course.report =
        ode::integrate(engine, {.method = method_, .steps = steps_, .break_points = break_points_}, depths);
    for (std::size_t d = 0; d < depths.size(); ++d) {
      std::copy_n(saved.begin() + std::ptrdiff_t(d * size), rows * features,
                  course.states.begin() + std::ptrdiff_t(d * rows * features));
    }
    std::copy_n(saved.end() - std::ptrdiff_t(losses), losses, course.integrals.begin());
    return course;
  }

  ModelSpec spec_;
  int threads_;
  std::optional<Linear> input_, velocity_, head_;
  std::vector<std::vector<T>> weights_;  // weight and bias of each layer of the field
  std::shared_ptr<const fused::Program> program_, with_divergence_;
  std::string no_divergence_;
  ode::Method method_;
  ode::Steps steps_;
  std::vector<double> break_points_;
};

}  // namespace

std::unique_ptr<const Solver> make_solver(const ModelFile& file, int threads) {
  try {
    if (file.spec.precision == Precision::float32) return std::make_unique<TypedSolver<float>>(file, threads);
    return std::make_unique<TypedSolver<double>>(file, threads);
  } catch (const fused::NoProgram& none) {
    throw Error(text("this model needs the full library, fathom::fathom: ", none.reason));
  }
}

}  // namespace fathom::runtime::detail
