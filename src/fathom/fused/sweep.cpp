#include "fathom/fused/sweep.hpp"

#include <array>
#include <cmath>
#include <span>

#include "fathom/fused/pool.hpp"
#include "fathom/fused/step_pullback.hpp"
#include "fathom/support/error.hpp"

namespace fathom::fused {

namespace {

/// Of weights prepared ahead and their gradients, where they vary with depth.
constexpr std::size_t group_bytes = std::size_t(8) << 20;

}  // namespace

template <class T> class Sweep {
 public:
  /// `pass`: what it has become by then is what each run goes through.
  explicit Sweep(const Pass<T>& pass)
      : pass_(pass),
        problem_(*pass.problem),
        method_(*pass.method),
        end_rate_stage_(method_.end_rate_stage().value_or(0)),
        step_(problem_, method_, pass.layout),
        needed_for_end_(needed_stages(method_, /*with_inside=*/false)),
        needed_inside_(needed_stages(method_, /*with_inside=*/true)),
        varies_(problem_.program->varies_with_depth()) {
    require(method_.c.size() <= most_stages, "a method has at most ", most_stages, " stages here, got ",
            method_.c.size());
    for (int thread = 0; thread < problem_.threads; ++thread) {
      workers_.push_back({.scratch = step_.scratch(),
                          .gradient = Buffer<T>(problem_.weights.gradient_size()),
                          .stage_gradients = {},
                          .total = std::vector<double>(problem_.weights.gradient_size()),
                          .moves = {},
                          .depths = {}});
    }
  }

  void read_adjoints(const T* saved_adjoints, SavedAs as) {
    has_saved_adjoints_ = saved_adjoints != nullptr;
    step_.read_adjoints(saved_adjoints, as);
  }

  /// One step that is still under way, whose end has its adjoint in adjoint_begin().
  void begin_last(const FinalStep<T>& last, const SweepWanted& wanted) {
    wanted_ = wanted;
    last_record_ = {.step = last.step};
    plan_step(last_record_, last_.front());
    StepPlan<T>& plan = last_.front();
    plan.start = last.start;
    plan.first = last.first;
    plan.first_place = last.first_place;
    plan.rates = last.rates;
    plan.layout = last.layout;
    plan.is_near = true;
    clear_sums();
    begin_group(last_);
  }
  T* registers_of_last(std::int64_t tile, int thread, std::size_t index) {
    if (!last_.front().needs(index)) return nullptr;
    return step_.near_registers(workers_[std::size_t(thread)].scratch, tile, index);
  }
  void tile_of_last(std::int64_t tile, int thread) { walk_tile(last_, tile, thread); }
  SweepResult<T>& finish_last() {
    count_evaluations(last_.front());
    end_group(last_);
    join_workers();
    return result_;
  }
  /// In place of that: goes on from where the last step began, with what it left in the sums.
  SweepResult<T>& run_on() {
    count_evaluations(last_.front());
    end_group(last_);
    return run_to_start();
  }
  Buffer<T>& adjoint() { return adjoint_; }
  T* adjoint_begin(std::int64_t tile) {
    return adjoint_.data() + problem_.tiles.begin(tile, problem_.rows());
  }

  std::size_t bytes() const {
    std::size_t bytes = adjoint_.bytes() + restored_.bytes() + (again_ ? again_->bytes() : 0);
    for (const Worker& worker : workers_) {
      bytes += worker.scratch.bytes() + worker.gradient.bytes() + worker.stage_gradients.bytes() +
               worker.total.size() * sizeof(double);
    }
    return bytes;
  }

  /// Its answer stays until the next run.
  SweepResult<T>& run(const SweepWanted& wanted) {
    wanted_ = wanted;
    clear_sums();
    if (problem_.tiles.count() == 0) return result_;
    // A loss whose only step was pulled back with it: nobody would read the adjoint, half of which is in another core's cache.
    if (pass_.records->empty() && !wanted.start && !wanted.depths) return result_;
    if (pass_.end_adjoint) {
      const T scale = T(pass_.end_scale);
      problem_.kernels.combine(adjoint_.data(), nullptr, &pass_.end_adjoint, &scale, 1, adjoint_.size());
    } else {
      std::fill_n(adjoint_.data(), adjoint_.size(), T(0));
    }
    return run_to_start();
  }

 private:
  SweepResult<T>& run_to_start() {
    const std::size_t most = steps_of_group();
    for (std::size_t end = pass_.records->size(); end > 0;) {
      const std::size_t begin = begin_of_stretch(end);
      restore_starts(begin, end);
      for (; end > begin; end -= std::min(most, end - begin)) {
        walk(end - std::min(most, end - begin), end, begin);
      }
    }
    collect_start();
    join_workers();
    return result_;
  }

  void clear_sums() {
    sums_stages_ = problem_.weights.stage_gradient_size() > 0 && (wanted_.weights || wanted_.depths);
    result_.start.clear();
    result_.evaluations = result_.recomputed = 0;
    const std::size_t inputs = wanted_.inputs ? problem_.inputs.size() : 0;
    if (inputs > result_.inputs.size()) result_.inputs = Buffer<T>::raw(inputs);
    std::fill_n(result_.inputs.data(), inputs, T(0));
    result_.weights.assign(problem_.weights.gradient_size(), 0.0);
    result_.depths.assign(wanted_.depths ? pass_.given : 0, 0.0);
    for (Worker& worker : workers_) {
      worker.has_total = false;
      worker.depths.assign(result_.depths.size(), 0.0);
    }
    if (adjoint_.size() == 0) adjoint_ = Buffer<T>::raw(problem_.padded(problem_.rows()));
  }

  struct Worker {
    StepScratch<T> scratch;
    Buffer<T> gradient;  // of weights that do not vary, for one tile
    /// Of weights that vary, at each stage of the group's steps, for all tiles of the thread.
    Buffer<T> stage_gradients;
    std::vector<double> total;     // of all tiles of the thread
    bool has_total = false;        // or had it no tile yet?
    std::vector<StepMoves> moves;  // (steps of the group)
    std::vector<double> depths;    // (given): dL/d(saved depth), of those inside steps
    /// Into both, for each of those stages; one set where nothing varies.
    std::vector<MatrixGradient<T>> views = {};
  };

  /// Where the steps before `end` begin whose starts are all kept, or that lie behind one kept start.
  std::size_t begin_of_stretch(std::size_t end) const {
    const std::vector<StepRecord<T>>& records = *pass_.records;
    std::size_t begin = end - 1;
    if (records[begin].start) {
      while (begin > 0 && records[begin - 1].start) --begin;
    } else {
      while (!records[begin].start) --begin;
    }
    return begin;
  }

  /// So many steps are walked at once: all, unless weights vary with depth and have to be prepared.
  std::size_t steps_of_group() const {
    if (!varies_) return pass_.records->size();
    const std::size_t copies =
        2 + workers_.size();  // of the weights in both orders, of their gradient for each thread
    const std::size_t size = copies * problem_.weights.stage_gradient_size() + 64;
    return std::max<std::size_t>(1, group_bytes / (size * sizeof(T) * method_.c.size()));
  }

  /// Repeats the steps of a stretch whose start states were not kept: the same steps give the same bits. Afterwards
  /// `restored_` has the starts of all its steps but the first; nothing where all were kept.
  void restore_starts(std::size_t begin, std::size_t end) {
    const std::vector<StepRecord<T>>& records = *pass_.records;
    is_restored_ = end - begin >= 2 && !records[begin + 1].start;
    if (!is_restored_) return;
    const std::size_t size = problem_.padded(problem_.rows());
    if (restored_.size() < (end - begin - 1) * size) restored_ = Buffer<T>::raw((end - begin - 1) * size);
    const EngineOptions options{.method = pass_.method};
    if (again_) {
      again_->begin_again(options, pass_.start);
    } else {
      again_ = std::make_unique<Engine<T>>(problem_, options, pass_.start, nullptr);
    }
    again_->restart(records[begin].start);
    for (std::size_t n = begin; n + 1 < end; ++n) {
      again_->attempt(records[n].step);
      again_->accept();
      if (records[n].step.ends_at_break) again_->forget_rate();
      std::copy_n(again_->packed_state().data(), size, restored_.data() + (n - begin) * size);
    }
    result_.evaluations += again_->evaluations();
  }

  /// In the memory of an earlier plan.
  void plan_step(const StepRecord<T>& record, StepPlan<T>& plan) const {
    std::vector<AtDepth<T>> stages = std::move(plan.stages);
    plan = {
        .record = &record, .is_end = {wanted_.depths, pass_.given, pass_.bound}, .stages = std::move(stages)};
    if (has_saved_adjoints_) plan.points = record.saved;
    for (const SavedPoint& point : plan.points) plan.has_inside |= !plan.is_end.holds_for(point);
    plan.needed = plan.has_inside ? &needed_inside_ : &needed_for_end_;
    // Gradients of depths need the rates of all stages side by side, where recomputing puts them.
    if (!wanted_.depths && record.activations) {
      plan.activations = record.activations;
      using First = typename StepRecord<T>::First;
      if (record.first == First::here) plan.first = record.activations;
      if (record.first == First::in_step_before) {
        plan.first = (&record - 1)->activations;
        plan.first_place = end_rate_stage_;
      }
    }
    if (!wanted_.depths && !record.activations) {
      plan.rates = record.rates;
      plan.layout = pass_.layout.of_rates();
    }
    if (varies_) {
      plan.stages.resize(method_.c.size());
      for (std::size_t i = 0; i < method_.c.size(); ++i) {
        if (!plan.needs(i)) continue;
        problem_.weights.prepare(record.step.stage_depth(method_.c[i]), wanted_.depths, plan.stages[i]);
      }
    }
  }

  /// Steps begin .. end, a group of the stretch that begins with step `stretch`.
  void walk(std::size_t begin, std::size_t end, std::size_t stretch) {
    if (plans_.size() < end - begin) plans_.resize(end - begin);
    const std::span<const StepPlan<T>> plans(plans_.data(), end - begin);
    const std::size_t size = problem_.padded(problem_.rows());
    for (std::size_t n = begin; n < end; ++n) {
      StepPlan<T>& plan = plans_[n - begin];
      plan_step((*pass_.records)[n], plan);
      plan.start =
          is_restored_ && n > stretch ? restored_.data() + (n - stretch - 1) * size : plan.record->start;
      count_evaluations(plan);
    }
    begin_group(plans);
    run_in_parallel(problem_.tiles.count(), problem_.threads,
                    [&](std::int64_t tile, int thread) { walk_tile(plans, tile, thread); });
    end_group(plans);
  }

  void begin_group(std::span<const StepPlan<T>> plans) {
    for (Worker& worker : workers_) {
      worker.moves.assign(wanted_.depths ? plans.size() : 0, {});
      make_views(worker, sums_stages_ ? plans.size() * method_.c.size() : 1);
    }
  }

  void walk_tile(std::span<const StepPlan<T>> plans, std::int64_t tile, int thread) {
    Worker& worker = workers_[std::size_t(thread)];
    const std::size_t matrices = sums_stages_ ? problem_.program->matrices.size() : 0;
    StepTargets<T> targets{
        .adjoint = adjoint_begin(tile),
        .inputs = wanted_.inputs
                      ? result_.inputs.data() + problem_.tiles.begin(tile, problem_.program->input_rows)
                      : nullptr,
        .next_gradients = matrices,
        .depths = worker.depths.data()};
    const bool wants_gradients = wanted_.weights || (wanted_.depths && varies_);
    for (std::size_t n = plans.size(); n-- > 0;) {
      if (wants_gradients) targets.gradients = worker.views.data() + n * method_.c.size() * matrices;
      if (wanted_.depths) targets.moves = &worker.moves[n];
      step_.pull(plans[n], tile, worker.scratch, targets);
    }
    // Cleared by the thread that adds to it, in whose cache it is.
    if (!worker.has_total) std::fill(worker.total.begin(), worker.total.end(), 0.0);
    worker.has_total = true;
    problem_.kernels.move_to_totals(worker.gradient.data(), worker.total.data(), worker.total.size());
  }

  void end_group(std::span<const StepPlan<T>> plans) {
    if (sums_stages_) join_stage_gradients(plans);
    for (std::size_t n = 0; wanted_.depths && n < plans.size(); ++n) collect_moves(plans[n], n);
  }

  void count_evaluations(const StepPlan<T>& plan) {
    for (std::size_t i = 0; i < method_.c.size(); ++i) {
      result_.evaluations += plan.needs(i) ? 1 : 0;
      result_.recomputed += plan.needs(i) && !plan.kept(i) && !(plan.is_near && i > 0) ? 1 : 0;
    }
  }

  void join_workers() {
    for (const Worker& worker : workers_) {
      if (!worker.has_total) continue;
      for (std::size_t n = 0; n < result_.weights.size(); ++n) result_.weights[n] += worker.total[n];
    }
  }

  void make_views(Worker& worker, std::size_t stages) const {
    const std::size_t size = problem_.weights.stage_gradient_size();
    if (worker.stage_gradients.size() >= stages * size && !worker.views.empty()) {
      std::fill_n(worker.stage_gradients.data(), stages * size, T(0));
      return;
    }
    worker.views.clear();
    worker.stage_gradients = {};  // before there is another one
    worker.stage_gradients = Buffer<T>(stages * size);
    for (std::size_t i = 0; i < stages; ++i) {
      const auto views = problem_.weights.views({worker.gradient.data(), worker.gradient.size()},
                                                {worker.stage_gradients.data() + i * size, size});
      worker.views.insert(worker.views.end(), views.begin(), views.end());
    }
  }

  /// The gradients of weights at each stage, distributed over the coefficients of their bases.
  void join_stage_gradients(std::span<const StepPlan<T>> plans) {
    const std::size_t size = problem_.weights.stage_gradient_size(), stages = method_.c.size();
    std::vector<StageGradient<T>>& found = stage_gradients_;
    found.clear();
    for (std::size_t n = 0; n < plans.size(); ++n) {
      for (std::size_t i = 0; i < stages; ++i) {
        if (!plans[n].needs(i)) continue;
        for (Worker& worker : workers_) {
          const std::span<const T> gradient(worker.stage_gradients.data() + (n * stages + i) * size, size);
          found.push_back({&plans[n].stages[i], gradient.data()});
          if (!wanted_.depths) continue;
          worker.moves[n].with_stage(method_.c[i],
                                     problem_.weights.along_depth(plans[n].stages[i], gradient));
        }
      }
    }
    problem_.weights.spread(found, std::span<double>(result_.weights), spread_scratch_);
  }

  void collect_moves(const StepPlan<T>& plan, std::size_t n) {
    StepMoves sum;
    for (const Worker& worker : workers_) {
      sum.start += worker.moves[n].start;
      sum.end += worker.moves[n].end;
    }
    const ode::Step& step = plan.record->step;
    result_.depths.front() += sum.start * step.start_moves.with_first + sum.end * step.end_moves.with_first;
    result_.depths.back() += sum.start * step.start_moves.with_last + sum.end * step.end_moves.with_last;
  }

  /// Rows saved at the very start are z0; one with a depth of its own moves along the field, away from the first depth.
  void collect_start() {
    if (!wanted_.start && !wanted_.depths) return;
    taken_.assign(pass_.depths.size(), false);
    for (const StepRecord<T>& record : *pass_.records) {
      for (const SavedPoint& point : record.saved) taken_[point.place] = true;
    }
    result_.start.resize(wanted_.start ? problem_.state_size() : 0);
    if (wanted_.depths)
      problem_.weights.prepare(std::nextafter(pass_.depths.front(), pass_.depths.back()), false, at_first_);
    StepScratch<T>& scratch = workers_.front().scratch;
    for (std::int64_t tile = 0; tile < problem_.tiles.count(); ++tile) {
      T* adjoint = adjoint_begin(tile);
      if (wanted_.depths) {
        Frame<T> frame{.width = problem_.tiles.width(tile),
                       .samples = problem_.tiles.samples(tile),
                       .banks = {scratch.registers.data(), problem_.inputs_of(tile), scratch.rates.data(),
                                 step_.passing_behind(scratch.registers.data(), tile)},
                       .matrices = at_first_.matrices.data(),
                       .signals = at_first_.signals.data(),
                       .depth = at_first_.depth};
        problem_.pack_state(tile, pass_.start, frame.banks[0]);
        problem_.kernels.evaluate(problem_.code(), frame);
      }
      for (std::size_t place = 0; has_saved_adjoints_ && place < taken_.size(); ++place) {
        if (taken_[place]) continue;
        step_.add_point(tile, place, scratch, adjoint);
        if (!wanted_.depths || place == 0) continue;
        const double by = step_.along(tile, scratch, std::array{1.0}, scratch.points.data());
        result_.depths[place] += by;
        result_.depths.front() -= by;
      }
      if (wanted_.start) problem_.unpack_state(tile, adjoint, result_.start.data());
    }
    for (const Worker& each : workers_) {
      for (std::size_t n = 0; n < result_.depths.size(); ++n) result_.depths[n] += each.depths[n];
    }
  }

  const Pass<T>& pass_;
  Problem<T>& problem_;
  const ode::ButcherTableau& method_;
  std::size_t end_rate_stage_;
  bool has_saved_adjoints_ = false;
  StepPullback<T> step_;
  SweepWanted wanted_ = {};
  Buffer<T> adjoint_;                 // (rows) of every tile: dL/d(state) at the end of the step to come
  std::vector<bool> needed_for_end_;  // stages
  std::vector<bool> needed_inside_;   // of steps with saved points inside
  bool varies_;                       // weights, or what else the program reads of depth
  bool sums_stages_ = false;          // gradients of weights that vary are summed for each stage
  std::vector<Worker> workers_;
  Buffer<T> restored_;  // (steps, rows) of every tile: starts of the stretch that were not kept
  bool is_restored_ = false;
  std::unique_ptr<Engine<T>> again_;  // repeats those steps
  SweepResult<T> result_;
  std::vector<StepPlan<T>> plans_;  // of the steps that are walked at once
  std::vector<StageGradient<T>> stage_gradients_;
  std::vector<T> spread_scratch_;
  std::vector<bool> taken_;  // of each saved depth: does it belong to a step?
  AtDepth<T> at_first_;
  StepRecord<T> last_record_;
  std::array<StepPlan<T>, 1> last_;  // of the last step, alone
};

template <class T>
LossWayBack<T>::LossWayBack(Problem<T>& problem, const ode::Method& method, const ActivationLayout& layout,
                            EndLoss<T>& loss)
    : problem_(problem),
      pass_{.problem = &problem, .method = method, .layout = layout},
      loss_(loss),
      sweep_(std::make_unique<Sweep<T>>(pass_)) {}

template <class T> LossWayBack<T>::~LossWayBack() = default;

template <class T> void LossWayBack<T>::begin_solve(double share, const SweepWanted& wanted) {
  share_ = share;
  wanted_ = wanted;
  has_followed_ = false;
}

template <class T> void LossWayBack<T>::begin(const FinalStep<T>& step) {
  has_followed_ = true;
  sweep_->begin_last(step, wanted_);
  loss_.begin();
}

template <class T> T* LossWayBack<T>::registers(std::int64_t tile, int thread, std::size_t index) {
  return sweep_->registers_of_last(tile, thread, index);
}

template <class T> void LossWayBack<T>::follow(std::int64_t tile, int thread, const T* end) noexcept {
  loss_.on_tile(tile, thread, end, problem_.rows(), share_, sweep_->adjoint_begin(tile));
  sweep_->tile_of_last(tile, thread);
}

template <class T> typename LossWayBack<T>::Result LossWayBack<T>::finish() {
  SweepResult<T> gradients = std::move(sweep_->finish_last());
  return {.adjoint = std::move(sweep_->adjoint()), .gradients = std::move(gradients)};
}

template <class T> const SweepResult<T>& LossWayBack<T>::run_on(const Pass<T>& pass) {
  pass_ = pass;
  return sweep_->run_on();
}

template <class T> std::size_t LossWayBack<T>::bytes() const { return sweep_->bytes(); }

template <class T> SweepResult<T> LossWayBack<T>::pull_back(const Pass<T>& pass, const SweepWanted& wanted) {
  pass_ = pass;
  return std::move(sweep_->run(wanted));
}

template <class T>
SweepResult<T> pull_back(const Pass<T>& pass, const T* saved_adjoints, const SweepWanted& wanted) {
  Sweep<T> sweep(pass);
  sweep.read_adjoints(saved_adjoints, SavedAs::samples);
  return std::move(sweep.run(wanted));
}

template <class T> WayBack<T>::WayBack(const Pass<T>& pass) : sweep_(std::make_unique<Sweep<T>>(pass)) {}
template <class T> WayBack<T>::~WayBack() = default;
template <class T>
const SweepResult<T>& WayBack<T>::pull_back(const T* saved_adjoints, SavedAs as, const SweepWanted& wanted) {
  sweep_->read_adjoints(saved_adjoints, as);
  return sweep_->run(wanted);
}
template <class T> std::size_t WayBack<T>::bytes() const { return sweep_->bytes(); }

template <class T>
void read_input(const Problem<T>& problem, const SampleInput& input, const Buffer<T>& adjoints, T* samples) {
  for (std::int64_t tile = 0; tile < problem.tiles.count(); ++tile) {
    const T* rows = adjoints.data() + problem.tiles.begin(tile, problem.program->input_rows) +
                    std::size_t(input.rows.begin) * std::size_t(problem.tiles.width(tile));
    problem.unpack(tile, rows, input.rows.count, samples);
  }
}

template class WayBack<float>;
template class WayBack<double>;
template class LossWayBack<float>;
template class LossWayBack<double>;
template SweepResult<float> pull_back(const Pass<float>&, const float*, const SweepWanted&);
template SweepResult<double> pull_back(const Pass<double>&, const double*, const SweepWanted&);
template void read_input(const Problem<float>&, const SampleInput&, const Buffer<float>&, float*);
template void read_input(const Problem<double>&, const SampleInput&, const Buffer<double>&, double*);

}  // namespace fathom::fused
