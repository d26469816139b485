/// `fathom figures RUN`: the figures of a finished run as files.
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "fathom/report/export.hpp"
#include "fathom/support/error.hpp"

namespace fathom::app {

namespace {

struct Request {
  std::string run;
  std::string out;
  bool png = false;
  report::PictureOptions options;
};

void export_run(const Request& request) {
  const std::filesystem::path given = request.run;
  const std::filesystem::path page = std::filesystem::is_directory(given) ? given / "report.html" : given;
  if (!std::filesystem::is_regular_file(page))
    throw Error(text("`", request.run, "` has no report.html; give the folder of a finished run"));
  const std::filesystem::path folder =
      request.out.empty() ? page.parent_path() : std::filesystem::path(request.out);
  std::filesystem::create_directories(folder);
  const auto figures = report::figures_of(page);
  const report::Picture picture = request.png ? report::Picture::png : report::Picture::svg;
  for (const auto& file : report::export_figures(folder, figures, picture, request.options))
    std::cout << file.string() << "\n";
}

}  // namespace

void add_figures(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("figures", "Write the figures of a finished run as SVG or PNG");
  command->add_option("run", request->run, "The run folder")->required();
  command->add_flag("--png", request->png, "PNG in place of SVG");
  command->add_option("--figure", request->options.only, "Only figure N, counted from 1")->type_name("N");
  command->add_option("--out", request->out, "Where to; default: the run folder")->type_name("DIR");
  command->add_option("--width", request->options.width, "Width in CSS pixels; panels wrap to it")
      ->check(CLI::Range(200, 4000))
      ->capture_default_str();
  command->add_option("--scale", request->options.scale, "PNG pixels per CSS pixel")
      ->check(CLI::Range(0.25, 8.0))
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  fathom figures runs/annuli                       SVG, for papers\n"
      "  fathom figures runs/annuli --png --figure 1 --width 640");
  command->callback([request] { export_run(*request); });
}

}  // namespace fathom::app
