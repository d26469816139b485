/// Files of a page that are compiled in: report/assets/* and Debian's Vega, joined by cmake/Report.cmake.
#pragma once

#include <string_view>

namespace fathom::report::assets {

std::string_view vega_js();     ///< defines the constant `vega` with `parse` and `View`
std::string_view drawing_js();  ///< defines `drawing`: configuration and colours, in a browser or in node
std::string_view page_js();
std::string_view page_css();

}  // namespace fathom::report::assets
