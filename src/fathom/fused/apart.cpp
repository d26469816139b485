#include "fathom/fused/apart.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>

#include "fathom/fused/pool.hpp"

namespace fathom::fused {

namespace {

constexpr std::int64_t most_parts = 32;

}  // namespace

template <class T>
Apart<T>::Apart(std::shared_ptr<const Program> program, const Tensors<T>& tensors, std::int64_t batch,
                int threads)
    : program_(std::move(program)),
      tensors_(tensors),
      batch_(batch),
      // Functions of the user's own are nobody's to call from two threads at once.
      threads_(program_->has_functions() || !program_->callbacks.empty()
                   ? 1
                   : int(std::clamp<std::int64_t>(threads, 1, batch))) {
  // The same parts for any number of threads, so that sums over them have the same bits; many, since samples differ in their steps.
  const std::int64_t count = std::min<std::int64_t>(batch, most_parts);
  for (std::int64_t n = 0; n < count; ++n) {
    Part& part = parts_.emplace_back(Part{.begin = batch * n / count, .end = batch * (n + 1) / count});
    part.problem = std::make_unique<Problem<T>>(program_, tensors_of(part.begin), 1, 1);
    part.start.resize(part.problem->state_size());
  }
}

template <class T> Tensors<T> Apart<T>::tensors_of(std::int64_t sample) const {
  Tensors<T> tensors = tensors_;
  for (const SampleInput& input : program_->inputs) {
    const std::size_t size = std::size_t(input.rows.count);
    auto& tensor = tensors[std::size_t(input.tensor)];
    tensor = tensors_[std::size_t(input.tensor)].subspan(std::size_t(sample) * size, size);
  }
  return tensors;
}

template <class T> void Apart<T>::become(Part& part, std::int64_t sample) const {
  part.problem->offset = sample;
  if (!program_->inputs.empty()) part.problem->read_inputs(tensors_of(sample));
  gather(sample, start_, part.start.data());
}

template <class T> void Apart<T>::gather(std::int64_t sample, const T* states, T* one) const {
  const std::int64_t features = program_->features(), losses = program_->loss_rows;
  std::copy_n(states + sample * features, features, one);
  std::copy_n(states + batch_ * features + sample * losses, losses, one + features);
}

template <class T> void Apart<T>::scatter(std::int64_t sample, const T* one, T* states) const {
  const std::int64_t features = program_->features(), losses = program_->loss_rows;
  std::copy_n(one, features, states + sample * features);
  std::copy_n(one + features, losses, states + batch_ * features + sample * losses);
}

template <class T> std::span<const double> Apart<T>::depths_of(std::int64_t sample) const {
  const std::span<const double> all = request_.depths;
  if (!has_own_depths()) return all;
  const std::size_t begin = request_.own_begins[std::size_t(sample)];
  return all.subspan(begin, request_.own_begins[std::size_t(sample) + 1] - begin);
}

template <class T> void Apart<T>::gather_saved(std::int64_t sample, const T* saved, T* one) const {
  const std::size_t size = std::size_t(program_->state_rows), depths = depths_of(sample).size();
  if (has_own_depths()) {
    std::copy_n(saved + request_.own_begins[std::size_t(sample)] * size, depths * size, one);
    return;
  }
  for (std::size_t n = 0; n < depths; ++n)
    gather(sample, saved + n * size * std::size_t(batch_), one + n * size);
}

template <class T> void Apart<T>::scatter_saved(std::int64_t sample, const T* one, T* saved) const {
  const std::size_t size = std::size_t(program_->state_rows), depths = depths_of(sample).size();
  if (has_own_depths()) {
    std::copy_n(one, depths * size, saved + request_.own_begins[std::size_t(sample)] * size);
    return;
  }
  for (std::size_t n = 0; n < depths; ++n)
    scatter(sample, one + n * size, saved + n * size * std::size_t(batch_));
}

/// dL/d(depth) of a sample to where the caller wants it, or to the sums over samples.
template <class T>
void Apart<T>::move_depths(Part& part, std::int64_t sample, const std::vector<double>& found,
                           double* depths) const {
  if (has_own_depths()) {
    std::copy(found.begin(), found.end(), depths + request_.own_begins[std::size_t(sample)]);
    return;
  }
  for (std::size_t n = 0; n < found.size(); ++n) part.depths[n] += found[n];
}

/// A part goes to whichever thread is free.
template <class T> template <class Work> void Apart<T>::for_each_part(Work&& work) {
  std::atomic<std::size_t> next = 0;
  run_in_parallel(threads_, threads_, [&](std::int64_t, int) {
    for (std::size_t n; (n = next.fetch_add(1)) < parts_.size();) {
      parts_[n].failure = {};
      try {
        work(parts_[n]);
      } catch (...) { parts_[n].failure = std::current_exception(); }
    }
  });
  for (Part& part : parts_) {
    if (part.failure) std::rethrow_exception(part.failure);
  }
}

template <class T>
std::vector<ode::SolveReport> Apart<T>::solve(const Request& request, const T* start, T* saved) {
  request_ = request;
  for (std::int64_t* budget :
       {&request_.options.keep_budget, &request_.options.activation_budget, &request_.options.rate_budget}) {
    *budget = *budget == 0 ? 0 : std::max<std::int64_t>(1, *budget / batch_);
  }
  start_ = start;
  for (Part& part : parts_) part.way_back.reset();  // of another method, perhaps
  auto reports = std::vector<ode::SolveReport>(std::size_t(batch_));
  const auto began = std::chrono::steady_clock::now();
  for_each_part([&](Part& part) { solve_part(part, saved, reports.data()); });
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  for (ode::SolveReport& one : reports)
    one.seconds = taken.count() / double(batch_);  // they ran side by side
  return reports;
}

template <class T> void Apart<T>::solve_part(Part& part, T* saved, ode::SolveReport* reports) {
  const std::size_t size = part.problem->state_size();
  std::size_t most = 0;
  for (std::int64_t sample = part.begin; sample < part.end; ++sample)
    most = std::max(most, depths_of(sample).size());
  part.saved.resize(most * size);
  part.engines.clear();
  std::vector<double> depths;
  for (std::int64_t sample = part.begin; sample < part.end; ++sample) {
    become(part, sample);
    const std::span<const double> own = depths_of(sample);
    depths.assign(own.begin(), own.end());
    if (part.engines.empty() || request_.options.keeps_starts) {
      part.engines.push_back(
          std::make_unique<Engine<T>>(*part.problem, request_.options, part.start.data(), part.saved.data()));
    } else {
      part.engines.back()->begin_again(request_.options, part.start.data());
    }
    reports[sample] = ode::integrate(*part.engines.back(), request_.plan, depths);
    if (request_.options.keeps_starts) part.engines.back()->keep_records();
    scatter_saved(sample, part.saved.data(), saved);
  }
}

template <class T>
typename Apart<T>::Result Apart<T>::pull_back(const T* saved_adjoints, const Wanted& wanted) {
  for_each_part([&](Part& part) { pull_back_part(part, saved_adjoints, wanted); });
  Result result{.weights = std::vector<double>(weights().gradient_size()), .evaluations = {}};
  for (const Part& part : parts_) {
    for (std::size_t n = 0; n < result.weights.size(); ++n) result.weights[n] += part.sums.weights[n];
    result.evaluations.insert(result.evaluations.end(), part.sums.evaluations.begin(),
                              part.sums.evaluations.end());
    if (!wanted.depths || has_own_depths()) continue;
    if (&part == &parts_.front()) std::fill_n(wanted.depths, request_.depths.size(), 0.0);
    for (std::size_t n = 0; n < part.depths.size(); ++n) wanted.depths[n] += part.depths[n];
  }
  return result;
}

template <class T>
void Apart<T>::pull_back_part(Part& part, const T* saved_adjoints, const Wanted& wanted) const {
  const std::size_t size = part.problem->state_size();
  const bool wants_inputs = std::any_of(wanted.inputs.begin(), wanted.inputs.end(), [](T* to) { return to; });
  const SweepWanted sums{.weights = wanted.weights,
                         .inputs = wants_inputs,
                         .depths = wanted.depths != nullptr,
                         .start = wanted.start != nullptr};
  part.sums = {.weights = std::vector<double>(weights().gradient_size()), .evaluations = {}};
  part.pass.problem = part.problem.get();
  part.pass.method = request_.options.method;
  part.pass.start = part.start.data();
  part.depths.assign(wanted.depths && !has_own_depths() ? request_.depths.size() : 0, 0.0);
  std::vector<T> adjoints;
  for (std::int64_t sample = part.begin; sample < part.end; ++sample) {
    become(part, sample);
    const std::span<const double> depths = depths_of(sample);
    adjoints.resize(depths.size() * size);
    gather_saved(sample, saved_adjoints, adjoints.data());
    Engine<T>& engine = *part.engines[std::size_t(sample - part.begin)];
    part.pass.records = &engine.records();
    part.pass.layout = engine.activation_layout();
    part.pass.depths.assign(depths.begin(), depths.end());
    part.pass.bound = part.pass.given = depths.size();
    if (!part.way_back) part.way_back = std::make_unique<WayBack<T>>(part.pass);
    const SweepResult<T>& one = part.way_back->pull_back(adjoints.data(), SavedAs::samples, sums);
    for (std::size_t n = 0; n < one.weights.size(); ++n) part.sums.weights[n] += one.weights[n];
    part.sums.evaluations.push_back(one.evaluations);
    if (wanted.start) scatter(sample, one.start.data(), wanted.start);
    if (wanted.depths) move_depths(part, sample, one.depths, wanted.depths);
    for (std::size_t n = 0; n < wanted.inputs.size(); ++n) {
      const SampleInput& input = program_->inputs[n];
      if (wanted.inputs[n])
        read_input(*part.problem, input, one.inputs, wanted.inputs[n] + sample * input.rows.count);
    }
  }
}

template class Apart<float>;
template class Apart<double>;

}  // namespace fathom::fused
