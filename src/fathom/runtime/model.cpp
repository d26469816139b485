#include "fathom/runtime/model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "fathom/runtime/solver.hpp"
#include "fathom/support/error.hpp"

namespace fathom::runtime {

namespace {

using detail::Course;

std::vector<double> standardised(std::span<const double> values, const Standardisation& scale) {
  std::vector<double> result(values.begin(), values.end());
  for (std::size_t i = 0; i < result.size() && !scale.mean.empty(); ++i) {
    const std::size_t column = i % scale.mean.size();
    result[i] = (result[i] - scale.mean[column]) / scale.deviation[column];
  }
  return result;
}

void unstandardise(std::vector<double>& values, const Standardisation& scale) {
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

/// log p(x) = log N(z(S)) + int div f ds - log of the deviations, a value for each row.
std::vector<double> log_densities(const Course& course, const ModelSpec& spec) {
  const auto columns = std::size_t(spec.input_features());
  const std::size_t rows = course.integrals.size();
  const double* ends = course.states.data() + (course.states.size() - rows * columns);
  double volume = 0.5 * double(columns) * std::log(2 * std::numbers::pi);
  for (double deviation : spec.input_scale.deviation) volume += std::log(deviation);
  std::vector<double> values;
  for (std::size_t i = 0; i < rows; ++i) {
    double squares = 0;
    for (std::size_t c = 0; c < columns; ++c) squares += ends[i * columns + c] * ends[i * columns + c];
    values.push_back(course.integrals[i] - 0.5 * squares - volume);
  }
  return values;
}

}  // namespace

Model::Model(ModelFile file, const Options& options) : spec_(file.spec), facts_(std::move(file.facts)) {
  require(options.threads >= 1, "a model runs on at least 1 thread, got ", options.threads);
  solver_ = detail::make_solver(file, options.threads);
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

Answer Model::solve_rows(std::span<const double> rows) const {
  require(spec_.task != Task::series, "a series is forecast from a state and times, not predicted");
  const std::size_t count = rows_in(rows);
  const bool density = spec_.task == Task::density;
  const Course course =
      solver_->from_inputs(standardised(rows, spec_.input_scale), {spec_.span.first, spec_.span.last},
                           density ? Carries::state_and_divergence : Carries::state);
  if (density) return {log_densities(course, spec_), course.report};
  const std::span<const double> ends =
      std::span(course.states).last(count * std::size_t(spec_.state_features()));
  std::vector<double> answers = solver_->head(ends);
  if (spec_.task == Task::regression) unstandardise(answers, spec_.target_scale);
  if (spec_.task == Task::classification) {
    const std::size_t labels = spec_.labels.size();
    for (std::size_t i = 0; i < count; ++i) softmax(std::span(answers).subspan(i * labels, labels));
  }
  return {std::move(answers), course.report};
}

Answer Model::solve_times(std::span<const double> rows, const std::vector<double>& times) const {
  require(spec_.task == Task::series, "only the model of a series can forecast; this one is for ",
          name_of(spec_.task));
  rows_in(rows);
  std::vector<double> depths;
  for (double time : times) depths.push_back((time - spec_.time.origin) / spec_.time.unit);
  const Course course = solver_->from_inputs(standardised(rows, spec_.input_scale), depths, Carries::state);
  std::vector<double> answers = solver_->head(course.states);
  unstandardise(answers, spec_.input_scale);
  return {std::move(answers), course.report};
}

std::vector<double> Model::sample(std::size_t count, std::uint64_t seed) const {
  require(spec_.task == Task::density, "only the model of a density can be sampled; this one is for ",
          name_of(spec_.task));
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> start(count * spec_.inputs.size());
  for (double& value : start) value = normal(random);
  const Course course = solver_->from_states(start, {spec_.span.last, spec_.span.first});
  std::vector<double> samples(course.states.end() - std::ptrdiff_t(start.size()), course.states.end());
  unstandardise(samples, spec_.input_scale);
  return samples;
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
