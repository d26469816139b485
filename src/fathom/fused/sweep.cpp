#include "fathom/fused/sweep.hpp"

#include <cmath>

#include "fathom/fused/combination.hpp"
#include "fathom/fused/pool.hpp"
#include "fathom/fused/step_plan.hpp"
#include "fathom/support/error.hpp"

namespace fathom::fused {

namespace {

/// Of weights prepared ahead and their gradients, where they vary with depth.
constexpr std::size_t group_bytes = std::size_t(8) << 20;

}  // namespace

template <class T> class Sweep {
 public:
  Sweep(const Pass<T>& pass, const T* saved_adjoints, const SweepWanted& wanted)
      : pass_(pass),
        problem_(*pass.problem),
        method_(*pass.method),
        code_(problem_.code()),
        end_rate_stage_(method_.end_rate_stage().value_or(0)),
        saved_adjoints_(saved_adjoints),
        wanted_(wanted),
        needed_for_end_(needed_stages(method_, /*with_inside=*/false)),
        needed_inside_(needed_stages(method_, /*with_inside=*/true)),
        varies_(problem_.program->varies_with_depth()) {
    const std::size_t width = std::size_t(problem_.tiles.widest()), stages = method_.c.size();
    require(stages <= most_stages, "a method has at most ", most_stages, " stages here, got ", stages);
    for (int thread = 0; thread < problem_.threads; ++thread) {
      workers_.push_back({.registers = Buffer<T>::raw(width * stage_rows() * stages),
                          .adjoints = Buffer<T>::raw(width * stage_rows()),
                          .rates = Buffer<T>::raw(width * std::size_t(code_.rate_rows) * stages),
                          .pulled = Buffer<T>::raw(width * std::size_t(code_.rate_rows) * stages),
                          .seed = Buffer<T>::raw(width * std::size_t(code_.rate_rows)),
                          .points = Buffer<T>::raw(width * std::size_t(code_.rate_rows)),
                          .gradient = Buffer<T>(problem_.weights.gradient_size()),
                          .stage_gradients = {},
                          .depth_adjoint = Buffer<T>(wanted.depths ? width : 0),
                          .total = std::vector<double>(problem_.weights.gradient_size()),
                          .moves = {},
                          .depths = std::vector<double>(wanted.depths ? pass.given : 0)});
    }
    if (!varies_) problem_.weights.prepare(0, false, constant_);
  }

  /// One step that is still under way, whose end has its adjoint in adjoint_begin().
  void begin_last(const FinalStep<T>& last, const SweepWanted& wanted) {
    wanted_ = wanted;
    last_record_ = {.step = last.step};
    last_.clear();
    last_.push_back(plan_of(last_record_));
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
    return last_.front().needs(index) ? near_registers(workers_[std::size_t(thread)], tile, index) : nullptr;
  }
  void tile_of_last(std::int64_t tile, int thread) { walk_tile(last_, tile, thread); }
  SweepResult<T> finish_last() {
    count_evaluations(last_.front());
    end_group(last_);
    join_workers();
    return std::move(result_);
  }
  Buffer<T>& adjoint() { return adjoint_; }
  T* adjoint_begin(std::int64_t tile) const {
    return const_cast<T*>(adjoint_.data()) + problem_.tiles.begin(tile, code_.rate_rows);
  }

  std::size_t bytes() const {
    std::size_t bytes = adjoint_.bytes();
    for (const Worker& worker : workers_) {
      for (const Buffer<T>* buffer :
           {&worker.registers, &worker.adjoints, &worker.rates, &worker.pulled, &worker.seed, &worker.points,
            &worker.gradient, &worker.stage_gradients})
        bytes += buffer->bytes();
      bytes += worker.total.size() * sizeof(double);
    }
    return bytes;
  }

  /// With what `pass` has become since the sweep was made.
  SweepResult<T> run(const SweepWanted& wanted) {
    wanted_ = wanted;
    clear_sums();
    if (problem_.tiles.count() == 0) return std::move(result_);
    // A loss whose only step was pulled back with it: nobody would read the adjoint, half of which is in another core's cache.
    if (pass_.records->empty() && !wanted.start && !wanted.depths) return std::move(result_);
    if (pass_.end_adjoint) {
      const T scale = T(pass_.end_scale);
      problem_.kernels.combine(adjoint_.data(), nullptr, &pass_.end_adjoint, &scale, 1, adjoint_.size());
    } else {
      std::fill_n(adjoint_.data(), adjoint_.size(), T(0));
    }
    const std::size_t most = steps_of_group();
    for (std::size_t end = pass_.records->size(); end > 0;) {
      const std::size_t begin = begin_of_stretch(end);
      restore_starts(begin, end);
      for (; end > begin; end -= std::min(most, end - begin)) {
        walk(end - std::min(most, end - begin), end, begin);
      }
    }
    restored_ = {};
    again_.reset();
    collect_start();
    join_workers();
    return std::move(result_);
  }

 private:
  void clear_sums() {
    sums_stages_ = problem_.weights.stage_gradient_size() > 0 && (wanted_.weights || wanted_.depths);
    result_ = {};
    result_.inputs = Buffer<T>(wanted_.inputs ? problem_.inputs.size() : 0);
    result_.weights.resize(problem_.weights.gradient_size());
    result_.depths.resize(wanted_.depths ? pass_.given : 0);
    for (Worker& worker : workers_) worker.has_total = false;
    if (adjoint_.size() == 0) adjoint_ = Buffer<T>::raw(problem_.padded(problem_.rows()));
  }

  struct Worker {
    Buffer<T> registers;  // (stages, registers and passing rows) of a tile
    Buffer<T> adjoints;   // (registers and passing rows)
    Buffer<T> rates;      // (stages, rows): k_i
    Buffer<T> pulled;     // (stages, rows): dL/d(argument of stage i)
    Buffer<T> seed;       // (rows): dL/dk_i
    Buffer<T> points;     // (rows): dL/d(a saved state)
    Buffer<T> gradient;   // of weights that do not vary, for one tile
    Buffer<T>
        stage_gradients;  // of weights that vary, at each stage of the group's steps, for all tiles of the thread
    Buffer<T> depth_adjoint;
    std::vector<double> total;     // of all tiles of the thread
    bool has_total = false;        // or had it no tile yet?
    std::vector<StepMoves> moves;  // (steps of the group)
    std::vector<double> depths;    // (given): dL/d(saved depth), of those inside steps
    std::vector<MatrixGradient<T>> views =
        {};  // into both, for each of those stages; one set where nothing varies
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

  StepPlan<T> plan_of(const StepRecord<T>& record) const {
    StepPlan<T> plan{.record = &record};
    for (const SavedPoint& point : record.saved) {
      if (!saved_adjoints_) break;
      const bool is_bound = point.place + 1 == pass_.given || point.place >= pass_.bound;
      if (point.fraction == 1 && (!wanted_.depths || is_bound)) {
        plan.at_end.push_back(point.place);
        continue;
      }
      plan.inside.push_back({point.place, point.fraction, method_.dense_weights(point.fraction), {}});
      if (wanted_.depths) plan.inside.back().rates = method_.dense_weight_rates(point.fraction);
    }
    plan.needed = plan.inside.empty() ? &needed_for_end_ : &needed_inside_;
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
    return plan;
  }

  /// Steps begin .. end, a group of the stretch that begins with step `stretch`.
  void walk(std::size_t begin, std::size_t end, std::size_t stretch) {
    std::vector<StepPlan<T>> plans;
    plans.reserve(end - begin);
    const std::size_t size = problem_.padded(problem_.rows());
    for (std::size_t n = begin; n < end; ++n) {
      plans.push_back(plan_of((*pass_.records)[n]));
      StepPlan<T>& plan = plans.back();
      plan.start =
          is_restored_ && n > stretch ? restored_.data() + (n - stretch - 1) * size : plan.record->start;
      count_evaluations(plan);
    }
    begin_group(plans);
    run_in_parallel(problem_.tiles.count(), problem_.threads,
                    [&](std::int64_t tile, int thread) { walk_tile(plans, tile, thread); });
    end_group(plans);
  }

  void begin_group(const std::vector<StepPlan<T>>& plans) {
    for (Worker& worker : workers_) {
      worker.moves.assign(wanted_.depths ? plans.size() : 0, {});
      make_views(worker, sums_stages_ ? plans.size() * method_.c.size() : 1);
    }
  }

  void walk_tile(const std::vector<StepPlan<T>>& plans, std::int64_t tile, int thread) {
    Worker& worker = workers_[std::size_t(thread)];
    for (std::size_t n = plans.size(); n-- > 0;) {
      through(plans[n], n, tile, worker, wanted_.depths ? &worker.moves[n] : nullptr);
    }
    // Cleared by the thread that adds to it, in whose cache it is.
    if (!worker.has_total) std::fill(worker.total.begin(), worker.total.end(), 0.0);
    worker.has_total = true;
    problem_.kernels.move_to_totals(worker.gradient.data(), worker.total.data(), worker.total.size());
  }

  void end_group(const std::vector<StepPlan<T>>& plans) {
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
    if (worker.stage_gradients.size() == stages * size && !worker.views.empty()) {
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
  void join_stage_gradients(const std::vector<StepPlan<T>>& plans) {
    const std::size_t size = problem_.weights.stage_gradient_size(), stages = method_.c.size();
    std::vector<StageGradient<T>> found;
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
    problem_.weights.spread(found, std::span<double>(result_.weights));
  }

  std::size_t row_numbers(std::int64_t tile) const {
    return std::size_t(code_.rate_rows) * std::size_t(problem_.tiles.width(tile));
  }

  /// dL/d(one saved state) as rows of a tile. Padding repeats a sample and must not count it again.
  void load_point(std::int64_t tile, std::size_t place, T* rows) const {
    problem_.pack_state(tile, saved_adjoints_ + place * problem_.state_size(), rows);
    const std::int32_t width = problem_.tiles.width(tile), samples = problem_.tiles.samples(tile);
    for (std::int32_t r = 0; samples < width && r < code_.rate_rows; ++r) {
      std::fill_n(rows + r * width + samples, width - samples, T(0));
    }
  }

  void add_point(std::int64_t tile, std::size_t place, Worker& worker, T* to) const {
    load_point(tile, place, worker.points.data());
    add(to, T(1), worker.points.data(), row_numbers(tile));
  }

  void add(T* to, T weight, const T* from, std::size_t size) const {
    problem_.kernels.combine(to, to, &from, &weight, 1, size);
  }

  Frame<T> frame_of(const StepPlan<T>& plan, std::int64_t tile, Worker& worker, std::size_t i) const {
    const AtDepth<T>& at = varies_ ? plan.stages[i] : constant_;
    const bool is_near = plan.is_near && i > 0;
    T* registers = worker.registers.data();
    T* passing = passing_behind(registers, tile);
    T* rate = rate_of(plan, tile, worker, i);
    if (const T* kept = plan.kept(i)) {
      const std::size_t stage = i == 0 ? plan.first_place : i;
      registers = const_cast<T*>(kept) + pass_.layout.registers(problem_.tiles, tile, stage);
      rate = const_cast<T*>(kept) + pass_.layout.rate(problem_.tiles, tile, stage);
    } else if (is_near || !plan.rates) {
      registers = near_registers(worker, tile, i);
      passing = passing_behind(registers, tile);
    }
    return {.width = problem_.tiles.width(tile),
            .banks = {registers, problem_.inputs_of(tile), rate, passing},
            .matrices = at.matrices.data(),
            .signals = at.signals.data(),
            .depth = at.depth,
            .has_registers = plan.kept(i) || is_near || !plan.rates,
            .has_passing = !plan.kept(i),
            .signal_slopes = at.signal_slopes.data()};
  }

  T* near_registers(Worker& worker, std::int64_t tile, std::size_t i) const {
    return worker.registers.data() + i * std::size_t(problem_.tiles.width(tile)) * stage_rows();
  }
  std::size_t stage_rows() const { return std::size_t(code_.register_rows + code_.passing_rows); }
  /// Behind the registers of a stage, or where they would be.
  T* passing_behind(T* registers, std::int64_t tile) const {
    return registers + std::size_t(code_.register_rows) * std::size_t(problem_.tiles.width(tile));
  }

  /// k_i of a step whose activations are not kept.
  T* rate_of(const StepPlan<T>& plan, std::int64_t tile, Worker& worker, std::size_t i) const {
    if (plan.rates) return const_cast<T*>(plan.rates) + plan.layout.rate(problem_.tiles, tile, i);
    return worker.rates.data() + i * row_numbers(tile);
  }

  /// start + h sum_j a_ij k_j, of such a step.
  void find_argument(const StepPlan<T>& plan, std::int64_t tile, Worker& worker, std::size_t i,
                     T* argument) const {
    const double h = plan.record->step.size();
    Combination<T> sum;
    for (std::size_t j = 0; j < method_.a[i].size(); ++j)
      sum.add(rate_of(plan, tile, worker, j), h * method_.a[i][j]);
    sum.write(problem_.kernels, argument, plan.start + problem_.tiles.begin(tile, code_.rate_rows),
              problem_.argument_size(tile));
  }

  /// One tile back through step `n` of the group.
  void through(const StepPlan<T>& plan, std::size_t n, std::int64_t tile, Worker& worker,
               StepMoves* moves) const {
    const std::size_t size = row_numbers(tile), stages = method_.c.size();
    const double h = plan.record->step.size();
    for (std::size_t i = 0; i < stages; ++i) {
      if (!plan.needs(i) || plan.kept(i) || plan.rates) continue;
      Frame<T> frame = frame_of(plan, tile, worker, i);
      find_argument(plan, tile, worker, i, frame.banks[0]);
      problem_.kernels.evaluate(code_, frame);
    }
    T* adjoint = adjoint_begin(tile);
    for (std::size_t place : plan.at_end) add_point(tile, place, worker, adjoint);
    if (moves) moves->with_size(along(tile, worker, method_.b, adjoint));
    for (std::size_t i = 0; i < stages && !plan.inside.empty(); ++i) {
      // Collected here until the stage's turn: h (b_i a + sum over saved points b_i(t) g).
      T* seed = worker.pulled.data() + i * size;
      const T weight = T(h * weight_of(i));
      const T* from = adjoint;
      if (plan.needs(i)) problem_.kernels.combine(seed, nullptr, &from, &weight, 1, size);
    }
    for (const InsidePoint& point : plan.inside) {
      load_point(tile, point.place, worker.points.data());
      for (std::size_t i = 0; i < stages; ++i) {
        if (point.weights[i] != 0) {
          add(worker.pulled.data() + i * size, T(h * point.weights[i]), worker.points.data(), size);
        }
      }
      if (moves) point_moves(point, tile, worker, *moves);
      add(adjoint, T(1), worker.points.data(), size);
    }
    for (std::size_t i = stages; i-- > 0;) {
      if (plan.needs(i)) pull_stage(plan, n, tile, worker, i, moves);
    }
    Combination<T> sum;
    for (std::size_t i = 0; i < stages; ++i) {
      if (plan.needs(i)) sum.add(worker.pulled.data() + i * size, 1);
    }
    sum.write(problem_.kernels, adjoint, adjoint, problem_.argument_size(tile));
  }

  /// b_i, also of a stage that is there for dense output alone.
  double weight_of(std::size_t i) const { return i < method_.b.size() ? method_.b[i] : 0; }

  /// From dL/dk_i to dL/d(argument of stage i), which takes its place.
  void pull_stage(const StepPlan<T>& plan, std::size_t n, std::int64_t tile, Worker& worker, std::size_t i,
                  StepMoves* moves) const {
    const std::size_t size = row_numbers(tile), read = problem_.argument_size(tile),
                      stages = method_.c.size();
    const double h = plan.record->step.size();
    T* pulled = worker.pulled.data() + i * size;
    T* seed = worker.seed.data();
    const T* adjoint = adjoint_begin(tile);
    const T* collected = plan.inside.empty() ? nullptr : pulled;
    Combination<T> sum;
    if (!collected) sum.add(adjoint, h * weight_of(i));
    for (std::size_t j = i + 1; j < stages; ++j) {
      if (plan.needs(j)) sum.add(worker.pulled.data() + j * size, h * method_.a[j][i]);
    }
    sum.write(problem_.kernels, seed, collected, read);
    // No argument reads the running losses.
    Combination<T> of_losses;
    if (!collected) of_losses.add(adjoint + read, h * weight_of(i));
    of_losses.write(problem_.kernels, seed + read, collected ? collected + read : nullptr, size - read);
    Frame<T> frame = frame_of(plan, tile, worker, i);
    if (!frame.has_registers) find_argument(plan, tile, worker, i, frame.banks[0]);
    frame.adjoints[int(Bank::registers)] = worker.adjoints.data();
    frame.adjoints[int(Bank::passing)] = passing_behind(worker.adjoints.data(), tile);
    frame.adjoints[int(Bank::rate)] = seed;
    frame.adjoints[int(Bank::inputs)] =
        wanted_.inputs ? const_cast<T*>(result_.inputs.data()) + problem_.tiles.begin(tile, code_.input_rows)
                       : nullptr;
    if (wanted_.weights || (moves && varies_)) {
      const std::size_t place = sums_stages_ ? n * stages + i : 0;
      frame.gradients = worker.views.data() + place * problem_.program->matrices.size();
    }
    if (moves) {
      std::fill_n(worker.depth_adjoint.data(), worker.depth_adjoint.size(), T(0));
      frame.depth_adjoint = worker.depth_adjoint.data();
    }
    problem_.kernels.pull_back(code_, frame);
    std::copy_n(worker.adjoints.data(), size, pulled);
    if (!moves) return;
    moves->with_size(along(tile, worker, method_.a[i], pulled));
    double at = 0;
    for (std::int32_t sample = 0; sample < problem_.tiles.samples(tile); ++sample)
      at += double(worker.depth_adjoint.data()[sample]);
    moves->with_stage(method_.c[i], at);
  }

  /// sum_i weights_i <k_i, adjoint>
  double along(std::int64_t tile, const Worker& worker, const std::vector<double>& weights,
               const T* adjoint) const {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      sum += weights[i] * problem_.kernels.dot(worker.rates.data() + i * row_numbers(tile), adjoint,
                                               code_.rate_rows, problem_.tiles.width(tile),
                                               problem_.tiles.samples(tile));
    }
    return sum;
  }

  /// A saved depth d lies at the fraction t = (d - start) / h of its step and moves with it along the interpolant.
  void point_moves(const InsidePoint& point, std::int64_t tile, Worker& worker, StepMoves& moves) const {
    moves.with_size(along(tile, worker, point.weights, worker.points.data()));
    const double by_fraction = along(tile, worker, point.rates, worker.points.data());  // dL/dt / h
    worker.depths[point.place] += by_fraction;
    moves.start -= by_fraction;
    moves.with_size(-point.fraction * by_fraction);
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
    std::vector<bool> taken(pass_.depths.size(), false);
    for (const StepRecord<T>& record : *pass_.records) {
      for (const SavedPoint& point : record.saved) taken[point.place] = true;
    }
    result_.start.resize(wanted_.start ? problem_.state_size() : 0);
    AtDepth<T> at_first;
    problem_.weights.prepare(std::nextafter(pass_.depths.front(), pass_.depths.back()), false, at_first);
    Worker& worker = workers_.front();
    for (std::int64_t tile = 0; tile < problem_.tiles.count(); ++tile) {
      T* adjoint = adjoint_begin(tile);
      if (wanted_.depths) {
        Frame<T> frame{.width = problem_.tiles.width(tile),
                       .banks = {worker.registers.data(), problem_.inputs_of(tile), worker.rates.data(),
                                 passing_behind(worker.registers.data(), tile)},
                       .matrices = at_first.matrices.data(),
                       .signals = at_first.signals.data(),
                       .depth = at_first.depth};
        problem_.pack_state(tile, pass_.start, frame.banks[0]);
        problem_.kernels.evaluate(code_, frame);
      }
      for (std::size_t place = 0; saved_adjoints_ && place < taken.size(); ++place) {
        if (taken[place]) continue;
        load_point(tile, place, worker.points.data());
        add(adjoint, T(1), worker.points.data(), row_numbers(tile));
        if (!wanted_.depths || place == 0) continue;
        const double by = along(tile, worker, {1.0}, worker.points.data());
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
  Code code_;
  std::size_t end_rate_stage_;
  const T* saved_adjoints_;
  SweepWanted wanted_;
  Buffer<T> adjoint_;                 // (rows) of every tile: dL/d(state) at the end of the step to come
  std::vector<bool> needed_for_end_;  // stages
  std::vector<bool> needed_inside_;   // of steps with saved points inside
  bool varies_;                       // weights, or what else the program reads of depth
  bool sums_stages_ = false;          // gradients of weights that vary are summed for each stage
  AtDepth<T> constant_;
  std::vector<Worker> workers_;
  Buffer<T> restored_;  // (steps, rows) of every tile: starts of the stretch that were not kept
  bool is_restored_ = false;
  std::unique_ptr<Engine<T>> again_;  // repeats those steps
  SweepResult<T> result_;
  StepRecord<T> last_record_;
  std::vector<StepPlan<T>> last_;  // of the last step, alone
};

template <class T>
LossWayBack<T>::LossWayBack(Problem<T>& problem, const ode::Method& method, const ActivationLayout& layout,
                            EndLoss<T>& loss)
    : problem_(problem),
      pass_{.problem = &problem, .method = method, .layout = layout},
      loss_(loss),
      sweep_(std::make_unique<Sweep<T>>(pass_, nullptr, SweepWanted{})) {}

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
  SweepResult<T> gradients = sweep_->finish_last();
  return {.adjoint = std::move(sweep_->adjoint()), .gradients = std::move(gradients)};
}

template <class T> std::size_t LossWayBack<T>::bytes() const { return sweep_->bytes(); }

template <class T> SweepResult<T> LossWayBack<T>::pull_back(const Pass<T>& pass, const SweepWanted& wanted) {
  pass_ = pass;
  return sweep_->run(wanted);
}

template <class T>
SweepResult<T> pull_back(const Pass<T>& pass, const T* saved_adjoints, const SweepWanted& wanted) {
  return Sweep<T>(pass, saved_adjoints, wanted).run(wanted);
}

template <class T>
void read_input(const Problem<T>& problem, const SampleInput& input, const Buffer<T>& adjoints, T* samples) {
  for (std::int64_t tile = 0; tile < problem.tiles.count(); ++tile) {
    const T* rows = adjoints.data() + problem.tiles.begin(tile, problem.program->input_rows) +
                    std::size_t(input.rows.begin) * std::size_t(problem.tiles.width(tile));
    problem.unpack(tile, rows, input.rows.count, samples);
  }
}

template class LossWayBack<float>;
template class LossWayBack<double>;
template SweepResult<float> pull_back(const Pass<float>&, const float*, const SweepWanted&);
template SweepResult<double> pull_back(const Pass<double>&, const double*, const SweepWanted&);
template void read_input(const Problem<float>&, const SampleInput&, const Buffer<float>&, float*);
template void read_input(const Problem<double>&, const SampleInput&, const Buffer<double>&, double*);

}  // namespace fathom::fused
