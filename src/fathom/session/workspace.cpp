#include "fathom/session/workspace.hpp"

#include <algorithm>
#include <cmath>

#include "fathom/fused/options.hpp"
#include "fathom/support/error.hpp"

namespace fathom::session {

using fused::SavedAs;
using fused::SweepResult;
using fused::SweepWanted;

namespace {

bool has_varying_parameters(const fused::Program& program) {
  return std::any_of(program.matrices.begin(), program.matrices.end(),
                     [](const fused::Matrix& matrix) { return matrix.basis >= 0; });
}

/// The same tensors, those of parameters on a basis copied into `memory`. The others are copied by whoever reads them.
template <class T>
void copy_varying(const fused::Program& program, const fused::Tensors<T>& tensors, std::vector<T>& memory,
                  fused::Tensors<T>& copies) {
  copies.assign(tensors.begin(), tensors.end());
  if (!has_varying_parameters(program)) return;
  std::size_t size = 0;
  const auto for_each = [&](const auto& work) {
    for (const fused::Matrix& matrix : program.matrices) {
      if (matrix.basis < 0) continue;
      work(std::size_t(matrix.weight));
      if (matrix.bias >= 0) work(std::size_t(matrix.bias));
    }
  };
  for_each([&](std::size_t place) { size += tensors[place].size(); });
  memory.resize(size);
  T* to = memory.data();
  for_each([&](std::size_t place) {
    std::copy(tensors[place].begin(), tensors[place].end(), to);
    copies[place] = {to, tensors[place].size()};
    to += tensors[place].size();
  });
}

template <class T> void fill(fused::Buffer<T>& buffer, std::size_t size, T value) {
  if (buffer.size() != size) buffer = fused::Buffer<T>::raw(size);
  std::fill_n(buffer.data(), size, value);
}

ode::Plan plan_of(const SolveOptions& options, const std::vector<double>& break_points) {
  return {.method = options.method,
          .steps = options.steps,
          .break_points = break_points,
          .observer = options.observer};
}

}  // namespace

template <class T>
bool renew(std::unique_ptr<fused::EndLoss<T>>& kept, const LossCall<T>& loss, const fused::Tiles& tiles,
           int threads) {
  if (kept && are_alike(kept->program(), *loss.program)) return false;
  fused::Tensors<T> of_one = *loss.tensors;
  for (const fused::SampleInput& input : loss.program->inputs) {
    auto& tensor = of_one[std::size_t(input.tensor)];
    tensor = tensor.first(std::size_t(tiles.batch()) * std::size_t(input.rows.count));
  }
  kept = std::make_unique<fused::EndLoss<T>>(loss.program, of_one, tiles, threads);
  return true;
}
template bool renew(std::unique_ptr<fused::EndLoss<float>>&, const LossCall<float>&, const fused::Tiles&,
                    int);
template bool renew(std::unique_ptr<fused::EndLoss<double>>&, const LossCall<double>&, const fused::Tiles&,
                    int);

template <class T>
Workspace<T>::Workspace(std::shared_ptr<const fused::Program> program, const fused::Tensors<T>& tensors,
                        std::int64_t batch, const SolveOptions& options, std::vector<double> break_points,
                        std::uint64_t parameters)
    : options_(options),
      plan_(plan_of(options, break_points)),
      parameters_(parameters),
      problem_(
          program,
          [&] {
            copy_varying(*program, tensors, varying_, tensors_);
            return tensors_;
          }(),
          batch, fused::threads_for(batch, options.threads)),
      adjoint_plan_{.method = options.method,
                    .steps = options.adjoint_steps.value_or(options.steps),
                    .break_points = std::move(break_points)} {
  pass_ = {.problem = &problem_, .method = options_.method};
}

template <class T> Workspace<T>::~Workspace() = default;

template <class T> void Workspace<T>::read(const Call& call) {
  if (call.parameters != 0 && call.parameters == parameters_) {
    for (const fused::SampleInput& input : problem_.program->inputs)
      tensors_[std::size_t(input.tensor)] = call.tensors[std::size_t(input.tensor)];
    return problem_.read_inputs(tensors_);
  }
  parameters_ = 0;  // until they are read
  copy_varying(*problem_.program, call.tensors, varying_, tensors_);
  problem_.read(tensors_);
  parameters_ = call.parameters;
}

template <class T> void Workspace<T>::begin(const Call& call, bool keeps, T* saved, SavedAs as) {
  has_kept_ = false;
  read(call);
  const std::size_t size = problem_.state_size();
  const std::size_t features = std::size_t(problem_.program->features()) * std::size_t(batch());
  start_.resize(size);
  std::copy_n(call.start, features, start_.data());
  std::fill(start_.begin() + std::ptrdiff_t(features), start_.end(), T(0));
  depths_.assign(call.depths.begin(), call.depths.end());
  fused::EngineOptions options = fused::engine_options(options_.method, options_.steps);
  if (keeps && is_discrete())
    keep_for_gradient({options_.checkpoint_every, options_.memory_budget}, problem_.threads, options);
  if (engine_) {
    engine_->begin_again(options, start_.data());
  } else {
    engine_ = std::make_unique<fused::Engine<T>>(problem_, options, start_.data(), nullptr);
    pass_.layout = engine_->activation_layout();
  }
  engine_->save_to(saved, as);
}

template <class T> void Workspace<T>::integrate() {
  report_ = ode::integrate(*engine_, plan_, depths_, walks_);
  report_.engine = "fused";
  reached_ = depths_.size();
  const bool forwards = depths_.back() >= depths_.front();
  while (report_.stopped && reached_ > 1 &&
         (forwards ? depths_[reached_ - 1] > report_.reached : depths_[reached_ - 1] < report_.reached))
    --reached_;
}

template <class T> void Workspace<T>::refresh_pass() {
  pass_.records = &engine_->records();
  pass_.start = start_.data();
  pass_.depths.assign(depths_.begin(), depths_.begin() + std::ptrdiff_t(reached_));
  pass_.bound = reached_;
  pass_.given = depths_.size();
}

template <class T> const SolveReport& Workspace<T>::solve(const Call& call, bool keeps, T* saved) {
  begin(call, keeps, saved, SavedAs::samples);
  integrate();
  if (keeps && options_.derivative == Derivative::adjoint)
    saved_states_.assign(saved, saved + reached_ * problem_.state_size());
  has_kept_ = keeps;
  return report_;
}

template <class T>
const SweepResult<T>& Workspace<T>::pull_back(const T* adjoints, const SweepWanted& wanted) {
  require(has_kept_, "a gradient needs a solve that kept what it takes");
  return is_discrete() ? pull_back_discrete(adjoints, SavedAs::samples, wanted)
                       : pull_back_adjoint(adjoints, wanted);
}

template <class T>
const SweepResult<T>& Workspace<T>::pull_back_discrete(const T* adjoints, SavedAs as,
                                                       const SweepWanted& wanted) {
  refresh_pass();
  if (!way_back_) way_back_ = std::make_unique<fused::WayBack<T>>(pass_);
  const SweepResult<T>& result = way_back_->pull_back(adjoints, as, wanted);
  report_.backward_evaluations += result.evaluations;
  return result;
}

template <class T>
const SweepResult<T>& Workspace<T>::pull_back_adjoint(const T* adjoints, const SweepWanted& wanted) {
  const std::size_t size = problem_.state_size();
  SweepResult<T>& result = adjoint_result_;
  result.weights.assign(problem_.weights.gradient_size(), 0.0);
  result.depths.assign(wanted.depths ? depths_.size() : 0, 0.0);
  fill(result.inputs, problem_.inputs.size(), T(0));
  std::vector<T>& a = result.start;
  a.assign(size, T(0));
  both_.resize(2 * size);
  for (std::size_t place = reached_ - 1; place > 0; --place) {
    const T *state = saved_states_.data() + place * size, *adjoint = adjoints + place * size;
    const double from = depths_[place];
    if (wanted.depths)
      result.depths[place] += along_field(std::nextafter(from, depths_.front()), state, adjoint);
    for (std::size_t n = 0; n < size; ++n) a[n] += adjoint[n];
    if (from != depths_[place - 1]) integrate_adjoint(place, state);
  }
  if (wanted.depths)
    result.depths.front() -=
        along_field(std::nextafter(depths_.front(), depths_.back()), saved_states_.data(), a.data());
  for (std::size_t n = 0; n < size; ++n) a[n] += adjoints[n];
  return result;
}

/// a, which is in the result's start, from one saved depth to the one before it; with the sums of the gradients along the way.
template <class T> void Workspace<T>::integrate_adjoint(std::size_t place, const T* state) {
  const std::size_t size = problem_.state_size();
  SweepResult<T>& result = adjoint_result_;
  std::copy_n(state, size, both_.data());
  std::copy(result.start.begin(), result.start.end(), both_.begin() + std::ptrdiff_t(size));
  stretch_.assign({depths_[place], depths_[place - 1]});
  adjoint_plan_.steps =
      fused::steps_for_stretch(options_.adjoint_steps ? *options_.adjoint_steps : options_.steps,
                               stretch_[1] - stretch_[0], depths_.back() - depths_.front());
  fused::EngineOptions options = fused::engine_options(adjoint_plan_.method, adjoint_plan_.steps);
  options.adjoint = true;
  if (adjoint_engine_) {
    adjoint_engine_->begin_again(options, both_.data());
  } else {
    adjoint_engine_ = std::make_unique<fused::Engine<T>>(problem_, options, both_.data(), nullptr);
  }
  report_.backward_evaluations +=
      ode::integrate(*adjoint_engine_, adjoint_plan_, stretch_, adjoint_walks_).evaluations;
  adjoint_engine_->add_sums(result.weights, result.inputs);
  adjoint_engine_->read_state(both_.data());
  std::copy_n(both_.begin() + std::ptrdiff_t(size), size, result.start.begin());
}

/// adjoint . f(depth, state) over the batch.
template <class T> double Workspace<T>::along_field(double depth, const T* state, const T* adjoint) {
  const fused::Code code = problem_.code();
  const std::size_t width = std::size_t(problem_.tiles.widest());
  const std::size_t registers = width * std::size_t(code.register_rows),
                    rate = width * std::size_t(code.rate_rows);
  const std::size_t all = registers + width * std::size_t(code.passing_rows) + 2 * rate;
  if (field_rows_.size() < all) field_rows_ = fused::Buffer<T>::raw(all);
  T* const passing = field_rows_.data() + registers;
  T* const rates = field_rows_.data() + all - 2 * rate;
  T* const adjoints = rates + rate;
  problem_.weights.prepare(depth, /*with_slopes=*/false, at_saved_);
  report_.backward_evaluations += 1;
  double sum = 0;
  for (std::int64_t tile = 0; tile < problem_.tiles.count(); ++tile) {
    problem_.pack_state(tile, state, field_rows_.data());
    problem_.pack_state(tile, adjoint, adjoints);
    const fused::Frame<T> frame{.width = problem_.tiles.width(tile),
                                .samples = problem_.tiles.samples(tile),
                                .banks = {field_rows_.data(), problem_.inputs_of(tile), rates, passing},
                                .matrices = at_saved_.matrices.data(),
                                .signals = at_saved_.signals.data(),
                                .depth = depth};
    problem_.kernels.evaluate(code, frame);
    sum += problem_.kernels.dot(rates, adjoints, code.rate_rows, frame.width, frame.samples);
  }
  return sum;
}

template <class T> void Workspace<T>::prepare_loss(const LossCall<T>& loss) {
  const std::int64_t points = std::int64_t(loss.shares.size());
  if (renew(end_loss_, loss, problem_.tiles, problem_.threads)) loss_way_back_.reset();
  end_loss_->read(*loss.tensors, points);
  end_loss_->weigh_running_losses(loss.running);
}

template <class T>
double Workspace<T>::loss(const Call& call, const LossCall<T>& loss, const Wanted& wanted) {
  // Functions of the caller's may throw, and the way back behind the last step must not. Gradients of depths need more of a step than that
  // keeps.
  const SweepWanted& of_solve = wanted.of_solve;
  const bool wants_solve = of_solve.start || of_solve.weights || of_solve.inputs || of_solve.depths;
  const bool is_one_piece = loss.at_end && wants_solve && is_discrete() && !of_solve.depths &&
                            problem_.program->callbacks.empty() && call.depths.front() != call.depths.back();
  const bool keeps = wants_solve;
  const bool saves = !is_one_piece && (keeps || !loss.at_end);
  const std::size_t rows = problem_.padded(problem_.rows());
  if (saves && saved_rows_.size() != call.depths.size() * rows)
    saved_rows_ = fused::Buffer<T>::raw(call.depths.size() * rows);
  begin(call, keeps, saves ? saved_rows_.data() : nullptr, SavedAs::rows);
  prepare_loss(loss);
  if (is_one_piece && !loss_way_back_)
    loss_way_back_ = std::make_unique<fused::LossWayBack<T>>(problem_, options_.method,
                                                             engine_->activation_layout(), *end_loss_);
  if (is_one_piece) {
    loss_way_back_->begin_solve(loss.shares.back(), of_solve);
    engine_->follow_with(loss_way_back_.get(), call.depths.back());
  }
  integrate();
  engine_->follow_with(nullptr, 0);
  require(!report_.stopped, "a loss needs the states of all depths, but the observer stopped the solve at ",
          report_.reached);
  gradient_ = nullptr;
  if (is_one_piece) return loss_at_end(loss);
  const double value = saves ? loss_at_points(loss, wanted)
                             : end_loss_->evaluate(engine_->packed_state().data(), problem_.rows(),
                                                   loss.shares.back(), prepared_adjoints(wanted.head));
  return value;
}

template <class T> T* Workspace<T>::prepared_adjoints(bool wanted) {
  if (!wanted) return nullptr;
  const std::size_t rows = problem_.padded(problem_.rows());
  if (adjoint_rows_.size() < rows) adjoint_rows_ = fused::Buffer<T>::raw(rows);
  return adjoint_rows_.data();
}

/// The last step and the loss were pulled back while they were near.
template <class T> double Workspace<T>::loss_at_end(const LossCall<T>& loss) {
  const double value = end_loss_->finish(loss.shares.back());
  refresh_pass();
  gradient_ = &loss_way_back_->run_on(pass_);
  report_.backward_evaluations += gradient_->evaluations;
  return value;
}

template <class T> double Workspace<T>::loss_at_points(const LossCall<T>& loss, const Wanted& wanted) {
  const std::size_t rows = problem_.padded(problem_.rows()), depths = depths_.size();
  const std::size_t first = loss.at_end ? depths - 1 : 0;
  const SweepWanted& of_solve = wanted.of_solve;
  const bool pulls = of_solve.start || of_solve.weights || of_solve.inputs || of_solve.depths;
  if (pulls || wanted.head) {
    if (adjoint_rows_.size() < depths * rows) adjoint_rows_ = fused::Buffer<T>::raw(depths * rows);
    std::fill_n(adjoint_rows_.data(), first * rows, T(0));
  }
  const double value =
      end_loss_->evaluate_points(saved_rows_.data() + first * rows, problem_.rows(), loss.shares,
                                 pulls || wanted.head ? adjoint_rows_.data() + first * rows : nullptr);
  if (!pulls) return value;
  if (is_discrete()) {
    gradient_ = &pull_back_discrete(adjoint_rows_.data(), SavedAs::rows, of_solve);
    return value;
  }
  const std::size_t size = problem_.state_size();
  saved_states_.resize(depths * size), adjoints_.resize(depths * size);
  for (std::size_t place = 0; place < depths; ++place) {
    for (std::int64_t tile = 0; tile < problem_.tiles.count(); ++tile) {
      const std::size_t at = place * rows + problem_.tiles.begin(tile, problem_.rows());
      problem_.unpack_state(tile, saved_rows_.data() + at, saved_states_.data() + place * size);
      problem_.unpack_state(tile, adjoint_rows_.data() + at, adjoints_.data() + place * size);
    }
  }
  gradient_ = &pull_back_adjoint(adjoints_.data(), of_solve);
  return value;
}

template <class T> std::size_t Workspace<T>::bytes() const {
  std::size_t bytes = problem_.bytes() + saved_rows_.bytes() + adjoint_rows_.bytes() + field_rows_.bytes();
  for (const std::vector<T>* numbers : {&varying_, &start_, &saved_states_, &both_, &adjoints_})
    bytes += numbers->capacity() * sizeof(T);
  if (engine_) bytes += engine_->bytes();
  if (adjoint_engine_) bytes += adjoint_engine_->bytes();
  if (way_back_) bytes += way_back_->bytes();
  if (end_loss_) bytes += end_loss_->bytes();
  if (loss_way_back_) bytes += loss_way_back_->bytes();
  return bytes;
}

template class Workspace<float>;
template class Workspace<double>;

}  // namespace fathom::session
