#include "fathom/report/page.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "fathom/report/export.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/whole_file.hpp"
#include "report/sample_page.hpp"

namespace fathom::report {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t result = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++result;
  return result;
}

/// A folder of a test's own that goes with it.
class Export : public testing::Test {
 protected:
  Export() { std::filesystem::create_directories(folder); }
  ~Export() override { std::filesystem::remove_all(folder); }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("fathom report test " + std::to_string(getpid()));
};

TEST(Page, HoldsVegaOnceAndStaysSmall) {
  const std::string page = html(sample_page());
  EXPECT_EQ(count(page, "modules[\"vega-view\"]"), 1u);
  EXPECT_LT(page.size(), 2'000'000u);
}

TEST(Page, RefersToNothingOutside) {
  const std::string page = html(sample_page());
  const std::string markup = page.substr(0, page.find("const vega"));
  EXPECT_EQ(count(markup, "src="), 0u);
  EXPECT_EQ(count(markup, "href="), 1u) << "only the empty icon";
  EXPECT_EQ(count(markup, "default-src 'none'"), 1u);
}

TEST(Page, ShowsMarkupAsText) {
  const std::string page = html({.title = "<script>alert(1)</script>", .claim = "a & b \"c\""});
  EXPECT_EQ(count(page, "<script>alert"), 0u);
  EXPECT_EQ(count(page, "&lt;script&gt;alert(1)"), 2u);
  EXPECT_EQ(count(page, "a &amp; b &quot;c&quot;"), 1u);
}

TEST(Page, LetsNoTagOutOfASpecification) {
  Figure figure{.caption = {.title = "x"}, .specification = "{\"title\": \"</script><b>\"}"};
  const std::string page = html({.title = "t", .sections = {{.title = "s", .figures = {figure}}}});
  EXPECT_EQ(count(page, "</script><b>"), 0u);
  EXPECT_EQ(count(page, "\\u003c/script>\\u003cb>"), 1u);
}

TEST(Page, SaysWhetherAClaimHolds) {
  const std::string page = html({.title = "t", .verdicts = {{"c1", 0.5, 1, true}, {"c2", 2, 1, false}}});
  EXPECT_EQ(count(page, "<b>holds</b>"), 1u);
  EXPECT_EQ(count(page, "<b>does not hold</b>"), 1u);
  EXPECT_EQ(count(page, "measured 0.5, threshold 1"), 1u);
}

TEST(Page, ThatCannotBeWrittenIsSaidInOneSentence) {
  EXPECT_THROW(write_page("/nowhere/at/all/report.html", sample_page()), Error);
}

TEST(Readable, HasFourDigits) {
  EXPECT_EQ(readable(0.123456), "0.1235");
  EXPECT_EQ(readable(62), "62");
  EXPECT_EQ(readable(1e-7), "1e-07");
  EXPECT_EQ(readable(std::numeric_limits<double>::quiet_NaN()), "not a number");
}

TEST_F(Export, WritesEveryFigureAsSvgWithItsColoursInPlace) {
  const auto files = export_figures(folder, sample_page(), Picture::svg);
  ASSERT_EQ(files.size(), 13u);
  EXPECT_EQ(files[0].filename(), "figure-1-flow.svg");
  for (const auto& file : files) {
    const std::string picture = read_whole(file);
    EXPECT_TRUE(picture.starts_with("<svg")) << file;
    EXPECT_EQ(count(picture, "var(--"), 0u) << file;
    EXPECT_EQ(count(picture, "vector-effect"), 0u) << file << ": strokes must not need it";
    EXPECT_EQ(count(picture, "NaN"), 0u) << file;
    EXPECT_GT(count(picture, "<path"), 3u) << file;
  }
}

TEST_F(Export, MakesPngOfTheSameFiguresAndLeavesNothingElse) {
  Page page = sample_page();
  page.sections.resize(1);
  const auto files = export_figures(folder, page, Picture::png);
  ASSERT_EQ(files.size(), 2u);
  for (const auto& file : files) EXPECT_EQ(read_whole(file).substr(1, 3), "PNG");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
}

TEST_F(Export, ReadsTheFiguresBackFromAReport) {
  write_page(folder / "report.html", sample_page());
  const auto figures = figures_of(folder / "report.html");
  ASSERT_EQ(figures.size(), 13u);
  EXPECT_EQ(figures[1].caption.title, "Boundary.");
  const auto files = export_figures(folder, figures, Picture::svg, {.only = {2}});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].filename(), "figure-2-boundary.svg");
  EXPECT_THROW(export_figures(folder, figures, Picture::svg, {.only = {14}}), InvalidArgument);
}

TEST_F(Export, OfAPageThatWasCutOffSaysSo) {
  std::ofstream(folder / "report.html") << html(sample_page()).substr(0, 200'000) << "</script></figure>";
  EXPECT_THROW(figures_of(folder / "report.html"), Error);
}

TEST_F(Export, NamesThePackageOfAMissingProgram) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  try {
    check_exporter(Picture::svg);
    ADD_FAILURE() << "must throw";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nodejs"), std::string::npos) << error.what();
  }
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace fathom::report
