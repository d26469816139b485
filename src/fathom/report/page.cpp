#include "fathom/report/page.hpp"

#include <cmath>
#include <cstdio>

#include "fathom/report/assets.hpp"
#include "fathom/report/html.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/whole_file.hpp"

namespace fathom::report {

std::string escaped(const std::string& words) {
  std::string result;
  for (const char c : words) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string element(const std::string& tag, const std::string& words, const std::string& name) {
  if (words.empty()) return {};
  return text("<", tag, name.empty() ? "" : " class=\"" + name + "\"", ">", escaped(words), "</", tag, ">\n");
}

std::string verdict_list(const std::vector<Verdict>& verdicts) {
  if (verdicts.empty()) return {};
  std::string result = "<h2>Verdicts</h2>\n<ul class=\"verdicts\">\n";
  for (const Verdict& verdict : verdicts) {
    result += text("<li class=\"", verdict.holds ? "holds" : "fails", "\"><b>",
                   verdict.holds ? "holds" : "does not hold", "</b> <span>", escaped(verdict.claim),
                   "</span> <small>measured ", readable(verdict.value), ", threshold ",
                   readable(verdict.threshold), "</small></li>\n");
  }
  return result + "</ul>\n";
}

namespace {

std::string configuration_list(const Page& page) {
  std::string result;
  if (!page.configuration.empty()) {
    result += "<details class=\"configuration\"><summary>Configuration</summary>\n<dl>\n";
    for (const auto& [key, value] : page.configuration)
      result += text("<div><dt>", escaped(key), "</dt><dd>", escaped(value), "</dd></div>\n");
    result += "</dl>\n</details>\n";
  }
  if (!page.deviations.empty()) {
    result +=
        "<details class=\"configuration\" open><summary>Where this run differs from the "
        "paper</summary>\n<ul>\n";
    for (const std::string& deviation : page.deviations) result += "<li>" + escaped(deviation) + "</li>\n";
    result += "</ul>\n</details>\n";
  }
  return result;
}

std::string words_under(const Caption& caption) {
  std::string result =
      text("<b>", escaped(caption.title), caption.title.empty() || caption.title.back() == '.' ? "" : ".",
           "</b> ", escaped(caption.idea), "\n");
  if (!caption.finding.empty())
    result += text("<p class=\"finding\"><b>This run:</b> ", escaped(caption.finding), "</p>\n");
  return result;
}

/// A JSON text may stand in a script element once no tag can be read into it.
std::string script_safe(std::string specification) {
  for (std::size_t at = 0; (at = specification.find('<', at)) != std::string::npos;)
    specification.replace(at, 1, "\\u003c");
  return specification;
}

std::string figure_block(const Figure& figure, int number) {
  return text("<figure id=\"figure-", number, "\">\n<div class=\"drawing\" role=\"img\" aria-label=\"",
              escaped(figure.alternative), "\"></div>\n<figcaption>", words_under(figure.caption),
              "</figcaption>\n<script type=\"application/json\">", script_safe(figure.specification),
              "</script>\n</figure>\n");
}

std::string table_block(const Table& table) {
  std::string result = "<figure class=\"table\">\n<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
  for (const std::string& column : table.columns) result += "<th scope=\"col\">" + escaped(column) + "</th>";
  result += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    result += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      result +=
          i == 0 ? "<th scope=\"row\">" + escaped(row[i]) + "</th>" : "<td>" + escaped(row[i]) + "</td>";
    result += "</tr>\n";
  }
  return result + "</tbody>\n</table></div>\n<figcaption>" + words_under(table.caption) +
         "</figcaption>\n</figure>\n";
}

}  // namespace

std::string main_part(const Page& page) {
  std::string result = "<header>\n" + element("p", page.subtitle, "subtitle") + element("h1", page.title) +
                       element("p", page.claim, "claim") + verdict_list(page.verdicts) +
                       configuration_list(page) + "</header>\n";
  int number = 0;
  for (const Section& section : page.sections) {
    result += "<section>\n" + element("h2", section.title) + element("p", section.introduction);
    for (const Figure& figure : section.figures) result += figure_block(figure, ++number);
    for (const Table& table : section.tables) result += table_block(table);
    result += "</section>\n";
  }
  return result;
}

std::string readable(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "not a number" : value > 0 ? "infinite" : "-infinite";
  char buffer[64];
  const double size = std::abs(value);
  const bool whole = value == std::floor(value) && size < 1e9;
  std::snprintf(buffer, sizeof buffer, whole ? "%.0f" : "%.4g", value);
  return buffer;
}

std::string html(const Document& document) {
  const bool live = !document.live.empty();
  const std::string refresh = document.refresh_seconds > 0 ? text("<meta http-equiv=\"refresh\" content=\"",
                                                                  document.refresh_seconds, "\">\n")
                                                           : "";
  // Nothing may be fetched from elsewhere; Vega compiles its expressions, hence unsafe-eval.
  const std::string policy = text(
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src "
      "data:",
      live ? "; connect-src 'self'" : "");
  return text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
              "<meta name=\"color-scheme\" content=\"light dark\">\n", refresh,
              "<meta http-equiv=\"Content-Security-Policy\" content=\"", policy,
              "\">\n<link rel=\"icon\" href=\"data:,\">\n<title>", escaped(document.title),
              "</title>\n<style>\n", assets::page_css(), "</style>\n</head>\n<body>\n<main",
              live ? " data-live=\"" + escaped(document.live) + "\"" : "", ">\n", document.main,
              "</main>\n<script>\n", document.figures ? assets::vega_js() : "", assets::drawing_js(),
              assets::page_js(), "</script>\n</body>\n</html>\n");
}

std::string html(const Page& page) { return html(Document{.title = page.title, .main = main_part(page)}); }

void write_page(const std::filesystem::path& file, const Page& page) { write_atomically(file, html(page)); }

}  // namespace fathom::report
