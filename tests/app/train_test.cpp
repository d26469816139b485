/// `fathom train`, `predict`, `forecast`, `sample` and `completion` as a person meets them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "fathom/file/model_file.hpp"
#include "fathom/train/split.hpp"
#include "support/plain/command_line.hpp"

namespace fathom::testing {
namespace {

/// Two clouds in the plane, of the classes "left" and "right".
std::string clouds(int rows = 60) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.5);
  std::ostringstream out;
  out << "x,y,class\n";
  for (int i = 0; i < rows; ++i)
    out << (i % 2 ? 2 : -2) + noise(random) << "," << noise(random) << "," << (i % 2 ? "right" : "left")
        << "\n";
  return out.str();
}

/// Two courses of a harmonic oscillator at irregular times.
std::string oscillators() {
  std::ostringstream out;
  out << "run,t,x,v\n";
  for (int run = 0; run < 2; ++run) {
    for (int i = 0; i < 60; ++i) {
      const double t = 0.1 * i + 0.02 * ((i * 7 + run) % 4);
      out << "r" << run << "," << t << "," << std::cos(t + run) << "," << -std::sin(t + run) << "\n";
    }
  }
  return out.str();
}

nlohmann::json json_in(const std::filesystem::path& file) { return nlohmann::json::parse(content(file)); }

TEST(Train, LeavesARunFolderThatTellsEverything) {
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds());
  const Outcome trained =
      run("train " + data + " --label class --iterations 40 --test 0.2 --out " + folder.quoted("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  for (const char* word :
       {"loss", "validation accuracy", "test accuracy", "NFE", "parameters", "model.safetensors"})
    EXPECT_TRUE(contains(trained.output, word)) << word << " in\n" << trained.output;
  for (const char* file : {"config.toml", "metrics.jsonl", "metrics.json", "model.safetensors",
                           "checkpoint.safetensors", "report.html"})
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / file)) << file;
  const auto metrics = json_in(folder / "run/metrics.json");
  EXPECT_EQ(metrics.at("experiment"), "train");
  EXPECT_GT(metrics.at("models").at("model").at("test accuracy").get<double>(), 0.9);
  const std::string log = content(folder / "run/metrics.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 40);
  EXPECT_TRUE(contains(content(folder / "run/report.html"), "Decision map"));

  const Outcome predicted = run("predict " + folder.quoted("run/model.safetensors") + " " + data + " --out " +
                                folder.quoted("answers.csv"));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.output;
  EXPECT_TRUE(contains(predicted.output, "accuracy")) << predicted.output;
  const std::string answers = content(folder / "answers.csv");
  EXPECT_TRUE(answers.starts_with("class,p(left),p(right)\n")) << answers.substr(0, 80);
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 61);
}

TEST(Train, ItsConfigReproducesTheRunToTheByte) {
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds());
  const std::string flags =
      " --label class --iterations 12 --batch 16 --field galerkin:fourier:1+control --augment zero:1 "
      "--schedule cosine:0.1 --warm-up 3 --clip 1 --seed 7 --quiet --out ";
  ASSERT_EQ(run("train " + data + flags + folder.quoted("one")).exit_code, 0);
  const Outcome again =
      run("train --config " + folder.quoted("one/config.toml") + " --quiet --out " + folder.quoted("two"));
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(content(folder / "one/model.safetensors"), content(folder / "two/model.safetensors"));
  const Outcome other = run("train --config " + folder.quoted("one/config.toml") +
                            " --seed 8 --quiet --out " + folder.quoted("three"));
  ASSERT_EQ(other.exit_code, 0) << other.output;
  EXPECT_NE(content(folder / "one/model.safetensors"), content(folder / "three/model.safetensors"));
}

TEST(Train, StepsPerSampleMakeAnAnswerIndependentOfTheOtherRows) {
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds());
  const std::string rows = clouds();
  const std::string first =
      folder.write("first.csv", rows.substr(0, rows.find('\n', rows.find('\n') + 1) + 1));
  ASSERT_EQ(run("train " + data + " --label class --iterations 10 --steps-per-sample --quiet --out " +
                folder.quoted("run"))
                .exit_code,
            0);
  EXPECT_TRUE(contains(content(folder / "run/config.toml"), "steps-per-sample = true"));
  const std::string model = folder.quoted("run/model.safetensors");
  EXPECT_TRUE(contains(run("inspect " + model).output, "steps of each sample's own"));
  const auto left = [&](const std::string& table, const char* name) {
    EXPECT_EQ(run("predict " + model + " " + table + " --out " + folder.quoted(name)).exit_code, 0);
    const std::string answers = content(folder / name);
    return std::stod(answers.substr(answers.find("\nleft,") + 6));
  };
  EXPECT_NEAR(left(first, "alone.csv"), left(data, "all.csv"), 1e-6);  // torch sums a layer in another order
  const Outcome again =
      run("train --config " + folder.quoted("run/config.toml") + " --quiet --out " + folder.quoted("again"));
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(content(folder / "run/model.safetensors"), content(folder / "again/model.safetensors"));
}

TEST(Train, RegressionTakesCategoriesAmongItsInputs) {
  const TemporaryFolder folder;
  std::ostringstream table;
  table << "size,colour,price\n";
  for (int i = 0; i < 50; ++i)
    table << i % 10 << "," << (i % 3 ? "red" : "blue") << "," << 3 * (i % 10) + (i % 3 ? 20 : 0) << "\n";
  const std::string data = folder.write("prices.csv", table.str());
  const Outcome trained =
      run("train " + data + " --target price --iterations 200 --json --quiet --out " + folder.quoted("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const auto metrics = nlohmann::json::parse(trained.output);
  EXPECT_GT(metrics.at("models").at("model").at("validation R2").get<double>(), 0.95) << trained.output;
  const Outcome predicted = run("predict " + folder.quoted("run/model.safetensors") + " " +
                                folder.write("one.csv", "colour,size\nred,5\n") + " --json");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.output;
  EXPECT_NEAR(nlohmann::json::parse(predicted.output).at("rows")[0].at("price").get<double>(), 35, 3);
}

TEST(Train, SeriesAreLearnedAndForecast) {
  const TemporaryFolder folder;
  const std::string data = folder.write("oscillators.csv", oscillators());
  const Outcome trained =
      run("train " + data + " --time t --series run --model 'mlp 16' --iterations 400 --quiet --out " +
          folder.quoted("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const Outcome forecast =
      run("forecast " + folder.quoted("run/model.safetensors") + " --from " + data +
          " --series run --start 2 --until 5 --every 0.5 --json --report " + folder.quoted("f.html"));
  ASSERT_EQ(forecast.exit_code, 0) << forecast.output;
  const auto answer = nlohmann::json::parse(forecast.output);
  EXPECT_LT(answer.at("figures").at("rmse of x").get<double>(), 0.2) << forecast.output;
  EXPECT_EQ(answer.at("rows")[0].at("run"), "r0");
  EXPECT_TRUE(std::filesystem::exists(folder / "f.html"));
}

TEST(Forecast, SaysInOneLineThatStabilityLimitsTheSteps) {
  const TemporaryFolder folder;
  ModelFile file{.spec = {.task = Task::series,
                          .inputs = {"x", "v"},
                          .time = {.column = "t"},
                          .field = {.hidden = {}},
                          .head = HeadKind::none,
                          .precision = Precision::float64}};
  file.tensors["field.1.weight"] = stored_tensor<double>({2, 2}, std::vector<double>{-1000, 1000, 0, -0.1});
  file.tensors["field.1.bias"] = stored_tensor<double>({2}, std::vector<double>{0, 0});
  write_model_file(folder / "stiff.safetensors", file);
  const std::string start = folder.write("start.csv", "t,x,v\n0,1,1\n");
  const std::string flags = " --until 2 --every 1 --out " + folder.quoted("out.csv");
  const std::string told =
      run("forecast " + folder.quoted("stiff.safetensors") + " --from " + start + flags).output;
  EXPECT_TRUE(told.starts_with("fathom: steps are limited by stability, not by the tolerance, from depth 0."))
      << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  const std::string quiet =
      run("forecast --quiet " + folder.quoted("stiff.safetensors") + " --from " + start + flags).output;
  EXPECT_EQ(quiet, "");
}

TEST(Train, DensitiesAreLearnedAndSampled) {
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds(80));
  const std::string model = folder.quoted("run/model.safetensors");
  const Outcome trained =
      run("train " + data + " --task density --ignore class --iterations 60 --quiet --out " +
          folder.quoted("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const Outcome sampled = run("sample " + model + " -n 200 --seed 3");
  ASSERT_EQ(sampled.exit_code, 0) << sampled.output;
  EXPECT_TRUE(sampled.output.starts_with("x,y\n"));
  EXPECT_EQ(std::count(sampled.output.begin(), sampled.output.end(), '\n'), 201);
  EXPECT_EQ(run("sample " + model + " -n 200 --seed 3").output, sampled.output);
  const Outcome judged = run("predict " + model + " " + data + " --json");
  ASSERT_EQ(judged.exit_code, 0) << judged.output;
  EXPECT_TRUE(nlohmann::json::parse(judged.output).at("figures").contains("nll"));
}

TEST(Train, CtrlCEndsCleanlyAndResumeContinuesTheSameRun) {
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds());
  const std::string flags = " --label class --batch 8 --iterations ";
  ASSERT_EQ(run("train " + data + flags + "1500 --quiet --out " + folder.quoted("whole")).exit_code, 0);
  // The interrupt comes when the run has begun to log, whatever the machine's speed; it may be over by then.
  const Outcome stopped = shell(
      program() + " train " + data + flags + "1500 --checkpoint-every 1000 --time-budget 1000 --out " +
      folder.quoted("part") + " & run=$!\nwhile kill -0 $run 2>/dev/null && ! [ -s " +
      folder.quoted("part/metrics.jsonl") + " ]; do sleep 0.02; done\nkill -INT $run 2>/dev/null\nwait $run");
  ASSERT_TRUE(stopped.exit_code == 130 || stopped.exit_code == 0) << stopped.output;
  if (stopped.exit_code == 130) {
    EXPECT_TRUE(contains(stopped.output, "go on with `fathom train --resume")) << stopped.output;
  }
  const Outcome resumed = run("train --resume " + folder.quoted("part") + " --quiet");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(content(folder / "part/model.safetensors"), content(folder / "whole/model.safetensors"));
  const std::string log = content(folder / "part/metrics.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1500);
}

/// FATHOM_KILLS says how often; 20 take a minute or two.
TEST(Train, AKilledRunResumesToTheSameFile) {
  const char* asked = std::getenv("FATHOM_KILLS");
  const int kills = asked ? std::atoi(asked) : 4;
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds());
  const std::string flags =
      " --label class --batch 8 --field concat --augment zero:2 --schedule cosine --iterations 3000"
      " --checkpoint-every 0.05 --quiet --out ";
  ASSERT_EQ(run("train " + data + flags + folder.quoted("whole")).exit_code, 0);
  std::mt19937 random(5);  // the same iterations each time, so that a failure can be repeated
  int killed = 0;
  std::string command = "train " + data + flags + folder.quoted("part");
  for (int i = 0; i < kills; ++i) {
    // At a random iteration of the i-th part of the run, as its log tells, whatever the machine's speed.
    const double share = (i + std::uniform_real_distribution<>(0, 1)(random)) / (kills + 0.5);
    const Outcome outcome =
        shell(program() + " " + command + " & run=$!\nwhile kill -0 $run 2>/dev/null && ! [ \"$(cat " +
              folder.quoted("part/metrics.jsonl") + " 2>/dev/null | wc -l)\" -ge " +
              std::to_string(int(share * 3000)) +
              " ]; do sleep 0.005; done\nkill -KILL $run 2>/dev/null\nwait $run 2>/dev/null");
    ASSERT_TRUE(outcome.exit_code == 137 || outcome.exit_code == 0) << outcome.output;
    killed += outcome.exit_code == 137;
    if (std::filesystem::exists(folder / "part/config.toml"))
      command = "train --quiet --resume " + folder.quoted("part");
  }
  RecordProperty("killed", killed);
  EXPECT_GE(2 * killed, kills) << "hardly a run was alive when it was killed";
  const Outcome last = run(command);
  ASSERT_EQ(last.exit_code, 0) << last.output;
  EXPECT_EQ(content(folder / "part/model.safetensors"), content(folder / "whole/model.safetensors"));
}

TEST(Train, SettingsAtTheirLimitsAreReadBackOnResume) {
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds());
  const Outcome trained =
      run("train " + data + " --label class --iterations 2 --quiet --seed 9223372036854775807 " +
          "--time-budget 1.7976931348623157e308 --clip 5e-324 --learning-rate 1e22 --out " +
          folder.quoted("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const std::string config = content(folder / "run/config.toml");
  const Outcome resumed = run("train --quiet --iterations 3 --resume " + folder.quoted("run"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(content(folder / "run/config.toml"),
            std::string(config).replace(config.find("iterations = 2"), 14, "iterations = 3"));
}

const SplitOptions quarters{.validation = 0.25, .test = 0.25, .seed = 3};

/// Points on a line; one row of the part is beyond float32 once it is standardised.
std::string line_with_a_wild_row(Tensor Parts<Tensor>::*part) {
  constexpr std::int64_t rows = 40;
  const std::int64_t wild = (split_rows(rows, quarters).*part)[0].item<std::int64_t>();
  std::ostringstream out;
  out << "x,y\n";
  for (std::int64_t i = 0; i < rows; ++i)
    out << (i == wild ? "1e300" : std::to_string(i)) << "," << 2 * i << "\n";
  return out.str();
}

void expect_a_model_without_figures_of(const std::string& part, Tensor Parts<Tensor>::*rows) {
  const TemporaryFolder folder;
  const std::string data = folder.write("line.csv", line_with_a_wild_row(rows));
  const Outcome trained = run("train " + data + " --target y --iterations 30 --validation 0.25 --test 0.25 " +
                              "--seed 3 --quiet --out " + folder.quoted("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  EXPECT_TRUE(contains(trained.output, "the model is saved, but the " + part + " data cannot be judged"))
      << trained.output;
  for (const std::string each : {"", "validation ", "test "}) {
    EXPECT_EQ(json_in(folder / "run/metrics.json").at("models").at("model").contains(each + "rmse"),
              each != part + " ")
        << each;
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "run/report.html"));
  const std::string model = content(folder / "run/model.safetensors");
  const Outcome predicted = run("predict " + folder.quoted("run/model.safetensors") + " " +
                                folder.write("one.csv", "x\n7\n") + " --quiet");
  EXPECT_EQ(predicted.exit_code, 0) << predicted.output;
  const Outcome resumed = run("train --quiet --resume " + folder.quoted("run"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(content(folder / "run/model.safetensors"), model);
}

TEST(Train, ATestRowThatCannotBeSolvedDoesNotLoseTheModel) {
  expect_a_model_without_figures_of("test", &Parts<Tensor>::test);
}

TEST(Train, AValidationRowThatCannotBeSolvedDoesNotKeepARunFromBeginning) {
  expect_a_model_without_figures_of("validation", &Parts<Tensor>::validation);
}

TEST(Train, ARunIsNotWrittenOverByAccident) {
  const TemporaryFolder folder;
  const std::string command = "train " + folder.write("clouds.csv", clouds()) +
                              " --label class --iterations 2 --quiet --out " + folder.quoted("run");
  ASSERT_EQ(run(command).exit_code, 0);
  const std::string before = content(folder / "run/model.safetensors");
  const Outcome again = run(command + " --seed 5");
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_TRUE(contains(again.output, "holds a run already")) << again.output;
  EXPECT_EQ(content(folder / "run/model.safetensors"), before);
  EXPECT_EQ(run(command + " --seed 5 --force").exit_code, 0);
  EXPECT_NE(content(folder / "run/model.safetensors"), before);
}

/// Everything bad gets one sentence.
void expect_one_sentence(const std::string& arguments, const std::string& sentence, int exit_code) {
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.output;
  EXPECT_TRUE(contains(outcome.output, sentence)) << arguments << "\n" << outcome.output;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
}

TEST(Train, SaysInOneSentenceWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds());
  const std::string text = folder.write("text.csv", "age,y\n1,a\n2,b\n3,a\n4,b\n5,a\nold,b\n");
  const std::string one = folder.write("one.csv", "x,y\n1,a\n2,a\n3,a\n");
  const std::string missing = folder.write("missing.csv", "x,y\n1,a\n,b\n3,a\n");
  const std::string twice = folder.write("twice.csv", "t,x\n1,2\n1,3\n2,4\n");
  const std::string collision = folder.write("collision.csv", "c,c=a,y\na,1,l\nb,2,r\na,3,l\nb,4,r\na,5,l\n");
  const std::string latin = folder.write("latin.csv",
                                         "gr\xF6\xDF"
                                         "e,y\n1,2\n2,3\n3,4\n4,5\n5,6\n");
  const std::string key = folder.write("key.toml", "labl = \"class\"\n");
  const std::string type = folder.write("type.toml", "iterations = \"many\"\n");
  const std::string broken = folder.write("broken.toml", "label = \n");
  folder.write("file", "");
  struct Case {
    std::string arguments, sentence;
    int exit_code = 2;
  };
  const std::vector<Case> cases = {
      {"no-such.csv --label y", "no-such.csv", 1},
      {text + " --label y", "row 6 column `age`", 1},
      {data + " --label clas", "did you mean `class`?"},
      {one + " --label y", "has only 1 class", 1},
      {missing + " --label y", "row 2 column `x`", 1},
      {data, "say what to learn"},
      {data + " --label class --target x", "`--target` is for regression"},
      {data + " --label class --task series", "`--label` is for classification"},
      {data + " --label class --optimizer lbfgs --batch 8", "lbfgs needs the same loss every iteration"},
      {data + " --label class --optimizer adan", "did you mean `adam`?"},
      {data + " --label class --solver dopri", "did you mean `dopri5`?"},
      {data + " --label class --solver rk4", "fixed steps"},
      {data + " --label class --field galerkin:furier:5", "did you mean `fourier`?"},
      {data + " --label class --field concat+stacked:4", "depends on depth in two ways"},
      {data + " --label class --augment zero:two", "needs a whole number"},
      {data + " --label class --model cnn", "`mlp` and its hidden widths"},
      {data + " --label class --schedule linear", "unknown schedule"},
      {data + " --label class --loss mse", "the loss of a classification is cross-entropy"},
      {data + " --label class --validation 0.6 --test 0.5", "nothing is left to train on"},
      {data + " --label class --iterations 0", "`iterations` must be at least 1"},
      {data + " --label class --learning-rate fast", "--learning-rate"},
      {data + " --label class --time-budget inf",
       "`--time-budget` must be a finite number, got inf (Seconds of training; 0: no limit)"},
      {data + " --label class --clip inf", "`--clip` must be a finite number, got inf"},
      {data + " --label class --depth nan", "`--depth` must be a finite number, got nan"},
      {data + " --label class --seed 9223372036854775808",
       "`--seed` must be from 0 to 9223372036854775807, got 9223372036854775808"},
      {collision + " --label y", "would both be called `c=a`"},
      {latin + " --target y --iterations 2 --out " + folder.quoted("latin"),
       "names of columns and labels must be UTF-8"},
      {data + " --label class --learning-rat 1", "did you mean `--learning-rate`?"},
      {twice + " --time t", "two observations at t = 1"},
      {data + " --time x --ignore class --field concat", "must not depend on time"},
      {"--config " + key, "unknown key `labl`"},
      {"--config " + key, "did you mean `label`?"},
      {"--config " + type, "must be a whole number"},
      {"--config " + broken, "is not TOML"},
      {"--config " + key + " --resume " + folder.quoted("run"), "not both"},
      {"--resume " + folder.quoted("nothing"), "there is no file", 1},
      {data + " --label class --iterations 2 --out " + folder.quoted("file"), "cannot make the run folder",
       1},
      {data + " --label class --iterations 2 --out /proc/fathom", "cannot make the run folder", 1},
  };
  for (const Case& each : cases) {
    expect_one_sentence("train " + each.arguments, each.sentence, each.exit_code);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "latin")) << "said after the training";
}

TEST(Predict, SaysInOneSentenceWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds());
  ASSERT_EQ(
      run("train " + data + " --label class --iterations 2 --quiet --out " + folder.quoted("run")).exit_code,
      0);
  const std::string model = folder.quoted("run/model.safetensors");
  const std::string narrow = folder.write("narrow.csv", "x\n1\n");
  const std::string stranger = folder.write("stranger.csv", "x,y,class\n1,2,middle\n");
  struct Case {
    std::string arguments, sentence;
    int exit_code;
  };
  const std::vector<Case> cases = {
      {"predict " + model + " " + narrow, "`y`", 2},
      {"predict " + model + " " + stranger, "has the class `middle`", 2},
      {"predict " + data + " " + data, "clouds.csv", 1},
      {"predict no-such.safetensors " + data, "no-such.safetensors", 1},
      {"sample " + model, "only the model of a density can be sampled", 2},
      {"forecast " + model + " --from " + data + " --until 3 --every 1",
       "only the model of a series can forecast", 2},
      {"predict " + model + " " + data + " --quiet > /dev/full", "cannot write to standard output", 1},
  };
  for (const Case& each : cases) { expect_one_sentence(each.arguments, each.sentence, each.exit_code); }
}

/// A limit on the size of files stands in for a full disk: the write fails in the same place.
TEST(Train, ADiskThatIsFullIsSaidAndHarmsNothing) {
  const TemporaryFolder folder;
  const std::string data = folder.write("clouds.csv", clouds());
  const std::string command = program() + " train " + data + " --label class --quiet --iterations ";
  ASSERT_EQ(shell(command + "5 --out " + folder.quoted("run")).exit_code, 0);
  const std::string checkpoint = content(folder / "run/checkpoint.safetensors");
  const Outcome full = shell("bash -c \"trap '' XFSZ; ulimit -f 4; exec " + program() +
                             " train --quiet --resume " + folder.quoted("run") + " --iterations 9\"");
  EXPECT_EQ(full.exit_code, 1) << full.output;
  EXPECT_TRUE(contains(full.output, "cannot write")) << full.output;
  EXPECT_EQ(std::count(full.output.begin(), full.output.end(), '\n'), 1) << full.output;
  EXPECT_EQ(content(folder / "run/checkpoint.safetensors"), checkpoint);
  ASSERT_EQ(run("train --quiet --resume " + folder.quoted("run") + " --iterations 9").exit_code, 0);
}

TEST(Completion, CompletesCommandsAndFlagsInBash) {
  const TemporaryFolder folder;
  ASSERT_EQ(run("completion bash > " + folder.quoted("completion")).exit_code, 0);
  const auto completed = [&](const std::string& words, int place) {
    return shell("bash -c \"source " + folder.quoted("completion") + "; COMP_WORDS=(" + words +
                 "); COMP_CWORD=" + std::to_string(place) + "; _fathom; echo \\${COMPREPLY[@]}\"")
        .output;
  };
  EXPECT_EQ(completed("fathom tr", 1), "train\n");
  EXPECT_EQ(completed("fathom train --lab", 2), "--label\n");
  EXPECT_TRUE(contains(run("completion fish").output, "-l learning-rate"));
  EXPECT_TRUE(contains(run("completion zsh").output, "bashcompinit"));
  EXPECT_EQ(run("completion tcsh").exit_code, 2);
}

}  // namespace
}  // namespace fathom::testing
