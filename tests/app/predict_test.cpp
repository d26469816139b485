/// `fathom predict`, `forecast` and `sample` with the tables that people have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/plain/command_line.hpp"

namespace fathom::testing {
namespace {

std::string model(const std::string& name) {
  return "'" FATHOM_SOURCE_DIR "/fuzz/corpus/model_file/good-" + name + ".safetensors'";
}

/// What a command prints with --json.
nlohmann::json answer_of(const std::string& command) {
  const Outcome outcome = run(command + " --json");
  EXPECT_EQ(outcome.exit_code, 0) << command << "\n" << outcome.output;
  return nlohmann::json::parse(outcome.output, nullptr, false);
}

std::string lines(const std::string& text, std::size_t count) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < count && end < text.size(); ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

TEST(Forecast, EndsWhereItIsToldOnEitherSideOfZero) {
  const TemporaryFolder folder;
  struct Case {
    std::string start, until, every;
    std::size_t rows;
    double last;
  };
  for (const Case& each : std::vector<Case>{{"-10", "-1", "1", 10, -1},
                                            {"-3", "0", "0.5", 7, 0},
                                            {"-0.3", "0.6", "0.1", 10, 0.6},
                                            {"0", "0.3", "0.1", 4, 0.3},
                                            {"1e9", "1000000000.3", "0.1", 4, 1000000000.3},
                                            {"-7", "-0.5", "1", 7, -1},
                                            {"2", "3.999", "1", 2, 3}}) {
    const std::string table = folder.write("start.csv", "t,a,b\n" + each.start + ",1,2\n");
    const auto rows = answer_of("forecast " + model("series") + " --from " + table + " --start " +
                                each.start + " --until " + each.until + " --every " + each.every)
                          .at("rows");
    ASSERT_EQ(rows.size(), each.rows) << each.start << " " << each.until;
    EXPECT_EQ(rows.back().at("t").get<double>(), each.last) << each.start << " " << each.until;
  }
}

TEST(Predict, GivesNoR2OfATargetThatDoesNotVary) {
  const TemporaryFolder folder;
  const std::string same = folder.write("same.csv", "a,b,kind\n1,2,3\n2,3,3\n");
  const std::string varying = folder.write("varying.csv", "a,b,kind\n1,2,3\n2,3,4\n");
  const auto figures = answer_of("predict " + model("controlled") + " " + same).at("figures");
  EXPECT_TRUE(figures.contains("rmse"));
  EXPECT_FALSE(figures.contains("R2")) << figures;
  EXPECT_TRUE(answer_of("predict " + model("controlled") + " " + varying).at("figures").contains("R2"));
}

TEST(Predict, NeedsNoTargetsAndJudgesByThoseThatAreThere) {
  const TemporaryFolder folder;
  for (const char* name : {"classes", "controlled"}) {
    const std::string command = "predict " + model(name) + " ";
    const auto without = answer_of(command + folder.write("without.csv", "a,b\n1,2\n2,3\n"));
    EXPECT_EQ(without.at("rows").size(), 2U) << name;
    EXPECT_TRUE(without.at("figures").empty()) << name;
    const std::string with =
        name == std::string("classes") ? "a,b,kind\n1,2,x\n2,3,y\n" : "a,b,kind\n1,2,3\n2,3,4\n";
    EXPECT_FALSE(answer_of(command + folder.write("with.csv", with)).at("figures").empty()) << name;
  }
}

/// A table of any length is solved a bounded number of rows at a time: the first of them know nothing of the rest.
TEST(Predict, OfTheFirstRowsOfALongTableIsThatOfAShortOne) {
  const TemporaryFolder folder;
  std::ostringstream rows;
  rows << "a,b\n";
  for (int i = 0; i < 5000; ++i) rows << 0.01 * (i % 97) << "," << (i < 4096 ? 0.02 : 20) * (i % 89) << "\n";
  const auto answers = [&](const std::string& table) {
    return run("predict " + model("classes") + " " + folder.write("rows.csv", table) + " --quiet").output;
  };
  const std::string long_one = answers(rows.str()), short_one = answers(lines(rows.str(), 4097));
  ASSERT_EQ(std::count(long_one.begin(), long_one.end(), '\n'), 5001) << long_one.substr(0, 200);
  EXPECT_TRUE(lines(long_one, 4097) == short_one);
}

TEST(Sample, OfTheFirstPointsOfManyIsThatOfFew) {
  const std::string command = "sample " + model("density") + " --quiet --seed 5 -n ";
  const std::string many = run(command + "5000").output, few = run(command + "4096").output;
  ASSERT_EQ(std::count(many.begin(), many.end(), '\n'), 5001) << many.substr(0, 200);
  EXPECT_TRUE(lines(many, 4097) == few);
}

/// Categories, one of them with `=` in its name, in a level and with levels that look like numbers.
const std::string kinds =
    "size,x=y,price\n1,a,3\n2,b=c,5\n3,7,1\n4,a,2\n5,b=c,6\n6,a,9\n7,a,1\n8,b=c,4\n9,7,5\n";

/// Of steps that do not depend on the other rows.
std::string trained_on_kinds(const TemporaryFolder& folder) {
  const Outcome trained =
      run("train " + folder.write("kinds.csv", kinds) +
          " --target price --solver rk4 --steps 4 --precision float64 --iterations 20 --quiet "
          "--out " +
          folder.quoted("run"));
  EXPECT_EQ(trained.exit_code, 0) << trained.output;
  return folder.quoted("run/model.safetensors");
}

TEST(Predict, FindsCategoriesWhoseNamesAndLevelsHaveEqualSigns) {
  const TemporaryFolder folder;
  const std::string trained = trained_on_kinds(folder);
  const auto all = answer_of("predict " + trained + " " + folder.quoted("kinds.csv")).at("rows");
  ASSERT_EQ(all.size(), 9U);
  std::istringstream rows(kinds);
  std::string header, row;
  std::getline(rows, header);
  for (std::size_t i = 0; std::getline(rows, row); ++i) {  // each by itself, where 7 looks like a number
    const auto one =
        answer_of("predict " + trained + " " + folder.write("one.csv", header + "\n" + row + "\n"));
    EXPECT_NEAR(one.at("rows")[0].at("price").get<double>(), all[i].at("price").get<double>(), 1e-12) << row;
  }
  const auto price = [&](const char* kind) {
    const std::string table = folder.write("one.csv", std::string("size,x=y\n3,") + kind + "\n");
    return answer_of("predict " + trained + " " + table).at("rows")[0].at("price").get<double>();
  };
  EXPECT_GT(std::abs(price("a") - price("b=c")), 0.01);
  EXPECT_GT(std::abs(price("a") - price("7")), 0.01) << "the category must matter";
  EXPECT_TRUE(
      answer_of("inspect " + trained + " --data " + folder.quoted("kinds.csv")).contains("stability"));
}

TEST(Predict, AsksWhichOfTwoColumnsIsMeant) {
  const TemporaryFolder folder;
  const std::string trained = trained_on_kinds(folder);
  const Outcome refused =
      run("predict " + trained + " " + folder.write("two.csv", "size,x,x=y\n1,u,a\n2,v,b=c\n3,u,a\n"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.output, "may be a level of column `x` or of column `x=y`")) << refused.output;
}

TEST(Forecast, TakesCategoriesAmongTheColumnsOfASeries) {
  const TemporaryFolder folder;
  std::ostringstream table;
  table << "t,kind,x\n";
  for (int i = 0; i < 30; ++i)
    table << 0.1 * i << "," << (i % 3 ? "on" : "off") << "," << std::cos(0.1 * i) << "\n";
  const std::string data = folder.write("series.csv", table.str());
  ASSERT_EQ(run("train " + data + " --time t --iterations 2 --quiet --out " + folder.quoted("run")).exit_code,
            0);
  const auto rows = answer_of("forecast " + folder.quoted("run/model.safetensors") + " --from " + data +
                              " --until 4 --every 0.5")
                        .at("rows");
  EXPECT_NEAR(rows[0].at("kind=on").get<double>(), 1, 1e-6);
  EXPECT_NEAR(rows[0].at("kind=off").get<double>(), 0, 1e-6);
}

}  // namespace
}  // namespace fathom::testing
