/// `fathom inspect` as a person and a machine meet it.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/plain/command_line.hpp"

namespace fathom::testing {
namespace {

const std::string models = FATHOM_SOURCE_DIR "/fuzz/corpus/model_file/";

TEST(Inspect, shows_what_is_inside) {
  const Outcome shown = run("inspect " + models + "good-controlled.safetensors");
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  for (const char* part :
       {"regression of kind", "a, b (standardised)", "z(0) = [x, W x + b], 3 features", "stacked of size 2",
        "controlled by x (concatenation)", "rk4, 4 equal steps", "field.1.weight", "(2, 3, 5)",
        "|W| of field.2", "growth, worst", "cost of one solve: 16 evaluations"}) {
    EXPECT_TRUE(contains(shown.output, part)) << "no `" << part << "` in\n" << shown.output;
  }
}

TEST(Inspect, speaks_json_for_every_kind_of_model) {
  for (const char* name :
       {"good-classes", "good-series", "good-density", "good-controlled", "good-galerkin", "good-hyper"}) {
    const Outcome shown = run("inspect " + models + name + ".safetensors --json");
    ASSERT_EQ(shown.exit_code, 0) << shown.output;
    const auto document = nlohmann::json::parse(shown.output);
    EXPECT_EQ(document.at("stability").size(), 5u) << name;
    EXPECT_GT(document.at("evaluations"), 0) << name;
    std::int64_t total = 0;
    for (const auto& tensor : document.at("tensors")) total += tensor.at("numbers").get<std::int64_t>();
    EXPECT_EQ(document.at("numbers"), total) << name;
  }
}

TEST(Inspect, carries_the_rows_of_a_table_along) {
  const TemporaryFolder folder;
  const std::string table = folder.write("rows.csv", "b,other,a\n1,x,2\n3,y,4\n5,z,6\n");
  const Outcome shown = run("inspect " + models + "good-classes.safetensors --data " + table);
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_TRUE(contains(shown.output, "the 3 row(s) of")) << shown.output;
  const Outcome missing =
      run("inspect " + models + "good-classes.safetensors --data " + folder.write("less.csv", "a,c\n1,2\n"));
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_TRUE(contains(missing.output, "`b`")) << missing.output;
}

TEST(Inspect, refuses_what_is_no_model_in_one_sentence) {
  for (const auto& [file, part] :
       {std::pair<std::string, std::string>{models + "newer.safetensors", "use a newer fathom"},
        {models + "wrong-shape.safetensors", "must have shape (3, 3), got (3, 2)"},
        {models + "none.safetensors", "there is no file"},
        {FATHOM_SOURCE_DIR "/README.md", "not a valid safetensors file"}}) {
    const Outcome refused = run("inspect " + file);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_TRUE(contains(refused.output, part)) << refused.output;
    EXPECT_EQ(std::count(refused.output.begin(), refused.output.end(), '\n'), 1) << refused.output;
  }
}

}  // namespace
}  // namespace fathom::testing
