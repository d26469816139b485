#include "fathom/runtime/solver.hpp"

#include <algorithm>

#include "fathom/ode/failure.hpp"
#include "fathom/session.hpp"
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

/// How a model is solved; the field is the state's own, or has the divergence beside it.
SolveOptions options_of(const ModelSpec& spec, int threads) {
  return {.method = method_of(spec.solver),
          .steps = steps_of(spec.solver),
          .derivative = Derivative::none,
          .threads = threads};
}

template <class T> class TypedSolver final : public Solver {
 public:
  TypedSolver(const ModelFile& file, int threads)
      : spec_(file.spec),
        options_(options_of(spec_, threads)),
        input_(linear_named(file, "input")),
        velocity_(linear_named(file, "velocity")),
        head_(linear_named(file, "head")),
        field_(field_of(spec_, Carries::state)),
        parameters_(field_parameters<T>(file)) {
    if (spec_.task != Task::density) return;
    try {
      with_divergence_ = field_of(spec_, Carries::state_and_divergence);
    } catch (const fused::NoProgram& none) { no_divergence_ = none.reason; }
  }

  std::unique_ptr<Memory> make_memory() const override {
    return std::make_unique<TypedMemory>(Session<T>(field_, options_));
  }

  void solve_inputs(std::span<const double> inputs, std::span<const double> depths, Carries carries,
                    Memory& memory) const override {
    const auto columns = std::size_t(spec_.input_features()), features = std::size_t(spec_.state_features());
    const std::size_t rows = inputs.size() / columns;
    TypedMemory& own = static_cast<TypedMemory&>(memory);
    own.start.resize(rows * features);
    own.row.resize(features), own.input.resize(columns);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t c = 0; c < columns; ++c) own.input[c] = double(T(inputs[i * columns + c]));
      start_of(own.input, own.row);
      std::copy(own.row.begin(), own.row.end(), own.start.begin() + std::ptrdiff_t(i * features));
    }
    if (spec_.field.control != ControlKind::none) own.control.assign(inputs.begin(), inputs.end());
    solve(rows, depths, carries, own);
  }

  void solve_states(std::span<const double> states, std::span<const double> depths,
                    Memory& memory) const override {
    TypedMemory& own = static_cast<TypedMemory&>(memory);
    own.start.assign(states.begin(), states.end());
    solve(states.size() / std::size_t(spec_.state_features()), depths, Carries::state, own);
  }

  void read_answers(std::size_t first, std::span<double> answers, Memory& memory) const override {
    const auto features = std::size_t(spec_.state_features()), outputs = std::size_t(spec_.outputs());
    TypedMemory& own = static_cast<TypedMemory&>(memory);
    const T* state = own.saved.data() + first * own.start.size();
    own.row.resize(features);
    for (std::size_t at = 0; at < answers.size(); at += outputs, state += features) {
      std::copy_n(state, features, own.row.begin());
      if (head_)
        head_->apply(own.row.data(), answers.data() + at);
      else
        std::copy_n(own.row.data(), outputs, answers.data() + at);
    }
  }

  void read_ends(Memory& memory) const override {
    TypedMemory& own = static_cast<TypedMemory&>(memory);
    own.states.assign(own.saved.end() - std::ptrdiff_t(own.start.size()), own.saved.end());
    own.integrals.assign(own.running.end() - std::ptrdiff_t(own.running.size() / 2), own.running.end());
  }

 private:
  /// Whether the Session has read the parameters, which never change, is known here.
  struct Kept {
    explicit Kept(Session<T> made) : session(std::move(made)) {}
    Session<T> session;
    bool has_read_parameters = false;
  };
  struct TypedMemory final : Memory {
    explicit TypedMemory(Session<T> session) : flow(std::move(session)) {}
    Kept flow;
    std::optional<Kept> with_divergence;
    Data<T> data;
    std::vector<T> start, control, saved;  // (rows, features), (rows, inputs), (depths, rows, features)
    std::vector<T> running;                // (depths, rows): of the divergence
    std::vector<double> row, input;        // of one sample
    // Where rows are solved one by one: (depths, features) and (depths) of one, and what each cost.
    std::vector<T> row_saved, row_running;
    std::vector<ode::SolveReport> reports;
  };

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

  Kept& kept_for(Carries carries, TypedMemory& memory) const {
    if (carries == Carries::state) return memory.flow;
    if (!with_divergence_)
      throw Error(text("the density of this model needs the full library: ", no_divergence_));
    if (!memory.with_divergence) memory.with_divergence.emplace(Session<T>(*with_divergence_, options_));
    return *memory.with_divergence;
  }

  /// From the start in `memory` to the states saved there.
  void solve(std::size_t rows, std::span<const double> depths, Carries carries, TypedMemory& memory) const {
    Kept& kept = kept_for(carries, memory);
    memory.saved.resize(depths.size() * memory.start.size());
    memory.running.resize(carries == Carries::state ? 0 : depths.size() * rows);
    memory.report = {};
    if (rows == 0) return;
    if (spec_.solver.steps_per_sample && rows > 1) {
      solve_one_by_one(rows, depths, kept, memory);
    } else {
      memory.report = solve_rows(0, rows, depths, kept, memory.saved, memory.running, memory);
    }
  }

  ode::SolveReport solve_rows(std::size_t first, std::size_t rows, std::span<const double> depths, Kept& kept,
                              std::vector<T>& saved, std::vector<T>& running, TypedMemory& memory) const {
    const std::int64_t features = spec_.state_features(), columns = spec_.input_features();
    memory.data.start = {memory.start.data() + first * std::size_t(features), std::int64_t(rows), features};
    if (spec_.field.control != ControlKind::none) {
      const T* control = memory.control.data() + first * std::size_t(columns);
      memory.data.inputs.assign(1, {control, std::int64_t(rows), columns});
    }
    memory.data.parameters = parameters_;
    memory.data.parameters_unchanged = kept.has_read_parameters;
    const ode::SolveReport report =
        kept.session.solve(memory.data, depths, view_of(saved, std::int64_t(rows) * features),
                           view_of(running, std::int64_t(rows)));
    kept.has_read_parameters = true;
    return report;
  }

  /// Each row as if it were alone.
  void solve_one_by_one(std::size_t rows, std::span<const double> depths, Kept& kept,
                        TypedMemory& memory) const {
    const std::size_t features = memory.start.size() / rows;
    memory.row_saved.resize(depths.size() * features);
    memory.row_running.resize(memory.running.size() / rows);
    memory.reports.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      try {
        memory.reports[i] = solve_rows(i, 1, depths, kept, memory.row_saved, memory.row_running, memory);
      } catch (const ode::SolveFailure& failure) { throw failure.of_sample(std::int64_t(i)); }
      for (std::size_t d = 0; d < depths.size(); ++d) {
        std::copy_n(memory.row_saved.data() + d * features, features,
                    memory.saved.data() + (d * rows + i) * features);
      }
      for (std::size_t d = 0; d < memory.row_running.size(); ++d)
        memory.running[d * rows + i] = memory.row_running[d];
    }
    memory.report = ode::mean_of(memory.reports);
  }

  ModelSpec spec_;
  SolveOptions options_;
  std::optional<Linear> input_, velocity_, head_;
  ProgramField field_;
  std::optional<ProgramField> with_divergence_;
  std::string no_divergence_;
  std::vector<T> parameters_;  // of the field
};

}  // namespace

std::unique_ptr<Memory> Solver::take_spare() const {
  {
    const std::lock_guard lock(spare_guard_);
    if (spare_) return std::move(spare_);
  }
  return make_memory();
}

void Solver::give_spare(std::unique_ptr<Memory> memory) const {
  constexpr std::size_t most_numbers = 4096;  // a batch that needs more pays for its memory once a call
  if (memory->inputs.size() > most_numbers || memory->depths.size() > most_numbers) return;
  const std::lock_guard lock(spare_guard_);
  spare_ = std::move(memory);
}

std::unique_ptr<const Solver> make_solver(const ModelFile& file, int threads) {
  try {
    if (file.spec.precision == Precision::float32) return std::make_unique<TypedSolver<float>>(file, threads);
    return std::make_unique<TypedSolver<double>>(file, threads);
  } catch (const fused::NoProgram& none) {
    throw Error(text("this model needs the full library, fathom::fathom: ", none.reason));
  }
}

}  // namespace fathom::runtime::detail
