/// Figures as files for papers and slides:
///
///   export_figures("runs/annuli", page, Picture::svg);   // runs/annuli/figure-1-flows.svg, ...
///
/// Vega draws them in node (Debian: nodejs); PNG is made of the same SVG by rsvg-convert (Debian: librsvg2-bin), so both
/// show the same picture. A missing program is one sentence that names its package.
#pragma once

#include <filesystem>
#include <vector>

#include "fathom/report/page.hpp"

namespace fathom::report {

enum class Picture { svg, png };

struct PictureOptions {
  int width = 960;                     ///< of the figure in CSS pixels; panels wrap to it as on a page
  double scale = 2;                    ///< pixels of a PNG for each of them
  std::vector<std::size_t> only = {};  ///< figures to write, counted from 1; default: all
};

/// Throws Error when the programs that this takes are missing: worth asking before hours of training.
void check_exporter(Picture picture);

/// Writes every figure into the folder and returns the files, in the figures' order.
std::vector<std::filesystem::path> export_figures(const std::filesystem::path& folder,
                                                  const std::vector<Figure>& figures, Picture picture,
                                                  const PictureOptions& options = {});
std::vector<std::filesystem::path> export_figures(const std::filesystem::path& folder, const Page& page,
                                                  Picture picture, const PictureOptions& options = {});

/// The figures of a page that write_page() wrote.
std::vector<Figure> figures_of(const std::filesystem::path& report);

}  // namespace fathom::report
