/// What a fused step costs besides arithmetic: no memory, on the way forth and back and with any number of threads.
#include <gtest/gtest.h>

#include "fused/small_networks.hpp"
#include "support/plain/allocations.hpp"

namespace fathom::fused {
namespace {

using test::allocations;

struct Size {
  std::int64_t batch;
  int threads;
};
const std::vector<Size> sizes = {{1, 1}, {100, 1}, {300, 2}};

/// Error control does its work, but the steps are as many as are asked for.
ode::AdaptiveSteps so_many(std::int64_t steps) {
  return {.relative_tolerance = 1e-3, .absolute_tolerance = 1e-3, .largest_step = 1.0 / double(steps)};
}

/// A solve from 0 to 1, as often as is asked for.
class Course {
 public:
  Course(const SmallNetwork<float>& network, const Size& size, std::int64_t steps, EngineOptions options)
      : problem_(network.program, network.spans(), size.batch, size.threads),
        start_(std::size_t(size.batch) * (options.adjoint ? 4 : 2), 0.5f),
        saved_(2 * start_.size()),
        steps_(steps),
        options_(with_error_control(std::move(options), steps)),
        engine_(problem_, options_, start_.data(), options_.adjoint ? nullptr : saved_.data()) {}

  Problem<float>& problem() { return problem_; }
  Engine<float>& engine() { return engine_; }
  const ode::Method& method() const { return options_.method; }
  const std::vector<double>& depths() const { return depths_; }

  std::int64_t allocations_of_solve() {
    const ode::Plan plan{.method = options_.method, .steps = *options_.adaptive};
    const std::int64_t before = allocations;
    const ode::SolveReport report = ode::integrate(engine_, plan, depths_);
    const std::int64_t found = allocations - before;
    EXPECT_GE(report.accepted, steps_);
    return found;
  }

  void begin_again() { engine_.begin_again(options_, start_.data()); }

  Pass<float> pass() {
    return {.problem = &problem_,
            .method = options_.method,
            .records = &engine_.records(),
            .layout = engine_.activation_layout(),
            .start = start_.data(),
            .depths = depths_,
            .bound = depths_.size(),
            .given = depths_.size()};
  }

  std::int64_t allocations_of_way_back(const SweepWanted& wanted) {
    const std::vector<float> up(saved_.size(), 1.0f);
    const Pass<float> walked = pass();
    const std::int64_t before = allocations;
    pull_back(walked, up.data(), wanted);
    return allocations - before;
  }

 private:
  static EngineOptions with_error_control(EngineOptions options, std::int64_t steps) {
    options.adaptive = so_many(steps);
    return options;
  }

  Problem<float> problem_;
  std::vector<float> start_, saved_;
  std::int64_t steps_;
  EngineOptions options_;
  Engine<float> engine_;
  const std::vector<double> depths_ = {0, 1};
};

std::vector<EngineOptions> ways_to_keep() {
  return {{.keeps_starts = true},
          {.keeps_starts = true, .activation_budget = 1 << 22, .rate_budget = 1 << 22},
          {.keeps_starts = true, .rate_budget = 1 << 30}};
}

TEST(FusedSteps, AllocateNothingOnceTheListsHaveGrown) {
  std::vector<EngineOptions> all = ways_to_keep();
  all.push_back({});
  const SmallNetwork<float> network(2, 16);
  for (const Size& size : sizes) {
    for (const EngineOptions& options : all) {
      const auto of_second_solve = [&](std::int64_t steps) {
        Course course(network, size, steps, options);
        course.allocations_of_solve();
        course.begin_again();
        return course.allocations_of_solve();
      };
      EXPECT_EQ(of_second_solve(800), of_second_solve(200)) << "batch " << size.batch;
    }
  }
}

/// The lists of steps grow by doubling, the starts that are kept for gradients in blocks: not with every step.
TEST(FusedSteps, RarelyAllocateInAFirstSolve) {
  const SmallNetwork<float> network(2, 16);
  for (const Size& size : {Size{1, 1}, Size{100, 1}}) {
    const auto more = [&](const EngineOptions& options) {
      const auto of_solve = [&](std::int64_t steps) {
        return Course(network, size, steps, options).allocations_of_solve();
      };
      return of_solve(16000) - of_solve(1000);
    };
    EXPECT_LE(more({}), 20);
    EXPECT_LE(more({.keeps_starts = true}), 60);
  }
}

TEST(FusedSteps, OfTheAdjointAllocateNothing) {
  const SmallNetwork<float> network(2, 16);
  for (const Size& size : sizes) {
    const auto of_solve = [&](std::int64_t steps) {
      return Course(network, size, steps, {.adjoint = true}).allocations_of_solve();
    };
    EXPECT_EQ(of_solve(800), of_solve(200)) << "batch " << size.batch;
  }
}

/// A basis returns a vector at each depth; the engine adds nothing to that.
TEST(FusedSteps, WithWeightsThatVaryAllocateWhatTheirBasisReturns) {
  for (const Size& size : sizes) {
    const auto besides_basis = [&](std::int64_t steps) {
      std::int64_t calls = 0;
      const auto network = SmallNetwork<float>::with_control_and_depth(size.batch, &calls);
      Course course(network, size, steps, {.keeps_starts = true});
      course.allocations_of_solve();
      course.begin_again();
      calls = 0;
      const std::int64_t found = course.allocations_of_solve();
      EXPECT_GE(calls, 6 * steps) << "dopri5 has six stages that are not known from the step before";
      return found - calls;
    };
    EXPECT_EQ(besides_basis(800), besides_basis(200)) << "batch " << size.batch;
  }
}

TEST(FusedWayBack, AllocatesNothingInAStep) {
  const SmallNetwork<float> network(2, 16);
  for (const Size& size : sizes) {
    for (const EngineOptions& options : ways_to_keep()) {
      for (bool wants_depths : {false, true}) {
        const auto of_way_back = [&](std::int64_t steps) {
          Course course(network, size, steps, options);
          course.allocations_of_solve();
          return course.allocations_of_way_back({.depths = wants_depths});
        };
        EXPECT_EQ(of_way_back(800), of_way_back(200)) << "batch " << size.batch;
      }
    }
  }
}

/// Steps whose starts were not kept are repeated, a stretch at a time.
TEST(FusedWayBack, AllocatesOneListForEachStretchThatItRepeats) {
  const SmallNetwork<float> network(2, 16);
  for (const Size& size : sizes) {
    for (std::int64_t every : {2, 50}) {
      const auto of_way_back = [&](std::int64_t steps) {
        Course course(network, size, steps, {.keeps_starts = true, .keep_every = every});
        course.allocations_of_solve();
        return course.allocations_of_way_back({});
      };
      EXPECT_LE(of_way_back(800) - of_way_back(200), 600 / every + 1) << "batch " << size.batch;
    }
  }
}

TEST(FusedWayBack, OfALossAllocatesNothingInAStep) {
  const SmallNetwork<float> network(2, 16);
  for (const Size& size : sizes) {
    const auto loss = SmallNetwork<float>::squared_error(size.batch);
    const auto of_second_loss = [&](std::int64_t steps) {
      Course course(network, size, steps, {.keeps_starts = true});
      EndLoss<float> end(loss.program, loss.spans(), course.problem().tiles, size.threads);
      LossWayBack<float> way_back(course.problem(), course.method(), course.engine().activation_layout(),
                                  end);
      std::int64_t found = 0;
      for (int round = 0; round < 2; ++round) {
        const std::int64_t before = allocations;
        course.begin_again();
        way_back.begin_solve(1.0 / double(size.batch), {});
        course.engine().follow_with(&way_back, course.depths().back());
        course.allocations_of_solve();
        const auto last = way_back.finish();
        Pass<float> pass = course.pass();
        pass.end_adjoint = last.adjoint.data();
        way_back.pull_back(pass, {});
        found = allocations - before;
      }
      return found;
    };
    EXPECT_EQ(of_second_loss(800), of_second_loss(200)) << "batch " << size.batch;
  }
}

}  // namespace
}  // namespace fathom::fused
