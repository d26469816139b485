/// A steady control loop: a call with a kept workspace allocates nothing.
#include <gtest/gtest.h>

#include "runtime/small_models.hpp"
#include "support/plain/allocations.hpp"

namespace fathom::runtime {
namespace {

TEST(SteadyRuntime, AnswersWithoutAllocating) {
  const Numbers times = {1, 2, 4, 4.5};
  for (const ModelFile& file : models_of_every_task()) {
    const Model model(file);
    for (const std::size_t rows : {1, 70}) {
      SCOPED_TRACE(testing::Message() << std::string(name_of(model.spec().task)) << ", " << rows << " rows");
      Workspace workspace(model);
      const Numbers data = some_rows(model, rows);
      Numbers answers = answers_of(model, data, times);
      EXPECT_EQ(test::allocations_of([&] { answers_into(model, data, times, answers, workspace); }), 0);
    }
  }
}

}  // namespace
}  // namespace fathom::runtime
