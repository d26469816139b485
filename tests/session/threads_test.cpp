/// Sessions on several threads do not disturb each other, whether they share the pool's threads or find them busy.
#include <gtest/gtest.h>

#include <thread>

#include "session/session_problems.hpp"

namespace fathom {
namespace {

struct Trained {
  std::vector<float> parameters;
  double loss = 0;
  bool operator==(const Trained&) const = default;
};

/// A few steps downhill.
Trained trained(std::int64_t batch, int threads) {
  const ProgramField field = controlled_field();
  Session<float> session(field, {.threads = threads});
  Numbers<float> numbers(field, batch);
  const std::vector<float> targets(numbers.start.size(), 0.2f);
  std::vector<float> slopes(numbers.parameters.size());
  Trained result;
  for (int step = 0; step < 20; ++step) {
    const Gradient<float> gradient{.parameters = slopes};
    result.loss = session.loss(numbers.data(), numbers.depths, {.targets = view_of(targets, 2)}, &gradient);
    for (std::size_t n = 0; n < slopes.size(); ++n) numbers.parameters[n] -= 0.1f * slopes[n];
  }
  result.parameters = numbers.parameters;
  return result;
}

TEST(SessionThreads, DoNotDisturbEachOther) {
  const std::vector<std::pair<std::int64_t, int>> settings = {{300, 1}, {300, 2}, {1, 1}, {500, 2}};
  std::vector<Trained> alone(settings.size()), together(settings.size());
  for (std::size_t n = 0; n < settings.size(); ++n) alone[n] = trained(settings[n].first, settings[n].second);
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < settings.size(); ++n)
    threads.emplace_back([&, n] { together[n] = trained(settings[n].first, settings[n].second); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t n = 0; n < settings.size(); ++n) {
    EXPECT_NEAR(together[n].loss, alone[n].loss, 1e-6);
    ASSERT_EQ(together[n].parameters.size(), alone[n].parameters.size());
    for (std::size_t i = 0; i < alone[n].parameters.size(); ++i)
      EXPECT_NEAR(together[n].parameters[i], alone[n].parameters[i], 1e-5);
  }
}

TEST(SessionThreads, ASessionMayGoFromThreadToThread) {
  const ProgramField field = plain_field();
  Session<double> session(field);
  const Numbers<double> numbers(field, 40);
  std::vector<double> here(3 * numbers.start.size()), there(here.size());
  session.solve(numbers.data(), numbers.depths, view_of(here, 80));
  std::thread([&] { session.solve(numbers.data(), numbers.depths, view_of(there, 80)); }).join();
  EXPECT_EQ(here, there);
}

}  // namespace
}  // namespace fathom
