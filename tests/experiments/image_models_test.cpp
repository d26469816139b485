/// The image models of the paper's Table 1 have exactly the parameters listed there, and learn with all of them (E3).
#include "experiments/image_models.hpp"

#include <gtest/gtest.h>

#include "fathom/train/fit.hpp"

namespace fathom::experiments {
namespace {

struct Row {
  std::string name;
  ImageKind kind;
  std::int64_t channels, side;
  std::int64_t parameters;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

torch::nn::Sequential built(const Row& row, Velocity velocity = Velocity::zero) {
  torch::manual_seed(0);
  return image_model(row.kind, {.channels = row.channels, .velocity = velocity}).whole;
}

/// Scores of a few images of half the side.
Tensor scores(torch::nn::Sequential& model, const Row& row) {
  return model->forward(torch::rand({2, row.channels, row.side / 2, row.side / 2}));
}

class Table1 : public ::testing::TestWithParam<Row> {};

TEST_P(Table1, HasTheParametersOfThePaper) {
  EXPECT_EQ(parameter_count(*built(GetParam())), GetParam().parameters);
}

TEST_P(Table1, ClassifiesImagesAndHasGradientsForAllOfThem) {
  auto model = built(GetParam());
  const Tensor answer = scores(model, GetParam());
  EXPECT_EQ(answer.sizes(), (std::vector<std::int64_t>{2, 10}));
  torch::nn::functional::cross_entropy(answer, torch::tensor({3, 7})).backward();
  for (const auto& item : model->named_parameters())
    EXPECT_GT(item.value().grad().abs().max().item<float>(), 0) << item.key();
}

TEST_P(Table1, CountsEvaluationsAsTheAuthorsDid) {
  torch::manual_seed(0);
  ImageModel model = image_model(GetParam().kind, {.channels = GetParam().channels});
  scores(model.whole, GetParam());
  const SolveReport report = model.ode->report();
  EXPECT_EQ(report.evaluations, 2 + 6 * (report.accepted + report.rejected));
}

INSTANTIATE_TEST_SUITE_P(Images, Table1,
                         ::testing::Values(Row{"cifar_vanilla", ImageKind::node, 3, 32, 37091},
                                           Row{"cifar_augmented", ImageKind::anode, 3, 32, 34954},
                                           Row{"cifar_input_layer", ImageKind::input_layer, 3, 32, 36088},
                                           Row{"cifar_second_order", ImageKind::second_order, 3, 32, 34618},
                                           Row{"mnist_vanilla", ImageKind::node, 1, 28, 21417},
                                           Row{"mnist_augmented", ImageKind::anode, 1, 28, 20398},
                                           Row{"mnist_input_layer", ImageKind::input_layer, 1, 28, 20686},
                                           Row{"mnist_second_order", ImageKind::second_order, 1, 28, 20014}),
                         [](const auto& test) { return test.param.name; });

TEST(SecondOrder, LearnsItsVelocitiesByTheInputLayer) {
  const Row row{"second", ImageKind::second_order, 1, 28, 20014};
  EXPECT_EQ(parameter_count(*built(row, Velocity::learned)), row.parameters + 16 * 9);
  const Tensor image = torch::rand({1, 1, 8, 8});
  const auto moving = [&](Velocity velocity) {
    torch::manual_seed(0);
    ImageModel model = image_model(row.kind, {.velocity = velocity});
    return model.states(image, {0, 1})[0].narrow(1, 16, 16).abs().max().item<float>();
  };
  EXPECT_EQ(moving(Velocity::zero), 0);
  EXPECT_GT(moving(Velocity::learned), 0);
}

TEST(ComparedModels, ThePlainNetworkIsAsLargeAsTheOneWithTheInputLayer) {
  EXPECT_EQ(parameter_count(*plain_network(1)), 20686);
  EXPECT_EQ(parameter_count(*plain_network(3)), 36088);
  EXPECT_EQ(parameter_count(*linear_classifier(1, 28)), 7850);
}

}  // namespace
}  // namespace fathom::experiments
