// Tables from CSV: what is accepted, what it means, and what is said about the rest.
#include "fathom/read/table_reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <random>

#include "fathom/read/numbers.hpp"
#include "fathom/support/error.hpp"

namespace fathom {
namespace {

using Fields = std::vector<std::string>;

std::vector<Fields> records(const std::string& file, const CsvOptions& options = {}) {
  MemorySource source("test.csv", file);
  CsvReader csv(source, options);
  std::vector<Fields> all;
  while (csv.next()) all.emplace_back(csv.fields().begin(), csv.fields().end());
  return all;
}

Table table(const std::string& file, const TableOptions& options = {}) {
  return read_table(std::make_unique<MemorySource>("test.csv", file), options);
}

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

std::string complaint(const std::string& file, const TableOptions& options = {}) {
  return complaint([&] { table(file, options); });
}

/// A folder of its own that goes away with the test.
class Files : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("fathom table test " + std::to_string(getpid()));
};

TEST(Csv, GivesTheFieldsOfEveryLineEnding) {
  const std::vector<Fields> expected = {{"a", "b"}, {"1", "2"}, {"3", ""}};
  EXPECT_EQ(records("a,b\n1,2\n3,\n"), expected);
  EXPECT_EQ(records("a,b\r\n1,2\r\n3,"), expected);
  EXPECT_EQ(records("a,b\r1,2\r3,\r"), expected);
  EXPECT_EQ(records("\xEF\xBB\xBF"
                    "a,b\n\n1,2\n\r\n\n3,\n\n"),
            expected);
  EXPECT_EQ(records(""), std::vector<Fields>{});
  EXPECT_EQ(records("\n\r\n"), std::vector<Fields>{});
}

TEST(Csv, UnderstandsQuotes) {
  EXPECT_EQ(records("\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\"\n\"\"\n"),
            (std::vector<Fields>{{"a,b", "say \"hi\"", "two\r\nlines"}, {""}}));
  EXPECT_EQ(records("5\" pipe,x\"y\n"), (std::vector<Fields>{{"5\" pipe", "x\"y"}}));
  EXPECT_EQ(complaint([] { records("a\n\"b\nc"); }),
            "a quote opened in the record of line 2 of `test.csv` is never closed");
  EXPECT_NE(complaint([] { records("a\n\n\"b\" c\n"); }).find("text after a closing quote in line 3"),
            std::string::npos);
}

TEST(Csv, FindsTheSeparatorInTheFirstLine) {
  EXPECT_EQ(records("a;b;c\n1,5;2;3\n")[1], (Fields{"1,5", "2", "3"}));
  EXPECT_EQ(records("a\tb\n1, 2\t3\n")[1], (Fields{"1, 2", "3"}));
  EXPECT_EQ(records("\"a;b;c\",d\n")[0], (Fields{"a;b;c", "d"}));
  EXPECT_EQ(records("a|b,c|d\n", {.separator = ','})[0], (Fields{"a|b", "c|d"}));
  EXPECT_THROW(records("a", {.separator = '"'}), InvalidArgument);
}

TEST(Csv, CountsLinesAsAnEditorDoes) {
  MemorySource source("test.csv", "a\n\n\"b\nb\"\r\nc\n");
  CsvReader csv(source);
  std::vector<std::size_t> lines;
  while (csv.next()) lines.push_back(csv.line());
  EXPECT_EQ(lines, (std::vector<std::size_t>{1, 3, 5}));
}

TEST(Csv, RefusesWhatIsNoTextTable) {
  using std::string_literals::operator""s;
  EXPECT_NE(complaint([] { records("a,b\n1,\0\n"s); }).find("line 2 contains a zero byte"),
            std::string::npos);
  EXPECT_NE(complaint([] {
              records(
                  "\xFF\xFE"
                  "a");
            }).find("is UTF-16, UTF-8 is needed"),
            std::string::npos);
  EXPECT_NE(complaint([] { records("a\n\"" + std::string(5 << 20, 'x')); }).find("longer than 4 MiB"),
            std::string::npos);
  EXPECT_NE(complaint([] { records(std::string(200000, ',')); }).find("more than 100000 fields"),
            std::string::npos);
}

/// Writes fields so that a reader must understand quotes to get them back.
std::string written(const std::vector<Fields>& rows, std::mt19937& random) {
  std::string file;
  for (const Fields& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool needed = row[i].find_first_of(",;\"\r\n") != std::string::npos || row[i].empty();
      std::string field = row[i];
      for (std::size_t at = 0; (at = field.find('"', at)) != std::string::npos; at += 2)
        field.insert(at, 1, '"');
      file += (i ? "," : "") + (needed || random() % 4 == 0 ? '"' + field + '"' : row[i]);
    }
    file += random() % 2 ? "\n" : "\r\n";
  }
  return file;
}

TEST(Csv, GivesBackAnyFieldsThatWereWritten) {
  std::mt19937 random(1);
  const std::string alphabet = "ab1 ,;\"\r\n\t.\xC3\xA9";
  for (int round = 0; round < 200; ++round) {
    std::vector<Fields> rows(1 + random() % 30, Fields(1 + random() % 5));
    for (Fields& row : rows) {
      for (std::string& field : row)
        for (std::size_t length = random() % 12; length > 0; --length)
          field += alphabet[random() % alphabet.size()];
    }
    EXPECT_EQ(records(written(rows, random), {.separator = ','}), rows);
  }
}

/// A source that gives its bytes in pieces of changing size, as pipes and unpackers do.
class Dripping : public ByteSource {
 public:
  Dripping(std::string bytes, unsigned seed) : ByteSource("drip"), bytes_(std::move(bytes)), random_(seed) {}
  std::size_t read(std::span<char> into) override {
    const std::size_t wanted = std::min<std::size_t>(into.size(), 1 + random_() % 7);
    const std::size_t count = bytes_.copy(into.data(), wanted, at_);
    at_ += count;
    return count;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
  std::mt19937 random_;
};

TEST(Csv, DoesNotDependOnHowTheBytesArrive) {
  std::string file = "\xEF\xBB\xBFname;x\r\n";
  for (int row = 0; row < 40000; ++row)
    file += "\"a;\"\"" + std::to_string(row) + "\";" + std::to_string(row) + "\r\n";
  ASSERT_GT(file.size(), std::size_t{1} << 19);  // more than two buffers
  Dripping source(file, 3);
  CsvReader csv(source);
  ASSERT_TRUE(csv.next());
  for (int row = 0; row < 40000; ++row) {
    ASSERT_TRUE(csv.next());
    ASSERT_EQ(csv.fields()[0], "a;\"" + std::to_string(row));
    ASSERT_EQ(csv.fields()[1], std::to_string(row));
  }
  EXPECT_FALSE(csv.next());
}

TEST(Numbers, AreReadToTheLastBit) {
  for (double value : {0.1, -1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.0}) {
    char spelled[64];
    std::snprintf(spelled, sizeof spelled, " %.17g ", value);
    EXPECT_EQ(parsed_number(spelled), value) << spelled;
  }
  EXPECT_EQ(parsed_number("+1e3"), 1000);
  EXPECT_EQ(parsed_number("1e-999"), 0);
  EXPECT_EQ(parsed_number("-1e999"), -HUGE_VAL);
  for (const char* text : {"", " ", "1,5", "1 2", "0x10", "1e", "+-1", "--1", "1f", "abc"})
    EXPECT_FALSE(parsed_number(text)) << text;
}

TEST(ReadTable, GivesNumbersAndSortedCategories) {
  const Table read =
      table("age,colour,grade\n31, red ,10\n4.5e1,blue,9\n-2,red,10\n", {.categories = {"grade"}});
  ASSERT_EQ(read.names(), (Fields{"age", "colour", "grade"}));
  EXPECT_EQ(read.rows, 3u);
  EXPECT_EQ(read.column("age").values, (std::vector<double>{31, 45, -2}));
  EXPECT_EQ(read.column("colour").levels, (Fields{"blue", "red"}));
  EXPECT_EQ(read.column("colour").values, (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(read.column("grade").levels, (Fields{"9", "10"})) << "sorted as numbers, not as text";
  EXPECT_EQ(read.column("grade").values, (std::vector<double>{1, 0, 1}));
}

TEST(ReadTable, KnowsAHeaderWhenItSeesOne) {
  EXPECT_EQ(table("x,y\n1,2\n").names(), (Fields{"x", "y"}));
  const Table bare = table("1,a\n2,b\n");
  EXPECT_EQ(bare.names(), (Fields{"column1", "column2"}));
  EXPECT_EQ(bare.rows, 2u);
  EXPECT_EQ(table("1990,1991\n3,4\n", {.header = Header::present}).names(), (Fields{"1990", "1991"}));
  EXPECT_EQ(table("a,b\nc,d\n", {.header = Header::absent}).rows, 2u);
  EXPECT_EQ(table("x,,z\n1,2,3\n").names(), (Fields{"x", "column2", "z"}));
}

TEST(ReadTable, ChoosesColumns) {
  const std::string file = "a,b,c\n1,x,3\n4,y,6\n";
  EXPECT_EQ(table(file, {.columns = {"c", "a"}}).names(), (Fields{"c", "a"}));
  EXPECT_EQ(table(file, {.columns = {"c", "a"}}).column("c").values, (std::vector<double>{3, 6}));
  EXPECT_EQ(table(file, {.ignore = {"b"}}).names(), (Fields{"a", "c"}));
  EXPECT_EQ(complaint(file, {.columns = {"d"}}),
            "no column `d` in `test.csv`; did you mean `a`? (columns: a, b, c)");
  EXPECT_EQ(complaint(file, {.ignore = {"a", "b", "c"}}),
            "no column of `test.csv` is left when all are ignored");
}

TEST(ReadTable, HasAPolicyForMissingValues) {
  const std::string file = "x,kind\n1,a\n,b\nNaN,a\n4,?\n5,c\n";
  EXPECT_EQ(complaint(file),
            "missing value in row 2 column `x` (line 3 of `test.csv`); fill it in or drop such rows");
  const Table dropped = table(file, {.missing = Missing::drop_row});
  EXPECT_EQ(dropped.column("x").values, (std::vector<double>{1, 5}));
  EXPECT_EQ(dropped.column("kind").levels, (Fields{"a", "c"})) << "b was in a dropped row only";
  const Table kept = table(file, {.missing = Missing::keep});
  EXPECT_EQ(kept.rows, 5u);
  EXPECT_TRUE(std::isnan(kept.column("x").values[1]));
  EXPECT_TRUE(std::isnan(kept.column("kind").values[3]));
  EXPECT_EQ(kept.column("kind").values[4], 2);
  EXPECT_EQ(complaint("x\nNA\n", {.missing = Missing::drop_row}),
            "`test.csv` has a header but no rows to use");
}

TEST(ReadTable, NamesThePlaceOfWhatIsNoNumber) {
  std::string file = "name,age\n";
  for (int row = 1; row <= 30; ++row) file += "x," + (row == 17 ? "old" : std::to_string(row)) + "\n";
  EXPECT_EQ(complaint(file),
            "not a number in row 17 column `age` (line 18 of `test.csv`); got `old`; if the column has "
            "categories, say so");
  EXPECT_EQ(complaint("a,b\n1,2\n3,inf\n"),
            "not a finite number in row 2 column `b` (line 3 of `test.csv`); got `inf`");
  std::string late = "x\n";
  for (int row = 1; row <= 500; ++row) late += row == 400 ? "oops\n" : "1\n";
  EXPECT_NE(complaint(late).find("not a number in row 400 column `x` (line 401"), std::string::npos);
}

TEST(ReadTable, SaysWhatIsWrongInOneSentence) {
  EXPECT_EQ(complaint(""), "`test.csv` is empty; a table with rows is needed");
  EXPECT_EQ(complaint("\n\n"), "`test.csv` is empty; a table with rows is needed");
  EXPECT_EQ(complaint("x,y\n"), "`test.csv` has a header but no rows to use");
  EXPECT_EQ(
      complaint("x,y\n1,2\n1,2,3\n"),
      "row 2 has 3 field(s), the first row has 2 (line 3 of `test.csv`); a separator inside a field needs "
      "quotes around it");
  EXPECT_EQ(complaint("x,x\n1,2\n"), "two columns of `test.csv` are called `x`; rename one");
  std::string many = "id\n";
  for (int row = 0; row < 20; ++row) many += "name" + std::to_string(row) + "\n";
  EXPECT_NE(complaint(many, {.level_limit = 10}).find("has more than 10 different values"),
            std::string::npos);
}

TEST(ReadTable, ChecksClassLabels) {
  const Table flowers = table("x,species\n1,a\n2,b\n");
  EXPECT_EQ(class_levels(flowers, "species"), (Fields{"a", "b"}));
  EXPECT_EQ(complaint([&] { class_levels(flowers, "speceis"); }),
            "no column `speceis` in `test.csv`; did you mean `species`? (columns: x, species)");
  EXPECT_EQ(complaint([] { class_levels(table("x,y\n1,a\n2,a\n"), "y"); }),
            "column `y` of `test.csv` has only 1 class (`a`); classification needs at least 2");
  EXPECT_NE(complaint([&] { class_levels(flowers, "x"); }).find("were read as numbers"), std::string::npos);
  EXPECT_NE(complaint([] {
              class_levels(table("y\na\n?\nb\n", {.missing = Missing::keep}), "y");
            }).find("the label in row 2 of `test.csv` is missing"),
            std::string::npos);
}

TEST(WithIndicators, TurnsACategoryIntoColumnsOfZeroAndOne) {
  const Table wide = with_indicators(table("x,c\n1,b\n2,a\n3,?\n", {.missing = Missing::keep}));
  ASSERT_EQ(wide.names(), (Fields{"x", "c=a", "c=b"}));
  EXPECT_EQ(wide.column("c=a").values[0], 0);
  EXPECT_EQ(wide.column("c=a").values[1], 1);
  EXPECT_EQ(wide.column("c=b").values[0], 1);
  EXPECT_TRUE(std::isnan(wide.column("c=b").values[2]));
}

TEST(WithIndicators, RefusesALevelThatIsCalledLikeAColumn) {
  for (const char* ambiguous : {"c,c=a\na,1\nb,2\n", "c,c=a\na=b,u\nz,b\n"})
    EXPECT_NE(complaint([&] { with_indicators(table(ambiguous)); }).find("would both be called `c=a"),
              std::string::npos)
        << ambiguous;
}

TEST(TableReader, GivesTheSameInChunksAsAtOnce) {
  std::string file = "x,kind\n";
  for (int row = 0; row < 1000; ++row)
    file += std::to_string(row * 0.25) + ",k" + std::to_string(row % 7) + "\n";
  const Table whole = table(file);
  for (std::size_t size : {1, 99, 100, 101, 333, 5000}) {
    TableReader reader(std::make_unique<MemorySource>("test.csv", file));
    std::size_t row = 0;
    while (const auto chunk = reader.next(size)) {
      ASSERT_LE(chunk->rows, size);
      const Column &x = chunk->column("x"), &kind = chunk->column("kind");
      for (std::size_t i = 0; i < chunk->rows; ++i, ++row) {
        ASSERT_EQ(x.values[i], whole.column("x").values[row]);
        ASSERT_EQ(kind.levels[std::size_t(kind.values[i])], "k" + std::to_string(row % 7));
      }
    }
    EXPECT_EQ(row, whole.rows) << size;
  }
}

TEST_F(Files, MayBeGzippedOrTabSeparated) {
  EXPECT_EQ(read_table(write("a.tsv", "x\ty\n1\t2\n")).column("y").values, (std::vector<double>{2}));
  const auto packed = folder_ / "a.csv.gz";
  const gzFile out = gzopen(packed.c_str(), "wb");
  gzputs(out, "x,y\n1,2\n");
  gzclose(out);
  EXPECT_EQ(read_table(packed).column("y").values, (std::vector<double>{2}));
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 9);
  EXPECT_NE(complaint([&] { read_table(packed); }).find("is cut off: its compressed data has no end"),
            std::string::npos);
}

TEST_F(Files, ThatCannotBeReadAreNamed) {
  const auto missing = folder_ / "none.csv";
  EXPECT_EQ(complaint([&] { read_table(missing); }), "cannot read `" + missing.string() + "`: no such file");
  EXPECT_EQ(complaint([&] { read_table(folder_); }),
            "cannot read `" + folder_.string() + "`: it is a folder, a file is needed");
  const auto empty = write("empty.csv", "");
  EXPECT_EQ(complaint([&] { read_table(empty); }),
            "`" + empty.string() + "` is empty; a table with rows is needed");
}

}  // namespace
}  // namespace fathom
