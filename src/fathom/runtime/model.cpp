#include "fathom/runtime/model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

#include "fathom/runtime/solver.hpp"
#include "fathom/support/error.hpp"

namespace fathom::runtime {

namespace {

void standardise(std::span<const double> values, const Standardisation& scale, std::vector<double>& result) {
  result.assign(values.begin(), values.end());
  for (std::size_t i = 0; i < result.size() && !scale.mean.empty(); ++i) {
    const std::size_t column = i % scale.mean.size();
    result[i] = (result[i] - scale.mean[column]) / scale.deviation[column];
  }
}

void unstandardise(std::span<double> values, const Standardisation& scale) {
  for (std::size_t i = 0; i < values.size() && !scale.mean.empty(); ++i) {
    const std::size_t column = i % scale.mean.size();
    values[i] = values[i] * scale.deviation[column] + scale.mean[column];
  }
}

void softmax(std::span<double> scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

}  // namespace

Model::Model(ModelFile file, const Options& options) : spec_(file.spec), facts_(std::move(file.facts)) {
  require(options.threads >= 1, "a model runs on at least 1 thread, got ", options.threads);
  solver_ = detail::make_solver(file, options.threads);
}

Workspace::Workspace(std::shared_ptr<const detail::Solver> solver, std::unique_ptr<detail::Memory> memory)
    : solver_(std::move(solver)), memory_(std::move(memory)) {}
Workspace::Workspace(const Model& model) : Workspace(model.solver_, model.solver_->make_memory()) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;

const ode::SolveReport& Workspace::report() const { return memory_->report; }

std::size_t Model::answer_size() const {
  return spec_.task == Task::density ? 1 : std::size_t(spec_.outputs());
}

void Model::check_call(std::size_t size, std::span<double> answers, const Workspace& workspace) const {
  require(workspace.solver_ == solver_,
          "a workspace is for the model that it was made with; make another one for this model");
  require(answers.size() == size, "`answers` must have room for ", size, " number(s), got ", answers.size());
}

std::size_t Model::rows_in(std::span<const double> rows) const {
  const std::size_t columns = spec_.inputs.size();
  require(rows.size() % columns == 0, "the model needs rows of ", columns, " columns, got ", rows.size(),
          " number(s), which are not whole rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    require(std::isfinite(rows[i]), "row ", i / columns + 1, " has no finite number in column `",
            spec_.inputs[i % columns], "`");
  }
  return rows.size() / columns;
}

void Model::predict_into(std::span<const double> rows, std::span<double> answers,
                         Workspace& workspace) const {
  require(spec_.task != Task::series, "a series is forecast from a state and times, not predicted");
  check_call(rows_in(rows) * answer_size(), answers, workspace);
  detail::Memory& memory = *workspace.memory_;
  const bool is_density = spec_.task == Task::density;
  const std::array<double, 2> span = {spec_.span.first, spec_.span.last};
  standardise(rows, spec_.input_scale, memory.inputs);
  solver_->solve_inputs(memory.inputs, span, is_density ? Carries::state_and_divergence : Carries::state,
                        memory);
  if (is_density) return find_log_densities(answers, memory);
  solver_->read_answers(1, answers, memory);
  if (spec_.task == Task::regression) unstandardise(answers, spec_.target_scale);
  if (spec_.task == Task::classification) {
    const std::size_t labels = spec_.labels.size();
    for (std::size_t at = 0; at < answers.size(); at += labels) softmax(answers.subspan(at, labels));
  }
}

/// log p(x) = log N(z(S)) + int div f ds - log of the deviations, a value for each row.
void Model::find_log_densities(std::span<double> answers, detail::Memory& memory) const {
  const auto columns = std::size_t(spec_.input_features());
  solver_->read_ends(memory);
  double volume = 0.5 * double(columns) * std::log(2 * std::numbers::pi);
  for (double deviation : spec_.input_scale.deviation) volume += std::log(deviation);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    double squares = 0;
    for (std::size_t c = 0; c < columns; ++c)
      squares += memory.states[i * columns + c] * memory.states[i * columns + c];
    answers[i] = memory.integrals[i] - 0.5 * squares - volume;
  }
}

void Model::forecast_into(std::span<const double> rows, std::span<const double> times,
                          std::span<double> answers, Workspace& workspace) const {
  require(spec_.task == Task::series, "only the model of a series can forecast; this one is for ",
          name_of(spec_.task));
  check_call(times.size() * rows_in(rows) * answer_size(), answers, workspace);
  detail::Memory& memory = *workspace.memory_;
  memory.depths.assign(times.begin(), times.end());
  for (double& depth : memory.depths) depth = (depth - spec_.time.origin) / spec_.time.unit;
  standardise(rows, spec_.input_scale, memory.inputs);
  solver_->solve_inputs(memory.inputs, memory.depths, Carries::state, memory);
  solver_->read_answers(0, answers, memory);
  unstandardise(answers, spec_.input_scale);
}

/// What `work` writes into `size` numbers, in a workspace of the moment.
template <class Work> Answer Model::answer_of(std::size_t size, const Work& work) const {
  Workspace workspace(solver_, solver_->take_spare());
  Answer answer{.values = std::vector<double>(size), .report = {}};
  work(answer.values, workspace);
  answer.report = workspace.report();
  solver_->give_spare(std::move(workspace.memory_));
  return answer;
}

Answer Model::solve_rows(std::span<const double> rows) const {
  return answer_of(rows.size() / spec_.inputs.size() * answer_size(),
                   [&](std::span<double> answers, Workspace& work) { predict_into(rows, answers, work); });
}

Answer Model::solve_times(std::span<const double> rows, const std::vector<double>& times) const {
  return answer_of(
      times.size() * (rows.size() / spec_.inputs.size()) * answer_size(),
      [&](std::span<double> answers, Workspace& work) { forecast_into(rows, times, answers, work); });
}

std::vector<double> Model::sample(std::size_t count, std::uint64_t seed) const {
  require(spec_.task == Task::density, "only the model of a density can be sampled; this one is for ",
          name_of(spec_.task));
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> start(count * spec_.inputs.size());
  for (double& value : start) value = normal(random);
  const std::unique_ptr<detail::Memory> memory = solver_->make_memory();
  solver_->solve_states(start, std::array{spec_.span.last, spec_.span.first}, *memory);
  solver_->read_ends(*memory);
  unstandardise(memory->states, spec_.input_scale);
  return std::move(memory->states);
}

const std::string& Model::label(std::span<const double> probabilities) const {
  require(probabilities.size() == spec_.labels.size() && !probabilities.empty(), "a row has ",
          spec_.labels.size(), " probabilities, got ", probabilities.size());
  return spec_.labels[std::size_t(std::max_element(probabilities.begin(), probabilities.end()) -
                                  probabilities.begin())];
}

Model load(const std::filesystem::path& path, const Options& options) {
  ModelFile file = read_model_file(path);
  try {
    return Model(std::move(file), options);
  } catch (const Error& error) { throw Error(text("`", path.string(), "`: ", error.what())); }
}

}  // namespace fathom::runtime
